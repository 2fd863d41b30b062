// Element types of tensors and their properties. Values equal oneDNN's dnnl_data_type_t.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lamina {

enum class DataType : int {
  undef = 0,
  f16 = 1,
  bf16 = 2,
  f32 = 3,
  s32 = 4,
  s8 = 5,
  u8 = 6,
  f64 = 7,
  boolean = 8,
  f8_e5m2 = 9,
  f8_e4m3 = 10,
  s4 = 11,
  u4 = 12,
  s64 = 16,
};

// Bits one element takes in memory: 4 for s4 and u4 (two values a byte), 0 for undef.
int bits_of(DataType type);

// Bytes that `count` consecutive elements take, rounded up to a whole byte.
int64_t bytes_of(DataType type, int64_t count);

// f64, f32, bf16, f16, f8_e5m2, f8_e4m3.
bool is_floating(DataType type);

// The spelling of graph dumps: "f32", "bf16", "boolean", ...
std::string_view name_of(DataType type);
std::optional<DataType> data_type_from_name(std::string_view name);

// Conversions between a stored element and double, one element at `index` of an array of `type` at `data`.
// Storing rounds to nearest even and saturates integers; NaN becomes 0 in integers. f8_e4m3 overflows to NaN and f8_e5m2 to
// infinity unless saturated by the caller; boolean stores value != 0.
double load_as_double(DataType type, const void* data, int64_t index);
void store_from_double(DataType type, void* data, int64_t index, double value);

// `value` as it would read back after being stored as `type`.
double round_to(DataType type, double value);

}  // namespace lamina
