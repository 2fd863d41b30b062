// Loads and stores of elements by index, in memory of any alignment, and the C++ types of elements.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "interface/data_type.h"
#include "interface/status.h"

namespace lamina {

template <typename T>
T load_element(const void* data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void store_element(void* data, int64_t index, T value) {
  std::memcpy(static_cast<char*>(data) + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

template <int bits>
using UnsignedOfBits =
    std::conditional_t<bits == 64, uint64_t,
                       std::conditional_t<bits == 32, uint32_t, std::conditional_t<bits == 16, uint16_t, uint8_t>>>;

// The C++ type of an element of at least a byte. Small floats and booleans are stored as their bits.
template <TypeKind kind, int bits>
using StoredType = std::conditional_t<
    kind == TypeKind::real, std::conditional_t<bits == 64, double, float>,
    std::conditional_t<kind == TypeKind::signed_integer, std::make_signed_t<UnsignedOfBits<bits>>, UnsignedOfBits<bits>>>;

// visit(T{}) for the C++ type T of the elements of an integer type, which have at least a byte.
template <typename Visit>
auto visit_integer_type(DataType type, const Visit& visit) {
  switch (type) {
#define LAMINA_DATA_TYPE(name, value, bits, kind, npy)                                                                       \
  case DataType::name:                                                                                                       \
    if constexpr (bits >= 8 && (TypeKind::kind == TypeKind::signed_integer || TypeKind::kind == TypeKind::unsigned_integer)) \
      return visit(StoredType<TypeKind::kind, bits>{});                                                                      \
    break;
#include "graph/data_types.def"
    default: break;
  }
  fail_check("an integer type of whole bytes", __FILE__, __LINE__, std::string(name_of(type)));
}

}  // namespace lamina
