// Parts of a user's tensor as the primitives want them: dense, with the channels last. A part that lies so in the tensor is
// used where it is, any other is copied.
#pragma once

#include <array>

#include "backends/cpu/library/onednn/convolution_shape.h"
#include "backends/cpu/library/onednn/primitive_call.h"

namespace lamina::cpu::onednn {

// Extents per axis: batch, channels, two or three spatial axes.
dnnl::memory::desc channels_last(DataType dtype, const Dims& extents);
// A tensor of these extents that is such a block.
AxesInOrder as_block(DataType dtype, const Dims& extents);

// Whether blocks of these extents lie so in the tensor.
bool is_block(const AxesInOrder& tensor, const Dims& extents);

// Extents of a block per axis: of all of it; of what of it the tensor has, the rest being 0; of what lies before that.
struct BlockExtents {
  Dims all, present = all, before = Dims(all.size(), 0);
};

// A tensor of 32-bit elements whose pixels follow each other while its channels lie apart: run after run of pixels is
// transposed.
struct TransposedRuns {
  int64_t channels = 0, channel_stride = 0, pixels = 0;  // of a run; 0 pixels: there are none
  // Of the runs along the axes that runs do not go along; strides in the tensor and in the block.
  std::array<int64_t, 4> counts{1, 1, 1, 1}, strides{}, block_strides{};
};

class DenseBlock {
 public:
  enum class Way { in, out };  // from the tensor to the block, or back
  DenseBlock() = default;
  // `always_copied`: even where the tensor has it right.
  DenseBlock(Way way, const AxesInOrder& tensor, const BlockExtents& block, bool always_copied = false);
  // What the tensor does not have is this byte instead of 0.
  void fill_with(int64_t byte) { filling_ = static_cast<unsigned char>(byte); }

  bool is_in_place() const { return !copy_ && runs_.pixels == 0; }
  size_t bytes() const { return aligned(bytes_); }  // 0 in place
  size_t scratch_bytes() const { return copy_ ? copy_.scratch_bytes() : 0; }
  // The block of the part that begins at `part`: there, or at `block`.
  void* at(void* part, void* block) const { return is_in_place() ? part : block; }
  // Does nothing in place.
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
