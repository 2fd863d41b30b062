#include "backends/reference/tensor.h"

#include <cstring>

#include "interface/element.h"
#include "interface/status.h"

namespace lamina::reference {
namespace {

Dims strides_of(const LogicalTensor& description) {
  return description.has_strides() ? description.strides : dense_strides(*description.shape);
}

// The value of each bit pattern of a type of 8 or 16 bits.
std::vector<double> decoded_patterns(DataType dtype) {
  std::vector<double> values(size_t{1} << bits_of(dtype));
  for (size_t code = 0; code < values.size(); ++code) {
    const auto pattern = static_cast<uint16_t>(code);
    values[code] = load_as_double(dtype, &pattern, 0);
  }
  return values;
}

// tensor[i] = read(offset of i in memory)
template <typename Read>
void load_all(Tensor& tensor, const Dims& strides, const Read& read) {
  for_each_offset_parallel<2>(tensor.shape, {dense_strides(tensor.shape), strides},
                              [&](const auto& at) { tensor[at[0]] = read(at[1]); });
}

void load_values(Tensor& tensor, const Dims& strides, const void* memory) {
  if (tensor.dtype == DataType::f32)
    return load_all(tensor, strides, [=](int64_t at) { return static_cast<double>(load_element<float>(memory, at)); });
  if (tensor.dtype == DataType::f64)
    return load_all(tensor, strides, [=](int64_t at) { return load_element<double>(memory, at); });
  if (bits_of(tensor.dtype) == 8 || bits_of(tensor.dtype) == 16) {
    const std::vector<double> values = decoded_patterns(tensor.dtype);
    if (bits_of(tensor.dtype) == 8)
      return load_all(tensor, strides, [&](int64_t at) { return values[load_element<uint8_t>(memory, at)]; });
    return load_all(tensor, strides, [&](int64_t at) { return values[load_element<uint16_t>(memory, at)]; });
  }
  load_all(tensor, strides, [&](int64_t at) { return load_as_double(tensor.dtype, memory, at); });
}

}  // namespace

bool is_long_integer(DataType dtype) { return is_integer(dtype) && bits_of(dtype) == 64; }

uint64_t integer_at(const Tensor& tensor, int64_t index) {
  const auto bits =
      is_long_integer(tensor.dtype) ? tensor.integers[static_cast<size_t>(index)] : static_cast<int64_t>(tensor[index]);
  return static_cast<uint64_t>(bits);
}

void set_integer(Tensor& tensor, int64_t index, uint64_t bits) {
  visit_integer_type(tensor.dtype,
                     [&](auto of_type) { tensor[index] = static_cast<double>(static_cast<decltype(of_type)>(bits)); });
  if (is_long_integer(tensor.dtype)) tensor.integers[static_cast<size_t>(index)] = static_cast<int64_t>(bits);
}

void prepare_integers(Tensor& tensor) {
  if (is_long_integer(tensor.dtype)) tensor.integers.resize(tensor.values.size());
}

Tensor zeros(DataType dtype, const Dims& shape) {
  const auto count = static_cast<size_t>(checked_product(shape, "a tensor of the reference backend"));
  return {.dtype = dtype, .shape = shape, .values = std::vector<double>(count, 0.0)};
}

Tensor load(const LogicalTensor& description, const void* memory) {
  LAMINA_CHECK(description.has_full_shape(), describe(description));
  Tensor tensor = zeros(description.dtype, *description.shape);
  LAMINA_CHECK(memory != nullptr || tensor.size() == 0, describe(description));
  if (tensor.size() == 0) return tensor;
  const Dims strides = strides_of(description);
  load_values(tensor, strides, memory);
  if (!is_long_integer(tensor.dtype)) return tensor;
  for_each_offset<1>(tensor.shape, {strides},
                     [&](const auto& at) { tensor.integers.push_back(load_element<int64_t>(memory, at[0])); });
  return tensor;
}

void store(const Tensor& tensor, const LogicalTensor& description, void* memory) {
  LAMINA_CHECK(description.shape == tensor.shape, join(describe(description), " holds ", describe(tensor.shape)));
  LAMINA_CHECK(memory != nullptr || tensor.size() == 0, describe(description));
  const std::array<Dims, 2> views{dense_strides(tensor.shape), strides_of(description)};
  const auto write = [&](const auto& at) { store_from_double(description.dtype, memory, at[1], tensor[at[0]]); };
  const auto write_integer = [&](const auto& at) {
    std::memcpy(static_cast<char*>(memory) + at[1] * 8, &tensor.integers[static_cast<size_t>(at[0])], 8);
  };
  if (!tensor.integers.empty() && is_long_integer(description.dtype))
    return for_each_offset<2>(tensor.shape, views, write_integer);
  if (bits_of(description.dtype) < 8) return for_each_offset<2>(tensor.shape, views, write);  // neighbours share a byte
  if (description.dtype != DataType::f32) return for_each_offset_parallel<2>(tensor.shape, views, write);
  auto* floats = static_cast<float*>(memory);
  for_each_offset_parallel<2>(tensor.shape, views, [&](const auto& at) { floats[at[1]] = static_cast<float>(tensor[at[0]]); });
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
