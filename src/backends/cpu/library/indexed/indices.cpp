#include "backends/cpu/library/indexed/indices.h"

#include "interface/indices.h"

namespace lamina::cpu {

Axes::Axes(const LogicalTensor& tensor, size_t first, size_t count) {
  const auto part = [&](const Dims& all) {
    const auto begin = all.begin() + static_cast<int64_t>(first);
    return Dims(begin, begin + static_cast<int64_t>(count));
  };
  extents = part(*tensor.shape);
  strides = part(tensor.strides);
}

int64_t Axes::count() const {
  int64_t product = 1;
  for (const int64_t extent : extents) product *= extent;
  return product;
}

int64_t Axes::offset(int64_t position) const {
  int64_t at = 0;
  for (size_t d = extents.size(); d-- > 0; position /= extents[d]) at += position % extents[d] * strides[d];
  return at;
}

RowPair::RowPair(const Axes& a, const Axes& b) : extents_(a.extents), strides_{a.strides, b.strides} {
  bool has_run = false;
  while (!extents_.empty()) {
    const int64_t extent = extents_.back(), steps[2] = {strides_[0].back(), strides_[1].back()};
    const bool joins = !has_run || (steps[0] == length_ * step_[0] && steps[1] == length_ * step_[1]);
    if (extent != 1 && !joins) break;
    extents_.pop_back();
    for (Dims& list : strides_) list.pop_back();
    if (extent == 1) continue;
    if (!has_run) step_[0] = steps[0], step_[1] = steps[1];
    has_run = true;
    length_ *= extent;
  }
  for (const int64_t extent : extents_) runs_ *= extent;
}

void read_indices(const Op& op, const LogicalTensor& indices, const void* memory, int64_t extent,
                  std::optional<int64_t> ignored, int64_t* entries) {
  for_each_index(indices, memory, [&](int64_t position, int64_t index) {
    const bool is_ignored = ignored && index == *ignored;
    if (!is_ignored && (index < -extent || index >= extent)) fail_index(op, *indices.shape, position, index, extent);
    entries[position] = is_ignored ? -1 : index < 0 ? index + extent : index;
  });
}

}  // namespace lamina::cpu
