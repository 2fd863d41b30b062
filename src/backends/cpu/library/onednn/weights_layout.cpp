#include "backends/cpu/library/onednn/weights_layout.h"

#include <algorithm>

namespace lamina::cpu::onednn {

namespace {

constexpr int64_t kMaxPieces = 16;
constexpr int64_t kMinBytes = 64 << 10;  // per piece
constexpr int64_t kBlock = 64;           // a multiple of the blocks of channels in oneDNN's layouts

// How weights are cut along one of their first two axes.
struct Pieces {
  size_t axis;
  int64_t extent;
};

Pieces pieces_of(const dnnl::memory::desc& weights) {
  const Dims dims = weights.get_dims();
  const size_t axis = dims.size() > 1 && dims[1] > dims[0] ? 1 : 0;
  const int64_t count = std::clamp<int64_t>(static_cast<int64_t>(weights.get_size()) / kMinBytes, 1, kMaxPieces);
  return {axis, (dims[axis] + count * kBlock - 1) / (count * kBlock) * kBlock};
}

}  // namespace

dnnl::memory::desc weights_desc(const ConvolutionShape& shape, int64_t slice) {
  Dims dims = shape.weights.dims, strides = shape.weights.strides;
  dims[0] /= shape.groups;
  const int64_t group_stride = dims[0] * strides[0];
  if (shape.makes_image()) {
    std::swap(dims[0], dims[1]);
    std::swap(strides[0], strides[1]);
  }
  if (shape.groups > 1) {
    dims.insert(dims.begin(), shape.groups);
    strides.insert(strides.begin(), group_stride);
  } else {
    dims[0] = slice;
  }
  return {dims, type_of(shape.weights.dtype), strides};
}

dnnl::memory::desc in_any_layout(const dnnl::memory::desc& desc, dnnl::memory::data_type type) {
  return {desc.get_dims(), type, dnnl::memory::format_tag::any};
}

void LayoutChange::add(const dnnl::memory::desc& from, int64_t from_bytes, const dnnl::memory::desc& to, int64_t to_bytes) {
  const Pieces cut = pieces_of(from);
  const Dims whole = from.get_dims();
  const size_t before = pieces_.size();
  try {
    for (int64_t at = 0; at < whole[cut.axis]; at += cut.extent) {
      Dims dims = whole, first(whole.size(), 0);
      first[cut.axis] = at;
      dims[cut.axis] = std::min(cut.extent, whole[cut.axis] - at);
      pieces_.push_back({copy(from.submemory_desc(dims, first), to.submemory_desc(dims, first)), from_bytes, to_bytes});
    }
  } catch (const dnnl::error& error) {  // a layout that cannot be divided
    rethrow_out_of_memory(error);
    pieces_.resize(before);
    pieces_.push_back({copy(from, to), from_bytes, to_bytes});
  }
}

void LayoutChange::add_with_sums(const dnnl::memory::desc& from, int64_t from_bytes, const dnnl::memory::desc& to,
                                 int64_t to_bytes) {
  const Dims dims = from.get_dims();
  Dims strides(dims.size(), 1);
  for (size_t axis = dims.size() - 1; axis-- > 0;) strides[axis] = strides[axis + 1] * dims[axis + 1];
  const dnnl::memory::desc dense(dims, from.get_data_type(), strides);
  Piece piece{copy(dense, to), from_bytes, to_bytes};
  if (from != dense) {
    piece.gather = copy(from, dense);
    piece.gathered_bytes = aligned(dense.get_size());
  }
  pieces_.push_back(std::move(piece));
}

size_t LayoutChange::scratch_bytes() const {
  size_t bytes = 0;
  for (const Piece& piece : pieces_) {
    const size_t call = std::max(piece.copy.scratch_bytes(), piece.gather ? piece.gather.scratch_bytes() : 0);
    bytes = std::max(bytes, piece.gathered_bytes + call);
  }
  return bytes;
}

}  // namespace lamina::cpu::onednn
