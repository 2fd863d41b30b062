#include "interface/data_type.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

#include "interface/element.h"
#include "interface/small_float.h"
#include "interface/status.h"

namespace lamina {
namespace {

struct TypeRow {
  DataType type;
  std::string_view name;
  int bits;
  TypeKind kind;
  std::string_view npy;
};

constexpr TypeRow kTypes[] = {
    {DataType::undef, "undef", 0, TypeKind::none, ""},
#define LAMINA_DATA_TYPE(name, value, bits, kind, npy) {DataType::name, #name, bits, TypeKind::kind, npy},
#include "graph/data_types.def"
};

const TypeRow& row_of(DataType type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type) return row;
  throw Error(Status::invalid_data_type, join("data type ", static_cast<int>(type), " is not known"));
}

// The nearest integer, ties to even, independent of the thread's rounding mode.
double round_half_even(double value) {
  if (!(std::fabs(value) < 0x1p52)) return value;  // already an integer
  const auto whole = static_cast<int64_t>(value);  // truncates toward zero
  const double rest = std::fabs(value - static_cast<double>(whole));
  if (rest < 0.5 || (rest == 0.5 && whole % 2 == 0)) return static_cast<double>(whole);
  return static_cast<double>(whole + (value < 0 ? -1 : 1));
}

constexpr int kDoubleMantissa = 52;
constexpr int kDoubleBias = 1023;

uint32_t encode(const SmallFloat& format, double value) {
  const uint32_t sign = std::signbit(value) ? format.sign() : 0;
  if (std::isnan(value)) return sign | format.nan;
  const auto bits = std::bit_cast<uint64_t>(std::fabs(value));
  const int exponent = static_cast<int>(bits >> kDoubleMantissa) - kDoubleBias;
  if (exponent > format.bias + 1) return sign | format.infinity;
  if (exponent < -format.bias - format.mantissa_bits) return sign;  // less than half of the smallest subnormal
  // The weight of one step of the last mantissa bit at this magnitude; subnormals all share the step of the smallest normal
  // exponent.
  const int scale = std::max(exponent, 1 - format.bias);
  const int dropped = kDoubleMantissa - format.mantissa_bits + scale - exponent;
  const uint64_t hidden = uint64_t{1} << kDoubleMantissa;
  const uint64_t significand = (bits & (hidden - 1)) | hidden;
  const uint64_t rest = significand & ((uint64_t{1} << dropped) - 1), half = uint64_t{1} << (dropped - 1);
  uint64_t steps = significand >> dropped;
  if (rest > half || (rest == half && steps % 2 != 0)) ++steps;
  // The addition lets a carry out of the mantissa increment the exponent field.
  const auto field = static_cast<uint64_t>(scale + format.bias - 1);
  const auto code = static_cast<uint32_t>((field << format.mantissa_bits) + steps);
  return sign | std::min(code, format.infinity);
}

double decode(const SmallFloat& format, uint32_t code) {
  const double sign = (code & format.sign()) != 0 ? -1.0 : 1.0;
  const uint32_t magnitude = code & (format.sign() - 1);
  if (magnitude >= format.infinity) {
    const bool infinite = magnitude == format.infinity && format.has_infinity();
    return infinite ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  const auto field = static_cast<int>(magnitude >> format.mantissa_bits);
  const uint32_t mantissa = magnitude & ((1U << format.mantissa_bits) - 1);
  const uint32_t significand = field == 0 ? mantissa : mantissa | (1U << format.mantissa_bits);
  const int exponent = std::max(field, 1) - format.bias - format.mantissa_bits;
  const auto power = std::bit_cast<double>(static_cast<uint64_t>(exponent + kDoubleBias) << kDoubleMantissa);
  return sign * static_cast<double>(significand) * power;
}

template <typename Integer>
Integer saturate(double value, Integer low, Integer high) {
  if (std::isnan(value)) return 0;
  const double rounded = round_half_even(value);
  if (rounded <= static_cast<double>(low)) return low;
  if (rounded >= static_cast<double>(high)) return high;
  return static_cast<Integer>(rounded);
}

// Two values per byte; an element of even index is in the low half.
int load_nibble(const void* data, int64_t index) {
  const auto byte = load_element<uint8_t>(data, index / 2);
  return (index % 2 == 0 ? byte : byte >> 4) & 0xf;
}

void store_nibble(void* data, int64_t index, int64_t value) {
  const auto byte = load_element<uint8_t>(data, index / 2);
  const auto half = static_cast<unsigned>(value & 0xf);
  const unsigned joined = index % 2 == 0 ? (byte & 0xf0U) | half : (byte & 0x0fU) | (half << 4);
  store_element(data, index / 2, static_cast<uint8_t>(joined));
}

template <DataType type, TypeKind kind, int bits>
double load(const void* data, int64_t index) {
  if constexpr (kind == TypeKind::boolean) {
    return load_element<uint8_t>(data, index) != 0 ? 1.0 : 0.0;
  } else if constexpr (bits == 4) {
    const int nibble = load_nibble(data, index);
    return nibble - (kind == TypeKind::signed_integer && (nibble & 8) != 0 ? 16 : 0);
  } else {
    const auto stored = load_element<StoredType<kind, bits>>(data, index);
    if constexpr (kind == TypeKind::small_float) {
      constexpr SmallFloat format = small_float(type);
      return decode(format, stored);
    } else {
      return static_cast<double>(stored);
    }
  }
}

template <DataType type, TypeKind kind, int bits>
void store(void* data, int64_t index, double value) {
  if constexpr (kind == TypeKind::boolean) {
    store_element(data, index, static_cast<uint8_t>(value != 0 ? 1 : 0));
  } else if constexpr (bits == 4) {
    store_nibble(data, index, kind == TypeKind::signed_integer ? saturate(value, -8, 7) : saturate(value, 0, 15));
  } else {
    using T = StoredType<kind, bits>;
    if constexpr (kind == TypeKind::small_float) {
      constexpr SmallFloat format = small_float(type);
      store_element(data, index, static_cast<T>(encode(format, value)));
    } else if constexpr (kind == TypeKind::real) {
      store_element(data, index, static_cast<T>(value));
    } else {
      store_element(data, index, saturate(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    }
  }
}

}  // namespace

int bits_of(DataType type) { return row_of(type).bits; }

int64_t bytes_of(DataType type, int64_t count) {
  int64_t bits = 0;
  if (__builtin_mul_overflow(count, static_cast<int64_t>(bits_of(type)), &bits) || bits > INT64_MAX - 7)
    throw Error(Status::invalid_shape, join(count, " elements of ", name_of(type), " are more bytes than 64 bits can count"));
  return (bits + 7) / 8;
}

bool is_data_type(DataType type) {
  return std::any_of(std::begin(kTypes), std::end(kTypes), [type](const TypeRow& row) { return row.type == type; });
}

TypeKind kind_of(DataType type) { return row_of(type).kind; }

bool is_floating(DataType type) {
  switch (type) {
#define LAMINA_DATA_TYPE(name, value, bits, kind, npy) \
  case DataType::name: return TypeKind::kind == TypeKind::real || TypeKind::kind == TypeKind::small_float;
#include "graph/data_types.def"
    default: return false;
  }
}

bool is_signed_integer(DataType type) { return kind_of(type) == TypeKind::signed_integer; }

bool is_integer(DataType type) { return is_signed_integer(type) || kind_of(type) == TypeKind::unsigned_integer; }

bool is_byte_integer(DataType type) { return type == DataType::s8 || type == DataType::u8; }

std::string_view name_of(DataType type) { return row_of(type).name; }

std::optional<DataType> data_type_from_name(std::string_view name) {
  for (const TypeRow& row : kTypes)
    if (row.name == name) return row.type;
  return std::nullopt;
}

std::string_view npy_descriptor(DataType type) {
  if (type == DataType::undef) throw Error(Status::invalid_data_type, "a tensor of type undef has no .npy form");
  return row_of(type).npy;
}

double load_as_double(DataType type, const void* data, int64_t index) {
  switch (type) {
#define LAMINA_DATA_TYPE(name, value, bits, kind, npy) \
  case DataType::name: return load<DataType::name, TypeKind::kind, bits>(data, index);
#include "graph/data_types.def"
    default: throw Error(Status::invalid_data_type, join("elements of type ", name_of(type), " cannot be read"));
  }
}

void store_from_double(DataType type, void* data, int64_t index, double value) {
  switch (type) {
#define LAMINA_DATA_TYPE(name, number, bits, kind, npy) \
  case DataType::name: return store<DataType::name, TypeKind::kind, bits>(data, index, value);
#include "graph/data_types.def"
    default: throw Error(Status::invalid_data_type, join("elements of type ", name_of(type), " cannot be written"));
  }
}

double round_to(DataType type, double value) {
  uint64_t memory = 0;
  store_from_double(type, &memory, 0, value);
  return load_as_double(type, &memory, 0);
}

}  // namespace lamina
