// The memory of one tensor, aligned to 64 bytes, and iteration over its elements for any strides.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

#include "interface/logical_tensor.h"

namespace lamina::driver {

class Buffer {
 public:
  // The tensor needs a known shape; without strides it becomes dense. The memory (including gaps) is zeroed.
  explicit Buffer(LogicalTensor tensor);

  const LogicalTensor& tensor() const { return tensor_; }
  void* data() { return memory_.get(); }
  const void* data() const { return memory_.get(); }
  int64_t element_count() const { return element_count_; }

  double load(int64_t offset) const { return load_as_double(tensor_.dtype, data(), offset); }
  void store(int64_t offset, double value) { store_from_double(tensor_.dtype, data(), offset, value); }

 private:
  struct Release {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
  };
  LogicalTensor tensor_;
  int64_t element_count_ = 0;
  std::unique_ptr<std::byte[], Release> memory_;
};

// The tensor with layout strided; unknown strides become dense.
LogicalTensor with_strides(LogicalTensor tensor);

// Iterates over elements in row-major order; `offset()` is the position of the current one in memory, in elements.
class ElementCursor {
 public:
  ElementCursor(const Dims& shape, const Dims& strides, int64_t linear_start);
  int64_t offset() const { return offset_; }
  void next();

 private:
  const Dims& shape_;
  const Dims& strides_;
  Dims at_;
  int64_t offset_ = 0;
};

// Calls visit(linear index, offset) for elements [begin, end) in order.
template <typename Visit>
void for_each_element(const LogicalTensor& tensor, int64_t begin, int64_t end, const Visit& visit) {
  if (begin >= end) return;
  ElementCursor cursor(*tensor.shape, tensor.strides, begin);
  for (int64_t i = begin; i < end; ++i, cursor.next()) visit(i, cursor.offset());
}

// The same for all elements, in parallel blocks. `visit` must not throw, and calls must not access the same data.
template <typename Visit>
void for_each_element_parallel(const LogicalTensor& tensor, int64_t count, const Visit& visit) {
  constexpr int64_t kBlock = int64_t{1} << 14;  // even, because two int4 values share a byte
  const int64_t blocks = (count + kBlock - 1) / kBlock;
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < blocks; ++block)
    for_each_element(tensor, block * kBlock, std::min(count, (block + 1) * kBlock), visit);
}

// The coordinates of a linear index: [3, 0, 7].
Dims coordinates(const Dims& shape, int64_t linear);

}  // namespace lamina::driver
