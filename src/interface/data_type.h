// Element types of tensors and their properties. Values equal oneDNN's dnnl_data_type_t.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lamina {

// The enumerators are generated from include/graph/data_types.def.
enum class DataType : int {
  undef = 0,
#define LAMINA_DATA_TYPE(name, value, bits, kind, npy) name = value,
#include "graph/data_types.def"
};
bool is_data_type(DataType type);  // whether the number is an enumerator

enum class TypeKind { none, real, small_float, signed_integer, unsigned_integer, boolean };
TypeKind kind_of(DataType type);

// The size of an element in memory, in bits: 4 for s4 and u4 (two values per byte), 0 for undef.
int bits_of(DataType type);

// The size of `count` consecutive elements in bytes, rounded up to a whole byte.
int64_t bytes_of(DataType type, int64_t count);

// Whether the type is real or a small float.
bool is_floating(DataType type);

// Whether the type is an integer, signed or not. boolean is not.
bool is_integer(DataType type);
bool is_signed_integer(DataType type);

// Whether the type is s8 or u8, the operand types of integer products.
bool is_byte_integer(DataType type);

// The spelling in graph dumps: "f32", "bf16", "boolean", ...
std::string_view name_of(DataType type);
std::optional<DataType> data_type_from_name(std::string_view name);

// The descriptor in .npy files; throws for undef.
std::string_view npy_descriptor(DataType type);

// Convert between double and the stored element at `index` of an array of `type` at `data`. Storing rounds to nearest even
// and saturates integers; NaN becomes 0 in integers. Small floats overflow to infinity, or to NaN if the format has no
// infinity, unless the caller saturates first; boolean stores value != 0.
double load_as_double(DataType type, const void* data, int64_t index);
void store_from_double(DataType type, void* data, int64_t index, double value);

// The value that is read back after `value` is stored as `type`.
double round_to(DataType type, double value);

}  // namespace lamina
