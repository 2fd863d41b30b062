// Memory of one tensor, aligned to 64 bytes, and ways to walk over its elements whatever its strides.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

#include "interface/logical_tensor.h"

namespace lamina::driver {

class Buffer {
 public:
  // The tensor needs a known shape; without strides it gets dense ones. The memory (gaps included) is zero.
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

// With dense strides where none are known; layout strided.
LogicalTensor with_strides(LogicalTensor tensor);

// Walks over elements in row-major order: `offset()` is where the current one lies.
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

// The same for all elements, in parallel blocks. `visit` must not throw, nor touch what its neighbours touch.
template <typename Visit>
void for_each_element_parallel(const LogicalTensor& tensor, int64_t count, const Visit& visit) {
  constexpr int64_t kBlock = int64_t{1} << 14;  // even: two int4 values share a byte
  const int64_t blocks = (count + kBlock - 1) / kBlock;
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < blocks; ++block)
    for_each_element(tensor, block * kBlock, std::min(count, (block + 1) * kBlock), visit);
}

// "[3, 0, 7]": the coordinates of a linear index.
Dims coordinates(const Dims& shape, int64_t linear);

}  // namespace lamina::driver
