#include "interface/data_type.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "interface/status.h"

namespace lamina {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

uint32_t stored(DataType type, double value) {
  uint32_t bits = 0;
  store_from_double(type, &bits, 0, value);
  return bits;
}

double loaded(DataType type, uint32_t bits) { return load_as_double(type, &bits, 0); }

constexpr std::array<DataType, 17> kStorable{
    DataType::f16, DataType::bf16,    DataType::f32,     DataType::s32,     DataType::s8, DataType::u8,
    DataType::f64, DataType::boolean, DataType::f8_e5m2, DataType::f8_e4m3, DataType::s4, DataType::u4,
    DataType::s64, DataType::u16,     DataType::u32,     DataType::u64,     DataType::s16};

TEST(DataType, NamesReadBack) {
  for (DataType type : kStorable) EXPECT_EQ(data_type_from_name(name_of(type)), type);
  EXPECT_EQ(data_type_from_name("undef"), DataType::undef);
  EXPECT_EQ(data_type_from_name("float"), std::nullopt);
  EXPECT_EQ(data_type_from_name(""), std::nullopt);
}

TEST(DataType, ValuesOutsideTheEnumerationAreRefused) { EXPECT_THROW(bits_of(static_cast<DataType>(13)), Error); }

TEST(DataType, BytesAreRoundedUpForHalfByteTypes) {
  EXPECT_EQ(bytes_of(DataType::s4, 0), 0);
  EXPECT_EQ(bytes_of(DataType::s4, 1), 1);
  EXPECT_EQ(bytes_of(DataType::u4, 2), 1);
  EXPECT_EQ(bytes_of(DataType::u4, 3), 2);
  EXPECT_EQ(bytes_of(DataType::f32, 3), 12);
  EXPECT_EQ(bytes_of(DataType::undef, 3), 0);
  EXPECT_THROW(bytes_of(DataType::f32, INT64_MAX / 16), Error);
}

TEST(DataType, FloatingTypes) {
  for (DataType type : {DataType::f64, DataType::f32, DataType::bf16, DataType::f16, DataType::f8_e5m2, DataType::f8_e4m3})
    EXPECT_TRUE(is_floating(type));
  for (DataType type : {DataType::s32, DataType::s8, DataType::u8, DataType::boolean, DataType::s4, DataType::u4, DataType::s64,
                        DataType::undef})
    EXPECT_FALSE(is_floating(type));
}

TEST(DataType, EveryCodeOfASmallTypeReadsBackAsItself) {
  struct Case {
    DataType type;
    uint32_t codes;
  };
  for (const auto& [type, codes] : {Case{DataType::f16, 0x10000}, Case{DataType::bf16, 0x10000}, Case{DataType::f8_e5m2, 0x100},
                                    Case{DataType::f8_e4m3, 0x100}, Case{DataType::s8, 0x100}, Case{DataType::u8, 0x100},
                                    Case{DataType::s4, 0x10}, Case{DataType::u4, 0x10}})
    for (uint32_t code = 0; code < codes; ++code) {
      const double value = loaded(type, code);
      if (std::isnan(value)) continue;
      ASSERT_EQ(stored(type, value), code) << name_of(type) << " " << value;
    }
}

// Halfway points between neighbours round to the even code; slightly larger or smaller values round to the nearer one.
TEST(DataType, RoundsToNearestEven) {
  struct Case {
    DataType type;
    uint32_t finite_codes;
  };
  for (const auto& [type, finite_codes] : {Case{DataType::f16, 0x7c00}, Case{DataType::bf16, 0x7f80},
                                           Case{DataType::f8_e5m2, 0x7c}, Case{DataType::f8_e4m3, 0x7f}})
    for (uint32_t code = 0; code + 1 < finite_codes; ++code) {
      const double low = loaded(type, code);
      const double high = loaded(type, code + 1);
      const double middle = (low + high) / 2;
      ASSERT_EQ(stored(type, middle), code % 2 == 0 ? code : code + 1) << name_of(type);
      ASSERT_EQ(stored(type, std::nextafter(middle, 0)), code) << name_of(type);
      ASSERT_EQ(stored(type, std::nextafter(middle, kInfinity)), code + 1) << name_of(type);
      ASSERT_EQ(round_to(type, -middle), -round_to(type, middle)) << name_of(type);
    }
}

TEST(DataType, KnownCodes) {
  EXPECT_EQ(stored(DataType::f16, 1.0), 0x3c00U);
  EXPECT_EQ(stored(DataType::f16, 65504.0), 0x7bffU);
  EXPECT_EQ(stored(DataType::f16, -0.0), 0x8000U);
  EXPECT_EQ(stored(DataType::f16, std::ldexp(1.0, -24)), 1U);
  EXPECT_EQ(stored(DataType::bf16, 1.0), 0x3f80U);
  EXPECT_EQ(stored(DataType::f8_e4m3, 448.0), 0x7eU);
  EXPECT_EQ(stored(DataType::f8_e5m2, 57344.0), 0x7bU);
  EXPECT_EQ(stored(DataType::f32, 1.0), std::bit_cast<uint32_t>(1.0F));
}

TEST(DataType, DoublesAreRoundedOnceNotThroughF32) {
  // 1 + 2^-11 + 2^-40 is above the middle of two f16 values, but f32 would drop the last term and then round the tie to even.
  EXPECT_EQ(stored(DataType::f16, 1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40)), 0x3c01U);
}

TEST(DataType, Overflow) {
  EXPECT_EQ(round_to(DataType::f16, 65519.0), 65504.0);
  EXPECT_EQ(round_to(DataType::f16, 65520.0), kInfinity);
  EXPECT_EQ(round_to(DataType::f16, -1e30), -kInfinity);
  EXPECT_EQ(round_to(DataType::bf16, 1e39), kInfinity);
  EXPECT_EQ(round_to(DataType::f8_e5m2, 1e6), kInfinity);
  EXPECT_EQ(round_to(DataType::f8_e5m2, -kInfinity), -kInfinity);
  EXPECT_EQ(round_to(DataType::f8_e4m3, 464.0), 448.0);
  EXPECT_TRUE(std::isnan(round_to(DataType::f8_e4m3, 465.0)));
  EXPECT_TRUE(std::isnan(round_to(DataType::f8_e4m3, kInfinity)));
}

TEST(DataType, NaNStaysNaNInFloatsAndIsZeroInIntegers) {
  for (DataType type : kStorable) {
    if (type == DataType::boolean) continue;
    const double value = round_to(type, kNaN);
    if (is_floating(type)) {
      EXPECT_TRUE(std::isnan(value)) << name_of(type);
    } else {
      EXPECT_EQ(value, 0) << name_of(type);
    }
  }
}

TEST(DataType, IntegersRoundToEvenAndSaturate) {
  EXPECT_EQ(round_to(DataType::s8, 2.5), 2);
  EXPECT_EQ(round_to(DataType::s8, 3.5), 4);
  EXPECT_EQ(round_to(DataType::s8, -2.5), -2);
  EXPECT_EQ(round_to(DataType::s8, 1e9), 127);
  EXPECT_EQ(round_to(DataType::s8, -kInfinity), -128);
  EXPECT_EQ(round_to(DataType::u8, -3), 0);
  EXPECT_EQ(round_to(DataType::u8, 300), 255);
  EXPECT_EQ(round_to(DataType::s4, 9), 7);
  EXPECT_EQ(round_to(DataType::s4, -9), -8);
  EXPECT_EQ(round_to(DataType::u4, 99), 15);
  EXPECT_EQ(round_to(DataType::s32, 4e9), 2147483647.0);
  EXPECT_EQ(round_to(DataType::s64, 1e30), 9223372036854775807.0);
  EXPECT_EQ(round_to(DataType::s64, -1e30), -9223372036854775808.0);
  EXPECT_EQ(round_to(DataType::u16, 65535.5), 65535);
  EXPECT_EQ(round_to(DataType::u16, -1), 0);
  EXPECT_EQ(round_to(DataType::u32, 1e10), 4294967295.0);
  uint64_t largest = 0;
  store_from_double(DataType::u64, &largest, 0, 1e30);
  EXPECT_EQ(largest, UINT64_MAX);
  EXPECT_EQ(load_as_double(DataType::u64, &largest, 0), 0x1p64);
}

TEST(DataType, BooleansAreZeroOrOne) {
  EXPECT_EQ(stored(DataType::boolean, -0.25), 1U);
  EXPECT_EQ(stored(DataType::boolean, 0), 0U);
  EXPECT_EQ(loaded(DataType::boolean, 7), 1.0);
}

TEST(DataType, HalfByteElementsKeepTheirNeighbours) {
  std::array<uint8_t, 2> memory{0xff, 0xff};
  store_from_double(DataType::u4, memory.data(), 0, 1);
  store_from_double(DataType::u4, memory.data(), 3, 2);
  EXPECT_EQ(memory[0], 0xf1);
  EXPECT_EQ(memory[1], 0x2f);
  EXPECT_EQ(load_as_double(DataType::u4, memory.data(), 1), 15);
  EXPECT_EQ(load_as_double(DataType::s4, memory.data(), 1), -1);
  EXPECT_EQ(load_as_double(DataType::s4, memory.data(), 3), 2);
}

TEST(DataType, ElementsAreAddressedByIndex) {
  for (DataType type : kStorable) {
    std::vector<uint64_t> memory(8, 0);
    for (int64_t i = 0; i < 6; ++i) store_from_double(type, memory.data(), i, static_cast<double>(i % 2));
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_EQ(load_as_double(type, memory.data(), i), static_cast<double>(i % 2)) << name_of(type);
  }
}

TEST(DataType, UndefHasNoElements) {
  uint64_t memory = 0;
  EXPECT_THROW(load_as_double(DataType::undef, &memory, 0), Error);
  EXPECT_THROW(store_from_double(DataType::undef, &memory, 0, 1), Error);
}

}  // namespace
}  // namespace lamina
