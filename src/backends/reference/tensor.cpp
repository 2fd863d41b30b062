#include "backends/reference/tensor.h"

#include <cstring>

#include "interface/status.h"

namespace lamina::reference {
namespace {

Dims strides_of(const LogicalTensor& description) {
  return description.has_strides() ? description.strides : dense_strides(*description.shape);
}

int64_t load_integer(const void* memory, int64_t offset) {
  int64_t value = 0;
  std::memcpy(&value, static_cast<const char*>(memory) + offset * int64_t{8}, sizeof value);
  return value;
}

}  // namespace

Tensor zeros(DataType dtype, const Dims& shape) {
  const auto count = static_cast<size_t>(checked_product(shape, "a tensor of the reference backend"));
  return {dtype, shape, std::vector<double>(count, 0.0), {}};
}

Tensor load(const LogicalTensor& description, const void* memory) {
  LAMINA_CHECK(description.has_full_shape(), describe(description));
  Tensor tensor{description.dtype, *description.shape, {}, {}};
  LAMINA_CHECK(memory != nullptr || description.element_count() == 0, describe(description));
  tensor.values.reserve(static_cast<size_t>(description.element_count()));
  for_each_offset<1>(tensor.shape, {strides_of(description)}, [&](const auto& offset) {
    tensor.values.push_back(load_as_double(tensor.dtype, memory, offset[0]));
    if (tensor.dtype == DataType::s64) tensor.integers.push_back(load_integer(memory, offset[0]));
  });
  return tensor;
}

void store(const Tensor& tensor, const LogicalTensor& description, void* memory) {
  LAMINA_CHECK(description.shape == tensor.shape, join(describe(description), " holds ", describe(tensor.shape)));
  LAMINA_CHECK(memory != nullptr || tensor.size() == 0, describe(description));
  int64_t next = 0;
  for_each_offset<1>(tensor.shape, {strides_of(description)},
                     [&](const auto& offset) { store_from_double(description.dtype, memory, offset[0], tensor[next++]); });
}

int64_t count_of(const Dims& shape, size_t first, size_t last) {
  int64_t count = 1;
  for (size_t dim = first; dim < last; ++dim) count *= shape[dim];
  return count;
}

Dims broadcast_strides(const Dims& from, const Dims& to) {
  LAMINA_CHECK(from.size() <= to.size(), join(describe(from), " does not broadcast to ", describe(to)));
  const Dims dense = dense_strides(from);
  const size_t added = to.size() - from.size();
  Dims strides(to.size(), 0);
  for (size_t dim = 0; dim < from.size(); ++dim) {
    LAMINA_CHECK(from[dim] == 1 || from[dim] == to[dim + added], join(describe(from), " does not broadcast to ", describe(to)));
    if (from[dim] != 1) strides[dim + added] = dense[dim];
  }
  return strides;
}

}  // namespace lamina::reference
