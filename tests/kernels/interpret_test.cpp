// The interpreter's checks: it reports accesses outside an arg's memory, and memory that two grid positions write. Its numbers
// are compared with the CPU backend in tests/backends/cpu/kernels/interpret_test.cpp.
#include "kernels/interpret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "interface/status.h"
#include "interface/type_rules.h"
#include "kernels/builder.h"
#include "kernels/math/host_convert.h"

namespace lamina::kernel {
namespace {

using ::testing::HasSubstr;

// dst = x * x over [4 rows | 8], dst with the strides given.
Kernel squares(const Dims& dst_strides) {
  Builder k("squares", {4, 8}, 1);
  const int x = k.add_arg({.name = "x", .strides = {8, 1}, .table = {}});
  const int dst = k.add_arg({.name = "dst", .output = true, .strides = dst_strides, .table = {}});
  const Value value = k.load(x);
  k.store(value * value, dst);
  return k.finish();
}

std::string fault_of(const Kernel& kernel, int64_t x_elements, int64_t dst_elements) {
  std::vector<float> x(static_cast<size_t>(x_elements), 2), dst(static_cast<size_t>(dst_elements), 0);
  const InterpretedArg args[] = {{x.data(), x_elements}, {dst.data(), dst_elements}};
  try {
    interpret(kernel, args);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::runtime_error);
    return error.what();
  }
  return "";
}

TEST(Interpret, ComputesEveryElement) {
  std::vector<float> x(32), dst(32, -1);
  for (size_t i = 0; i < 32; ++i) x[i] = static_cast<float>(i);
  const InterpretedArg args[] = {{x.data(), 32}, {dst.data(), 32}};
  interpret(squares({8, 1}), args);
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(dst[i], x[i] * x[i]);
}

TEST(Interpret, TellsReadsAndWritesOutsideTheMemory) {
  EXPECT_EQ(fault_of(squares({8, 1}), 32, 32), "");
  EXPECT_THAT(fault_of(squares({8, 1}), 31, 32),
              HasSubstr("kernel squares: x at row 3, element 7: offset 31 is outside its 31 elements"));
  EXPECT_THAT(fault_of(squares({9, 1}), 32, 32), HasSubstr("dst at row 3, element 5: offset 32 is outside"));
}

TEST(Interpret, TellsElementsThatTwoRowsWrite) {
  EXPECT_THAT(fault_of(squares({4, 1}), 32, 32),
              HasSubstr("dst at row 1, element 0: a race: offset 4 was written by row 0, element 4"));
}

TEST(Interpret, TellsElementsThatOneRowWritesTwice) { EXPECT_THAT(fault_of(squares({0, 1}), 32, 32), HasSubstr("a race")); }

TEST(Interpret, ReadsTablesInsideTheirEnds) {
  const auto kernel_with_table = [](size_t entries) {
    Builder k("scaled", {2, 4}, 1);
    const int x = k.add_arg({.name = "x", .strides = {4, 1}, .table = {}});
    const int table = k.add_arg({.name = "scales", .strides = {0, 1}, .table = std::vector<float>(entries, 0.5F)});
    const int dst = k.add_arg({.name = "dst", .output = true, .strides = {4, 1}, .table = {}});
    k.store(k.load(x) * k.load(table), dst);
    return k.finish();
  };
  std::vector<float> x(8, 3), dst(8, 0);
  const InterpretedArg args[] = {{x.data(), 8}, {}, {dst.data(), 8}};
  interpret(kernel_with_table(4), args);
  EXPECT_EQ(dst[7], 1.5F);
  EXPECT_THROW(interpret(kernel_with_table(3), args), Error);
}

// Conversions equal those of the interface: all codes of the small types, and floats around every step.
class HostConversions : public ::testing::TestWithParam<DataType> {};

TEST_P(HostConversions, AreTheInterfaces) {
  const DataType type = GetParam();
  const int codes = 1 << bits_of(type);
  const auto expect_same_code = [&](double value) {
    uint16_t stored = 0;
    store_from_double(type, &stored, 0, value);
    ASSERT_EQ(math::host_small_float(value, type), stored) << value;
    const auto narrow = static_cast<float>(value);
    store_from_double(type, &stored, 0, static_cast<double>(narrow));
    ASSERT_EQ(math::host_small_float(narrow, type), stored) << narrow;
  };
  for (int code = 0; code < codes; ++code) {
    const auto raw = static_cast<uint16_t>(code);
    const double value = load_as_double(type, &raw, 0);
    const auto actual = static_cast<double>(math::host_from_small_float(raw, type));
    ASSERT_TRUE(actual == value || (std::isnan(actual) && std::isnan(value))) << code;
    ASSERT_TRUE(std::isnan(value) || std::signbit(actual) == std::signbit(value)) << code;
    if (!std::isfinite(value)) continue;
    const auto next = static_cast<uint16_t>(code + 1);
    const double above = load_as_double(type, &next, 0);
    expect_same_code(value);
    if (!std::isfinite(above)) continue;
    const double tie = value + (above - value) / 2;
    for (const double near : {tie, std::nextafter(tie, value), std::nextafter(tie, above)}) expect_same_code(near);
  }
  for (const double far : {1e30, -1e30, 1e-30, 65520.0, 464.0, 465.0, 57344.0, 61440.0, static_cast<double>(INFINITY)})
    expect_same_code(far);
}

INSTANTIATE_TEST_SUITE_P(Types, HostConversions,
                         ::testing::Values(DataType::bf16, DataType::f16, DataType::f8_e5m2, DataType::f8_e4m3),
                         [](const auto& test) { return std::string(lamina::name_of(test.param)); });

TEST(HostConversions, IntegersSaturateAndRoundHalfToEven) {
  const auto expect_same = [](double value) {
    const auto narrow = static_cast<float>(value);
    for (const DataType type : all_types()) {
      if (!is_integer(type)) continue;
      uint64_t stored = 0, of_float = 0;
      store_from_double(type, &stored, 0, value);
      store_from_double(type, &of_float, 0, static_cast<double>(narrow));
      const int width = bits_of(type);
      const bool is_signed = is_signed_integer(type);
      const uint64_t mask = ~uint64_t{0} >> (64 - width);
      EXPECT_EQ(static_cast<uint64_t>(math::host_integer(value, width, is_signed)) & mask, stored) << name_of(type) << value;
      EXPECT_EQ(static_cast<uint64_t>(math::host_integer(narrow, width, is_signed)) & mask, of_float) << name_of(type) << value;
    }
  };
  for (const double value : {0.0,
                             0.5,
                             1.5,
                             2.5,
                             -0.5,
                             -1.5,
                             6.5,
                             7.5,
                             -8.5,
                             14.5,
                             15.5,
                             127.5,
                             128.0,
                             -128.5,
                             -129.0,
                             255.5,
                             256.0,
                             1e10,
                             -1e10,
                             1e20,
                             -1e20,
                             static_cast<double>(INFINITY),
                             static_cast<double>(-INFINITY),
                             std::nan("")}) {
    expect_same(value);
  }
}

}  // namespace
}  // namespace lamina::kernel
