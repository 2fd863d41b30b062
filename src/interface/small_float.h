// The formats of the binary floats of at most 16 bits; all conversions derive from them.
#pragma once

#include <cstdint>

#include "interface/data_type.h"
#include "interface/status.h"

namespace lamina {

// A code is the bits without the sign. Codes below `infinity` are finite; those above it are NaN, and conversions produce
// `nan`. If both are equal, the format has no infinity, and that code is its only NaN.
struct SmallFloat {
  int bits;
  int mantissa_bits;
  int bias;
  uint32_t infinity;
  uint32_t nan;
  constexpr bool has_infinity() const { return infinity != nan; }
  // The exponent of the smallest positive number, which is a power of two.
  constexpr int smallest_exponent() const { return 1 - bias - mantissa_bits; }
  constexpr uint32_t sign() const { return 1U << (bits - 1); }
};

// name, integer type of its bits, mantissa_bits, bias, infinity, nan.
#define LAMINA_SMALL_FLOATS(use)                                                         \
  use(f16, uint16_t, 10, 15, 0x7c00, 0x7e00) use(bf16, uint16_t, 7, 127, 0x7f80, 0x7fc0) \
      use(f8_e5m2, uint8_t, 2, 15, 0x7c, 0x7e) use(f8_e4m3, uint8_t, 3, 7, 0x7f, 0x7f)

constexpr SmallFloat small_float(DataType type) {
  switch (type) {
#define LAMINA_FORM(name, Bits, mantissa_bits, bias, infinity, nan) \
  case DataType::name: return {8 * sizeof(Bits), mantissa_bits, bias, infinity, nan};
    LAMINA_SMALL_FLOATS(LAMINA_FORM)
#undef LAMINA_FORM
    default: throw Error(Status::invalid_data_type, join(name_of(type), " is not a small float"));
  }
}

// Each small float of data_types.def has its format here.
#define LAMINA_DATA_TYPE(name, value, bit_count, kind, npy) \
  static_assert(TypeKind::kind != TypeKind::small_float || small_float(DataType::name).bits == bit_count);
#include "graph/data_types.def"

}  // namespace lamina
