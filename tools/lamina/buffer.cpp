#include "lamina/buffer.h"

#include <cstring>

#include "interface/status.h"

namespace lamina::driver {

LogicalTensor with_strides(LogicalTensor tensor) {
  LAMINA_CHECK(tensor.has_full_shape(), describe(tensor));
  // The driver never uses opaque layouts.
  if (tensor.layout == LayoutType::opaque) tensor.layout = LayoutType::any;
  return made_dense(std::move(tensor));
}

Buffer::Buffer(LogicalTensor tensor) : tensor_(with_strides(std::move(tensor))), element_count_(tensor_.element_count()) {
  const auto size = static_cast<size_t>(tensor_.byte_size());
  try {
    memory_.reset(static_cast<std::byte*>(::operator new[](std::max<size_t>(size, 64), std::align_val_t{64})));
  } catch (const std::bad_alloc&) {
    throw Error(Status::out_of_memory,
                join("tensor ", tensor_.id, ", ", describe(tensor_), ": no memory for ", size, " bytes"));
  }
  std::memset(memory_.get(), 0, size);
}

Dims coordinates(const Dims& shape, int64_t linear) {
  Dims at(shape.size(), 0);
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 0) continue;
    at[i] = linear % shape[i];
    linear /= shape[i];
  }
  return at;
}

ElementCursor::ElementCursor(const Dims& shape, const Dims& strides, int64_t linear_start)
    : shape_(shape), strides_(strides), at_(coordinates(shape, linear_start)) {
  for (size_t i = 0; i < at_.size(); ++i) offset_ += at_[i] * strides_[i];
}

void ElementCursor::next() {
  for (size_t i = at_.size(); i-- > 0;) {
    offset_ += strides_[i];
    if (++at_[i] < shape_[i]) return;
    offset_ -= shape_[i] * strides_[i];
    at_[i] = 0;
  }
}

}  // namespace lamina::driver
