#include "common_view.h"

#include <algorithm>
#include <string>

#include "objects.h"

namespace dnnl {

namespace {

// One level of a dim's layout: a step of `size` elements along the dim is `stride` elements in memory.
struct Level {
  memory::dim size, stride;
};

// The levels of a dim, outermost first; the last has size 1.
std::vector<Level> levels_of(const memory::desc& tensor, std::size_t dim) {
  const memory::dims blocks = tensor.get_inner_blks(), dims = tensor.get_inner_idxs();
  std::vector<Level> levels;
  memory::dim size = 1, stride = 1;
  for (std::size_t i = blocks.size(); i-- > 0;) {
    if (dims[i] == static_cast<memory::dim>(dim)) {
      levels.push_back({size, stride});
      size *= blocks[i];
    }
    stride *= blocks[i];
  }
  levels.push_back({size, tensor.get_strides()[dim]});
  std::reverse(levels.begin(), levels.end());
  return levels;
}

[[noreturn]] void fail_blocks(std::size_t dim, memory::dim extent, memory::dim block) {
  fail(dnnl_unimplemented, "layer normalization: dim " + std::to_string(dim) + " has " + std::to_string(extent) +
                               " elements, which blocks of " + std::to_string(block) +
                               " would pad; allowed are dims that the blocks of all tensors divide");
}

// The sizes of all levels. Each divides the previous one, and the first divides the extent.
memory::dims borders_of(std::size_t dim, memory::dim extent, const std::vector<memory::desc>& tensors) {
  memory::dims borders{1};
  for (const memory::desc& tensor : tensors) {
    if (dim >= static_cast<std::size_t>(tensor.get_ndims())) continue;
    for (const Level& level : levels_of(tensor, dim)) borders.push_back(level.size);
  }
  std::sort(borders.rbegin(), borders.rend());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  memory::dim outer = extent;
  for (const memory::dim border : borders) {
    if (outer % border != 0) fail_blocks(dim, outer, border);
    outer = border;
  }
  return borders;
}

}  // namespace

CommonView::CommonView(const memory::dims& shape, const std::vector<memory::desc>& tensors) : shape_(shape) {
  std::size_t rank = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    borders_.push_back(borders_of(d, shape[d], tensors));
    rank += borders_.back().size();
  }
  if (rank > DNNL_MAX_NDIMS)
    fail(dnnl_unimplemented, "layer normalization: the blocked formats together need a view of " + std::to_string(rank) +
                                 " dims, allowed is up to 12");
}

CommonView::Tensor CommonView::view(const memory::desc& tensor) const {
  Tensor result;
  for (std::size_t d = 0; d < static_cast<std::size_t>(tensor.get_ndims()); ++d) {
    const std::vector<Level> levels = levels_of(tensor, d);
    memory::dim outer = shape_[d];
    for (const memory::dim border : borders_[d]) {
      const auto level = std::find_if(levels.begin(), levels.end(), [&](const Level& l) { return l.size <= border; });
      result.dims.push_back(outer / border);
      result.strides.push_back(level->stride * (border / level->size));
      outer = border;
    }
  }
  return result;
}

}  // namespace dnnl
