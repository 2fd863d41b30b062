#include "backends/cpu/library/onednn/dense_block.h"

#include <cstring>

#include "backends/cpu/dispatch/windows/transpose.h"
#include "interface/data_type.h"

namespace lamina::cpu::onednn {

namespace {

// Strides of a dense block with the channels last; the axes are in the order batch, channels, spatial.
Dims strides_of(const Dims& extents) {
  Dims strides(extents.size(), 1);
  int64_t stride = extents[1];
  for (size_t axis = extents.size(); axis-- > 2; stride *= extents[axis]) strides[axis] = stride;
  strides[0] = stride;
  return strides;
}

// Whether runs are long enough to be transposed faster than by oneDNN's copies. Floats have masked registers.
bool are_long(const TransposedRuns& runs, int bits) {
  constexpr int64_t kMinPixels = 8, kMinChannels = 4;
  if (bits == 32) return runs.pixels >= kMinPixels && runs.channels >= kMinChannels;
  return runs.pixels >= square_side(bits) && runs.channels >= square_side(bits);
}

// Strides are those of a dense block of `all`. Returns no runs if they would be short or elements do not have 8, 16 or 32 bits.
TransposedRuns runs_of(const AxesInOrder& tensor, const BlockExtents& block, const Dims& block_strides) {
  const int bits = bits_of(tensor.dtype);
  TransposedRuns runs{bits, block.present[1], tensor.strides[1], 1};
  bool goes_on = true;
  size_t loop = 0;
  for (size_t axis = block.present.size(); axis-- > 0;) {
    if (axis == 1 || block.present[axis] == 1) continue;
    const int64_t pixels = runs.pixels;
    goes_on = goes_on && axis >= 2 && tensor.strides[axis] == pixels && block_strides[axis] == pixels * block.all[1];
    if (goes_on) {
      runs.pixels *= block.present[axis];
    } else {
      runs.counts[loop] = block.present[axis];
      runs.strides[loop] = tensor.strides[axis];
      runs.block_strides[loop++] = block_strides[axis];
    }
  }
  const bool are_bytes = bits == 8 || bits == 16 || bits == 32;
  return are_bytes && block.present[1] == block.all[1] && are_long(runs, bits) ? runs : TransposedRuns{};
}

}  // namespace

dnnl::memory::desc channels_last(DataType dtype, const Dims& extents) {
  using tag = dnnl::memory::format_tag;
  return {extents, type_of(dtype), extents.size() == 4 ? tag::nhwc : tag::ndhwc};
}

bool is_block(const AxesInOrder& tensor, const Dims& extents) {
  const Dims strides = strides_of(extents);
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] > 1 && tensor.strides[axis] != strides[axis]) return false;
  }
  return true;
}

AxesInOrder as_block(DataType dtype, const Dims& extents) { return {dtype, extents, strides_of(extents)}; }

DenseBlock::DenseBlock(Way way, const AxesInOrder& tensor, const BlockExtents& block, DataType type, bool always_copied)
    : way_(way), is_filled_(block.present != block.all) {
  const bool is_converted = type != tensor.dtype;
  if (!always_copied && !is_filled_ && !is_converted && is_block(tensor, block.all)) return;
  bytes_ = channels_last(type, block.all).get_size();
  const Dims strides = strides_of(block.all);
  for (size_t axis = 0; axis < strides.size(); ++axis) present_at_ += bytes_of(type, block.before[axis] * strides[axis]);
  if (!is_converted) runs_ = runs_of(tensor, block, strides);
  if (runs_.pixels > 0) return;
  const dnnl::memory::desc there(block.present, type_of(tensor.dtype), tensor.strides);
  const dnnl::memory::desc here(block.present, type_of(type), strides);
  copy_ = way == Way::in ? onednn::copy(there, here) : onednn::copy(here, there);
}

void DenseBlock::transpose_runs(void* part, void* block) const {
  const TransposedRuns& r = runs_;
  for (int64_t i = 0; i < r.counts[0]; ++i)
    for (int64_t j = 0; j < r.counts[1]; ++j)
      for (int64_t k = 0; k < r.counts[2]; ++k)
        for (int64_t l = 0; l < r.counts[3]; ++l) {
          const int64_t there = i * r.strides[0] + j * r.strides[1] + k * r.strides[2] + l * r.strides[3];
          const int64_t here =
              i * r.block_strides[0] + j * r.block_strides[1] + k * r.block_strides[2] + l * r.block_strides[3];
          void* const run = offset(part, there * r.bits / 8);
          void* const pixels = offset(block, here * r.bits / 8);
          if (way_ == Way::in)
            transpose(r.bits, run, r.channel_stride, pixels, r.channels, r.channels, r.pixels);
          else
            transpose(r.bits, pixels, r.channels, run, r.channel_stride, r.pixels, r.channels);
        }
}

void DenseBlock::copy(void* part, void* block, void* scratch) const {
  if (is_in_place()) return;
  if (is_filled_ && way_ == Way::in) std::memset(block, filling_, bytes_);
  if (runs_.pixels > 0) {
    transpose_runs(part, offset(block, present_at_));
    return;
  }
  if (way_ == Way::out) {
    copy_.run({offset(block, present_at_), part}, scratch);
    return;
  }
  copy_.run({part, offset(block, present_at_)}, scratch);
}

}  // namespace lamina::cpu::onednn
