#include "backends/cpu/library/onednn/overlap.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "interface/status.h"

namespace lamina::cpu::onednn {

bool are_apart(const Dims& extents, const Dims& strides) {
  std::vector<std::pair<int64_t, int64_t>> steps;  // stride and extent
  for (size_t axis = 0; axis < extents.size(); ++axis)
    if (extents[axis] > 1 && strides[axis] != 0) steps.emplace_back(strides[axis], extents[axis]);
  std::sort(steps.begin(), steps.end());
  int64_t least = 1;
  for (const auto& [stride, extent] : steps) {
    if (stride < least) return false;
    least = stride * extent;
  }
  return true;
}

void require_apart(const Op& op, std::string_view what, const Dims& extents, const Dims& strides) {
  if (are_apart(extents, strides)) return;
  throw Error(Status::unimplemented, place_of(op),
              join("elements of ", what, " overlap: extents ", describe(extents), ", strides ", describe(strides),
                   "; the cpu backend multiplies and convolves only tensors whose elements do not overlap"));
}

}  // namespace lamina::cpu::onednn
