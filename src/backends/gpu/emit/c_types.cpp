#include "backends/gpu/emit/c_types.h"

#include <cmath>

#include "interface/number_text.h"
#include "interface/status.h"

namespace lamina::gpu {

using kernel::Type;

const char* suffix_of(Type type) { return kernel::name_of(type); }

const char* c_type(Type type) {
  static constexpr const char* names[] = {"lm_f32", "lm_f64", "lm_s32", "lm_s64", "int"};
  return names[static_cast<size_t>(type)];
}

const char* storage_type(DataType dtype) {
  switch (kind_of(dtype)) {
    case TypeKind::real: return bits_of(dtype) == 64 ? "lm_f64" : "lm_f32";
    case TypeKind::signed_integer:
      if (bits_of(dtype) >= 32) return bits_of(dtype) == 64 ? "lm_s64" : "lm_s32";
      return bits_of(dtype) == 8 ? "lm_s8" : "lm_u8";  // a pair of four-bit elements
    case TypeKind::small_float:
    case TypeKind::unsigned_integer:
    case TypeKind::boolean: return bits_of(dtype) == 16 ? "lm_u16" : "lm_u8";
    case TypeKind::none: break;
  }
  throw Error(Status::invalid_data_type, join("gpu backend: elements of type ", name_of(dtype), " cannot be stored"));
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
