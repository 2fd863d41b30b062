// Element types of tensors and their properties. Values equal oneDNN's dnnl_data_type_t.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lamina {

// Types come from include/graph/data_types.def.
enum class DataType : int {
  undef = 0,
#define LAMINA_DATA_TYPE(name, value, bits, kind, npy) name = value,
#include "graph/data_types.def"
};
bool is_data_type(DataType type);  // whether the number is an enumerator

enum class TypeKind { none, real, small_float, signed_integer, unsigned_integer, boolean };
TypeKind kind_of(DataType type);

// Bits one element takes in memory: 4 for s4 and u4 (two values a byte), 0 for undef.
int bits_of(DataType type);

// Bytes that `count` consecutive elements take, rounded up to a whole byte.
int64_t bytes_of(DataType type, int64_t count);

// Real or a small float.
bool is_floating(DataType type);

// s8 or u8: what integer products take.
bool is_byte_integer(DataType type);

// The spelling of graph dumps: "f32", "bf16", "boolean", ...
std::string_view name_of(DataType type);
std::optional<DataType> data_type_from_name(std::string_view name);

// The descriptor in .npy files; throws for undef.
std::string_view npy_descriptor(DataType type);

// Conversions between a stored element and double, one element at `index` of an array of `type` at `data`.
// Storing rounds to nearest even and saturates integers; NaN becomes 0 in integers. f8_e4m3 overflows to NaN and f8_e5m2 to
// infinity unless saturated by the caller; boolean stores value != 0.
double load_as_double(DataType type, const void* data, int64_t index);
void store_from_double(DataType type, void* data, int64_t index, double value);

// `value` as it would read back after being stored as `type`.
double round_to(DataType type, double value);

}  // namespace lamina
