#include "backends/gpu/emit/c_types.h"

#include <algorithm>
#include <cmath>

#include "interface/number_text.h"
#include "interface/status.h"

namespace lamina::gpu {

using kernel::Type;

const char* suffix_of(Type type) { return kernel::name_of(type); }

const char* c_type(Type type) {
  static constexpr const char* names[] = {
#define LAMINA_NAME(name) "lm_" #name,
      LAMINA_KERNEL_TYPES(LAMINA_NAME)
#undef LAMINA_NAME
  };
  return type == Type::boolean ? "int" : names[static_cast<size_t>(type)];
}

// Two elements of four bits, small floats and booleans are unsigned integers.
std::string storage_type(DataType dtype) {
  if (dtype == DataType::undef)
    throw Error(Status::invalid_data_type, join("gpu backend: elements of type ", name_of(dtype), " cannot be stored"));
  const int bits = bits_of(dtype);
  const bool is_signed = is_signed_integer(dtype) && bits >= 8;
  return join("lm_", kind_of(dtype) == TypeKind::real ? "f" : is_signed ? "s" : "u", std::max(bits, 8));
}

std::string constant(double value, Type type) {
  if (!is_real(type)) return join("(", c_type(type), ")", static_cast<int64_t>(value));
  const char* suffix = suffix_of(type);
  const double rounded = type == Type::f32 ? static_cast<double>(static_cast<float>(value)) : value;
  if (std::isnan(rounded)) return join("lm_nan_", suffix);
  if (std::isinf(rounded)) return join(rounded < 0 ? "-" : "", "lm_infinity_", suffix);
  return exact_text(rounded) + (type == Type::f32 ? "f" : "");
}

std::string from_storage(DataType dtype, const std::string& raw) {
  if (dtype == DataType::boolean) return join("(", raw, " != 0)");
  if (kind_of(dtype) == TypeKind::small_float) return join("lm_f32_from_", name_of(dtype), "(", raw, ")");
  return is_byte_integer(dtype) ? join("(lm_f32)", raw) : raw;
}

std::string to_storage(DataType dtype, Type type, const std::string& value) {
  if (!is_real(type)) return join("(", storage_type(dtype), ")(", value, ")");
  if (dtype == DataType::f32 || dtype == DataType::f64) return join("(", storage_type(dtype), ")(", value, ")");
  if (dtype == DataType::boolean) return join("(lm_u8)(", value, " != 0)");
  return join("lm_", name_of(dtype), "_from_", suffix_of(type), "(", value, ")");
}

std::string cast_value(Type from, Type to, const std::string& value) {
  if (to == Type::boolean) return join("(", value, " != 0)");
  if (is_real(from) && !is_real(to)) return join("lm_", suffix_of(to), "_from_", suffix_of(from), "(", value, ")");
  return join("(", c_type(to), ")(", value, ")");
}

}  // namespace lamina::gpu
