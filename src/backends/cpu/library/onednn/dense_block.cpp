#include "backends/cpu/library/onednn/dense_block.h"

#include <cstring>

namespace lamina::cpu::onednn {

namespace {

// Of a dense block with the channels last; by axis in the order batch, channels, spatial.
Dims strides_of(const Dims& extents) {
  Dims strides(extents.size(), 1);
  int64_t stride = extents[1];
  for (size_t axis = extents.size(); axis-- > 2; stride *= extents[axis]) strides[axis] = stride;
  strides[0] = stride;
  return strides;
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

DenseBlock::DenseBlock(Way way, const AxesInOrder& tensor, const BlockExtents& block, bool always_copied)
    : way_(way), is_filled_(block.present != block.all) {
  if (!always_copied && !is_filled_ && is_block(tensor, block.all)) return;
  bytes_ = channels_last(tensor.dtype, block.all).get_size();
  const Dims strides = strides_of(block.all);
  for (size_t axis = 0; axis < strides.size(); ++axis)
    present_at_ += bytes_of(tensor.dtype, block.before[axis] * strides[axis]);
  const dnnl::memory::desc there(block.present, type_of(tensor.dtype), tensor.strides);
  const dnnl::memory::desc here(block.present, type_of(tensor.dtype), strides);
  copy_ = way == Way::in ? onednn::copy(there, here) : onednn::copy(here, there);
}

void DenseBlock::copy(void* part, void* block, void* scratch) const {
  if (is_in_place()) return;
  if (way_ == Way::out) {
    copy_.run({offset(block, present_at_), part}, scratch);
    return;
  }
  if (is_filled_) std::memset(block, filling_, bytes_);
  copy_.run({part, offset(block, present_at_)}, scratch);
}

}  // namespace lamina::cpu::onednn
