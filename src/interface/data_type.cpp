#include "interface/data_type.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "interface/element.h"
#include "interface/status.h"

namespace lamina {
namespace {

struct TypeRow {
  DataType type;
  std::string_view name;
  int bits;
};

constexpr std::array<TypeRow, 14> kTypes{{
    {DataType::undef, "undef", 0},
    {DataType::f16, "f16", 16},
    {DataType::bf16, "bf16", 16},
    {DataType::f32, "f32", 32},
    {DataType::s32, "s32", 32},
    {DataType::s8, "s8", 8},
    {DataType::u8, "u8", 8},
    {DataType::f64, "f64", 64},
    {DataType::boolean, "boolean", 8},
    {DataType::f8_e5m2, "f8_e5m2", 8},
    {DataType::f8_e4m3, "f8_e4m3", 8},
    {DataType::s4, "s4", 4},
    {DataType::u4, "u4", 4},
    {DataType::s64, "s64", 64},
}};

const TypeRow& row_of(DataType type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type) return row;
  throw Error(Status::invalid_data_type, join("data type ", static_cast<int>(type), " is not known"));
}

// A binary float of at most 16 bits. `last_finite` is the code of the largest finite value; codes above it are infinity and
// NaN (IEEE style) or NaN alone (f8_e4m3).
struct SmallFloat {
  int mantissa_bits;
  int bias;
  uint32_t last_finite;
  uint32_t overflow;  // code of infinity, or of NaN where there is none
  uint32_t nan;
  uint32_t sign;
};

constexpr SmallFloat kF16{10, 15, 0x7bff, 0x7c00, 0x7e00, 0x8000};
constexpr SmallFloat kBf16{7, 127, 0x7f7f, 0x7f80, 0x7fc0, 0x8000};
constexpr SmallFloat kF8E5M2{2, 15, 0x7b, 0x7c, 0x7e, 0x80};
constexpr SmallFloat kF8E4M3{3, 7, 0x7e, 0x7f, 0x7f, 0x80};

// Nearest integer, ties to even, whatever the rounding mode of the thread.
double round_half_even(double value) {
  if (!(std::fabs(value) < 0x1p52)) return value;  // an integer already
  const auto whole = static_cast<int64_t>(value);  // toward zero
  const double rest = std::fabs(value - static_cast<double>(whole));
  if (rest < 0.5 || (rest == 0.5 && whole % 2 == 0)) return static_cast<double>(whole);
  return static_cast<double>(whole + (value < 0 ? -1 : 1));
}

constexpr int kDoubleMantissa = 52;
constexpr int kDoubleBias = 1023;

uint32_t encode(const SmallFloat& format, double value) {
  const uint32_t sign = std::signbit(value) ? format.sign : 0;
  if (std::isnan(value)) return sign | format.nan;
  const auto bits = std::bit_cast<uint64_t>(std::fabs(value));
  const int exponent = static_cast<int>(bits >> kDoubleMantissa) - kDoubleBias;
  if (exponent > format.bias + 1) return sign | format.overflow;
  if (exponent < -format.bias - format.mantissa_bits) return sign;  // less than half of the smallest subnormal
  // One step of the last mantissa bit at this magnitude; subnormals all share the step of the smallest normal exponent.
  const int scale = std::max(exponent, 1 - format.bias);
  const int dropped = kDoubleMantissa - format.mantissa_bits + scale - exponent;
  const uint64_t hidden = uint64_t{1} << kDoubleMantissa;
  const uint64_t significand = (bits & (hidden - 1)) | hidden;
  const uint64_t rest = significand & ((uint64_t{1} << dropped) - 1), half = uint64_t{1} << (dropped - 1);
  uint64_t steps = significand >> dropped;
  if (rest > half || (rest == half && steps % 2 != 0)) ++steps;
  // A carry out of the mantissa moves into the exponent field by itself.
  const auto field = static_cast<uint64_t>(scale + format.bias - 1);
  const auto code = static_cast<uint32_t>((field << format.mantissa_bits) + steps);
  return sign | (code > format.last_finite ? format.overflow : code);
}

double decode(const SmallFloat& format, uint32_t code) {
  const double sign = (code & format.sign) != 0 ? -1.0 : 1.0;
  const uint32_t magnitude = code & (format.sign - 1);
  if (magnitude > format.last_finite) {
    const bool infinite = magnitude == format.overflow && format.overflow != format.nan;
    return infinite ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  const auto field = static_cast<int>(magnitude >> format.mantissa_bits);
  const uint32_t mantissa = magnitude & ((1U << format.mantissa_bits) - 1);
  const uint32_t significand = field == 0 ? mantissa : mantissa | (1U << format.mantissa_bits);
  const int exponent = std::max(field, 1) - format.bias - format.mantissa_bits;
  const auto power = std::bit_cast<double>(static_cast<uint64_t>(exponent + kDoubleBias) << kDoubleMantissa);
  return sign * static_cast<double>(significand) * power;
}

int64_t saturate(double value, int64_t low, int64_t high) {
  if (std::isnan(value)) return 0;
  const double rounded = round_half_even(value);
  if (rounded <= static_cast<double>(low)) return low;
  if (rounded >= static_cast<double>(high)) return high;
  return static_cast<int64_t>(rounded);
}

template <typename T>
void store_integer(void* data, int64_t index, double value) {
  store_element(data, index, static_cast<T>(saturate(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max())));
}

// Two values a byte; the element of even index is the low half.
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

}  // namespace

int bits_of(DataType type) { return row_of(type).bits; }

int64_t bytes_of(DataType type, int64_t count) {
  int64_t bits = 0;
  if (__builtin_mul_overflow(count, static_cast<int64_t>(bits_of(type)), &bits) || bits > INT64_MAX - 7)
    throw Error(Status::invalid_shape, join(count, " elements of ", name_of(type), " are more bytes than 64 bits can count"));
  return (bits + 7) / 8;
}

bool is_floating(DataType type) {
  switch (type) {
    case DataType::f64:
    case DataType::f32:
    case DataType::bf16:
    case DataType::f16:
    case DataType::f8_e5m2:
    case DataType::f8_e4m3: return true;
    default: return false;
  }
}

std::string_view name_of(DataType type) { return row_of(type).name; }

std::optional<DataType> data_type_from_name(std::string_view name) {
  for (const TypeRow& row : kTypes)
    if (row.name == name) return row.type;
  return std::nullopt;
}

double load_as_double(DataType type, const void* data, int64_t index) {
  switch (type) {
    case DataType::f64: return load_element<double>(data, index);
    case DataType::f32: return static_cast<double>(load_element<float>(data, index));
    case DataType::f16: return decode(kF16, load_element<uint16_t>(data, index));
    case DataType::bf16: return decode(kBf16, load_element<uint16_t>(data, index));
    case DataType::f8_e5m2: return decode(kF8E5M2, load_element<uint8_t>(data, index));
    case DataType::f8_e4m3: return decode(kF8E4M3, load_element<uint8_t>(data, index));
    case DataType::s64: return static_cast<double>(load_element<int64_t>(data, index));
    case DataType::s32: return load_element<int32_t>(data, index);
    case DataType::s8: return load_element<int8_t>(data, index);
    case DataType::u8: return load_element<uint8_t>(data, index);
    case DataType::boolean: return load_element<uint8_t>(data, index) != 0 ? 1.0 : 0.0;
    case DataType::u4: return load_nibble(data, index);
    case DataType::s4: return load_nibble(data, index) - ((load_nibble(data, index) & 8) != 0 ? 16 : 0);
    case DataType::undef: break;
  }
  throw Error(Status::invalid_data_type, join("elements of type ", name_of(type), " cannot be read"));
}

void store_from_double(DataType type, void* data, int64_t index, double value) {
  switch (type) {
    case DataType::f64: return store_element(data, index, value);
    case DataType::f32: return store_element(data, index, static_cast<float>(value));
    case DataType::f16: return store_element(data, index, static_cast<uint16_t>(encode(kF16, value)));
    case DataType::bf16: return store_element(data, index, static_cast<uint16_t>(encode(kBf16, value)));
    case DataType::f8_e5m2: return store_element(data, index, static_cast<uint8_t>(encode(kF8E5M2, value)));
    case DataType::f8_e4m3: return store_element(data, index, static_cast<uint8_t>(encode(kF8E4M3, value)));
    case DataType::s64: return store_integer<int64_t>(data, index, value);
    case DataType::s32: return store_integer<int32_t>(data, index, value);
    case DataType::s8: return store_integer<int8_t>(data, index, value);
    case DataType::u8: return store_integer<uint8_t>(data, index, value);
    case DataType::boolean: return store_element(data, index, static_cast<uint8_t>(value != 0 ? 1 : 0));
    case DataType::u4: return store_nibble(data, index, saturate(value, 0, 15));
    case DataType::s4: return store_nibble(data, index, saturate(value, -8, 7));
    case DataType::undef: break;
  }
  throw Error(Status::invalid_data_type, join("elements of type ", name_of(type), " cannot be written"));
}

double round_to(DataType type, double value) {
  uint64_t memory = 0;
  store_from_double(type, &memory, 0, value);
  return load_as_double(type, &memory, 0);
}

}  // namespace lamina
