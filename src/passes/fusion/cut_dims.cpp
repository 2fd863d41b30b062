#include "passes/fusion/cut_dims.h"

namespace lamina {
namespace {

// Replaces iteration dim `dim` by `count` dims in a map.
void cut_in_map(DimMap& map, int dim, int count) {
  for (AxisRun& run : map) {
    if (run.count == 0) continue;
    if (run.first > dim)
      run.first += count - 1;
    else if (run.first + run.count > dim)
      run.count += count - 1;
  }
}

}  // namespace

void cut_in_view(IterationView& view, int dim, int count) {
  for (auto* maps : {&view.inputs, &view.outputs})
    for (DimMap& map : *maps) cut_in_map(map, dim, count);
}

void cut_in_extents(Dims& extents, std::vector<bool>& inner, int dim, const Dims& pieces) {
  const bool is_inner = inner[static_cast<size_t>(dim)];
  extents.erase(extents.begin() + dim);
  extents.insert(extents.begin() + dim, pieces.begin(), pieces.end());
  inner.insert(inner.begin() + dim, pieces.size() - 1, is_inner);
}

}  // namespace lamina
