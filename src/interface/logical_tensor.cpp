#include "interface/logical_tensor.h"

#include <algorithm>

#include "interface/status.h"

namespace lamina {
namespace {

bool all_known(const Dims& dims) { return std::find(dims.begin(), dims.end(), kUnknownDim) == dims.end(); }

bool has_zero(const Dims& dims) { return std::find(dims.begin(), dims.end(), 0) != dims.end(); }

}  // namespace

bool LogicalTensor::has_full_shape() const { return shape.has_value() && all_known(*shape); }

bool LogicalTensor::has_strides() const {
  return layout == LayoutType::strided && shape.has_value() && strides.size() == shape->size() && all_known(strides);
}

int LogicalTensor::rank() const { return shape ? static_cast<int>(shape->size()) : -1; }

int64_t LogicalTensor::element_count() const {
  LAMINA_CHECK(has_full_shape(), describe(*this));
  return checked_product(*shape, join("tensor ", id));
}

int64_t LogicalTensor::span() const {
  LAMINA_CHECK(has_full_shape(), describe(*this));
  if (has_zero(*shape)) return 0;
  if (!has_strides()) return element_count();
  int64_t last = 0;
  for (size_t i = 0; i < shape->size(); ++i) {
    int64_t step = 0;
    if (__builtin_mul_overflow((*shape)[i] - 1, strides[i], &step) || __builtin_add_overflow(last, step, &last) ||
        last == INT64_MAX)
      throw Error(Status::invalid_shape, join("tensor ", id, ": strides ", describe(strides), " of shape ", describe(*shape),
                                              " reach further than 64 bits can count"));
  }
  return last + 1;
}

int64_t LogicalTensor::byte_size() const { return bytes_of(dtype, span()); }

bool dims_agree(int64_t a, int64_t b) { return a == b || a == kUnknownDim || b == kUnknownDim; }

bool dims_agree(const Dims& a, const Dims& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](int64_t x, int64_t y) { return dims_agree(x, y); });
}

Dims joined_dims(const Dims& a, const Dims& b) {
  LAMINA_CHECK(a.size() == b.size(), join(describe(a), " and ", describe(b)));
  Dims joined = a;
  for (size_t i = 0; i < joined.size(); ++i)
    if (joined[i] == kUnknownDim) joined[i] = b[i];
  return joined;
}

Dims dense_strides(const Dims& shape) {
  Dims strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    if (__builtin_mul_overflow(step, std::max<int64_t>(shape[i], 1), &step))
      throw Error(Status::invalid_shape, too_many_elements(shape));
  }
  return strides;
}

bool is_dense(const LogicalTensor& tensor) {
  if (!tensor.has_full_shape() || !tensor.has_strides()) return false;
  const Dims& shape = *tensor.shape;
  if (has_zero(shape)) return true;
  const Dims dense = dense_strides(shape);
  // The stride of an axis of extent 1 is never used.
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1 && tensor.strides[i] != dense[i]) return false;
  return true;
}

LogicalTensor made_dense(LogicalTensor tensor) {
  if (!tensor.has_full_shape() || tensor.has_strides() || tensor.layout == LayoutType::opaque) return tensor;
  tensor.strides = dense_strides(*tensor.shape);
  tensor.layout = LayoutType::strided;
  return tensor;
}

std::string too_many_elements(const Dims& dims) {
  return join("shape ", describe(dims), " has more elements than 64 bits can count");
}

int64_t checked_product(const Dims& dims, const std::string& what) {
  if (has_zero(dims)) return 0;
  int64_t product = 1;
  for (int64_t dim : dims)
    if (__builtin_mul_overflow(product, dim, &product))
      throw Error(Status::invalid_shape, join(what, ": ", too_many_elements(dims)));
  return product;
}

std::string describe(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ", ";
    text += dims[i] == kUnknownDim ? "?" : std::to_string(dims[i]);
  }
  return text + "]";
}

std::string describe(const LogicalTensor& tensor) {
  const std::string type(name_of(tensor.dtype));
  return tensor.shape ? type + describe(*tensor.shape) : type + "[unknown rank]";
}

const char* name_of(LayoutType layout) {
  switch (layout) {
    case LayoutType::undef: return "undef";
    case LayoutType::any: return "any";
    case LayoutType::strided: return "strided";
    case LayoutType::opaque: return "opaque";
  }
  return "unknown";
}

const char* name_of(PropertyType property) {
  switch (property) {
    case PropertyType::undef: return "undef";
    case PropertyType::variable: return "variable";
    case PropertyType::constant: return "constant";
    case PropertyType::host_scalar: return "host_scalar";
  }
  return "unknown";
}

}  // namespace lamina
