// Parts of a user's tensor in the layout that the primitives require: dense, with the channels last. A part with this layout
// is used in place, others are copied.
#pragma once

#include <array>

#include "backends/cpu/library/onednn/convolution_shape.h"
#include "backends/cpu/library/onednn/primitive_call.h"

namespace lamina::cpu::onednn {

// Extents per axis: batch, channels, two or three spatial axes.
dnnl::memory::desc channels_last(DataType dtype, const Dims& extents);
// A tensor of these extents with this layout.
AxesInOrder as_block(DataType dtype, const Dims& extents);

// Whether blocks of these extents in the tensor have this layout.
bool is_block(const AxesInOrder& tensor, const Dims& extents);

// Extents of a block per axis: the whole block; the part that the tensor has (the rest is 0); the part before that.
struct BlockExtents {
  Dims all, present = all, before = Dims(all.size(), 0);
};

// A tensor with contiguous pixels and strided channels. Runs of pixels are transposed.
struct TransposedRuns {
  int bits = 0;                                          // of an element: 8, 16 or 32
  int64_t channels = 0, channel_stride = 0, pixels = 0;  // per run; 0 pixels: there are no runs
  // The runs along the other axes, with their strides in the tensor and in the block.
  std::array<int64_t, 4> counts{1, 1, 1, 1}, strides{}, block_strides{};
};

class DenseBlock {
 public:
  enum class Way { in, out };  // from the tensor to the block, or back
  DenseBlock() = default;
  // `type`: of the block, if it is not the tensor's. `always_copied`: even if the tensor has the required layout.
  DenseBlock(Way way, const AxesInOrder& tensor, const BlockExtents& block, DataType type, bool always_copied = false);
  // Elements that the tensor does not have are filled with this byte instead of 0.
  void fill_with(int64_t byte) { filling_ = static_cast<unsigned char>(byte); }

  bool is_in_place() const { return !copy_ && runs_.pixels == 0; }
  size_t bytes() const { return aligned(bytes_); }  // 0 in place
  size_t scratch_bytes() const { return copy_ ? copy_.scratch_bytes() : 0; }
  // The block of the part that starts at `part`: in place, or at `block`.
  void* at(void* part, void* block) const { return is_in_place() ? part : block; }
  // Does nothing if the block is in place.
  void copy(void* part, void* block, void* scratch) const;

 private:
  void transpose_runs(void* part, void* block) const;

  Way way_ = Way::in;
  TransposedRuns runs_;
  PrimitiveCall copy_;
  size_t bytes_ = 0;
  int64_t present_at_ = 0;  // in the block
  bool is_filled_ = false;
  unsigned char filling_ = 0;
};

}  // namespace lamina::cpu::onednn
