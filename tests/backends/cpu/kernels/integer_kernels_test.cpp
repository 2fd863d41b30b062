// Integers, comparisons and logic in generated kernels. They run on the CPU and in the interpreter of the kernel IR; the GPU
// tests run them too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "backends/cpu/support/cpu_check.h"
#include "interface/element.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, s32 = DataType::s32, s64 = DataType::s64, boolean = DataType::boolean;
constexpr DataType s16 = DataType::s16, s8 = DataType::s8, u8 = DataType::u8;
constexpr DataType u16 = DataType::u16, u32 = DataType::u32, u64 = DataType::u64;

// Numbers of both signs: some use all bits, and some are equal in both operands.
Buffer integers(const LogicalTensor& tensor, int64_t salt) {
  Buffer data = buffer_for(tensor);
  for (int64_t i = 0; i < tensor.span(); ++i) {
    const int64_t large = (i * 0x9e3779b97f4a7c15LL) ^ salt;
    const int64_t value = i % 3 == 0 ? i - 20 : i % 3 == 1 ? large >> 40 : large;
    visit_integer_type(tensor.dtype,
                       [&](auto of_type) { store_element(data.data(), i, static_cast<decltype(of_type)>(value)); });
  }
  return data;
}

// Compares bits, not doubles: a double cannot hold every integer of 64 bits.
void expect_same_integers(const Graph& graph, const std::map<uint64_t, Buffer>& given) {
  const RunResult result = expect_cpu_matches_reference(graph, 4, 1, given);
  expect_one_kernel(result);
  const Subgraph subgraph{with_strides(graph), graph.inputs(), graph.outputs()};
  PortData inputs;
  for (const ValueIndex v : subgraph.inputs) inputs.pointers.push_back(given.at(graph.tensor(v).id).data());
  std::vector<Buffer> actual, expected;
  for (const ValueIndex v : subgraph.outputs) {
    actual.push_back(buffer_for(subgraph.graph.tensor(v)));
    expected.push_back(buffer_for(subgraph.graph.tensor(v)));
  }
  run_on_host(cpu_backend(), subgraph, inputs, actual);
  run_on_host(reference_backend(), subgraph, inputs, expected);
  for (size_t o = 0; o < actual.size(); ++o) EXPECT_TRUE(actual[o] == expected[o]) << "output " << o;
}

class IntegerKernels : public ::testing::TestWithParam<DataType> {};

TEST_P(IntegerKernels, CompareWithBroadcast) {
  for (const OpKind kind :
       {OpKind::Equal, OpKind::NotEqual, OpKind::Less, OpKind::LessEqual, OpKind::Greater, OpKind::GreaterEqual}) {
    GraphBuilder g;
    const auto a = g.input(GetParam(), {7, 45}), b = g.input(GetParam(), {45});
    g.op(kind, {a, b}, {}, boolean);
    expect_same_integers(g.finish(), {{a, integers(g.tensor(a), 0)}, {b, integers(g.tensor(b), 0)}});
  }
}

TEST_P(IntegerKernels, ArithmeticWrapsAround) {
  for (const OpKind kind : {OpKind::Add, OpKind::Subtract, OpKind::Multiply, OpKind::Divide, OpKind::Maximum, OpKind::Minimum,
                            OpKind::BitwiseAnd, OpKind::BitwiseOr, OpKind::BitwiseXor, OpKind::ShiftLeft, OpKind::ShiftRight}) {
    GraphBuilder g;
    const auto a = g.input(GetParam(), {7, 45}), b = g.input(GetParam(), {7, 45});
    g.op(kind, {a, b}, {}, GetParam());
    expect_same_integers(g.finish(), {{a, integers(g.tensor(a), 0)}, {b, integers(g.tensor(b), 0x55)}});
  }
}

// The sum wraps around before it is compared, although it stays inside the kernel.
TEST_P(IntegerKernels, SumsWrapAroundInsideAKernel) {
  GraphBuilder g;
  const auto a = g.input(GetParam(), {7, 45}), b = g.input(GetParam(), {7, 45});
  const auto sum = g.op(OpKind::Add, {a, b}, {}, GetParam());
  g.op(OpKind::Less, {sum, a}, {}, boolean);
  g.op(OpKind::TypeCast, {sum}, {}, f32);
  expect_same_integers(g.finish(), {{a, integers(g.tensor(a), 0)}, {b, integers(g.tensor(b), 0x55)}});
}

// Divisors of 0, and the one quotient that leaves the range of a signed type.
TEST_P(IntegerKernels, DivideWithoutFaults) {
  GraphBuilder g;
  const auto a = g.input(GetParam(), {7, 45}), b = g.input(GetParam(), {7, 45});
  g.op(OpKind::Divide, {a, b}, {}, GetParam());
  Buffer dividends = integers(g.tensor(a), 0), divisors = buffer_for(g.tensor(b));
  visit_integer_type(GetParam(), [&](auto of_type) {
    using T = decltype(of_type);
    for (int64_t i = 0; i < g.tensor(b).span(); ++i) {
      store_element(divisors.data(), i, static_cast<T>(i % 5 - 2));
      if (i % 4 == 0) store_element(dividends.data(), i, std::numeric_limits<T>::min());
    }
  });
  expect_same_integers(g.finish(), {{a, dividends}, {b, divisors}});
}

TEST_P(IntegerKernels, ShiftByAnyCount) {
  for (const OpKind kind : {OpKind::ShiftLeft, OpKind::ShiftRight}) {
    GraphBuilder g;
    const auto a = g.input(GetParam(), {3, 70}), count = g.input(GetParam(), {70});
    g.op(kind, {a, count}, {}, GetParam());
    Buffer counts = buffer_for(g.tensor(count));
    visit_integer_type(GetParam(), [&](auto of_type) {
      for (int64_t i = 0; i < 70; ++i) store_element(counts.data(), i, static_cast<decltype(of_type)>(i - 2));
    });
    expect_same_integers(g.finish(), {{a, integers(g.tensor(a), 0)}, {count, counts}});
  }
}

TEST_P(IntegerKernels, AreSelected) {
  GraphBuilder g;
  const auto a = g.input(GetParam(), {7, 45}), b = g.input(GetParam(), {45});
  g.op(OpKind::Select, {g.op(OpKind::Less, {a, b}, {}, boolean), a, b}, {}, GetParam());
  expect_same_integers(g.finish(), {{a, integers(g.tensor(a), 0)}, {b, integers(g.tensor(b), 0)}});
}

TEST_P(IntegerKernels, BecomeOthers) {
  for (const DataType to : {s32, s64, u16, u32, u64, s16, s8, u8, boolean, f32, DataType::bf16, DataType::f64}) {
    if (to == GetParam()) continue;
    GraphBuilder g;
    const auto a = g.input(GetParam(), {7, 45});
    g.op(OpKind::TypeCast, {a}, {}, to);
    if (is_floating(to))
      expect_one_kernel(expect_cpu_matches_reference(g.finish(), 4, 1, {{a, integers(g.tensor(a), 0)}}));
    else
      expect_same_integers(g.finish(), {{a, integers(g.tensor(a), 0)}});
  }
}

INSTANTIATE_TEST_SUITE_P(Types, IntegerKernels, ::testing::Values(s32, s64, u16, u32, u64, s16, s8, u8),
                         [](const auto& test) { return std::string(name_of(test.param)); });

// Integers on the middle between two neighbours of a type with few significant bits, and one to either side. Rounding through
// an intermediate type would turn the latter into the middle.
TEST(LongIntegerKernels, RoundOnce) {
  std::vector<int64_t> values{std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), -1};
  for (const int significant_bits : {53, 24, 11, 8, 4, 3}) {
    for (int exponent = significant_bits; exponent < 63; ++exponent) {
      const int64_t half_step = int64_t{1} << (exponent - significant_bits);
      for (const int64_t odd : {1, 3}) {
        for (const int64_t beside : {-1, 0, 1}) {
          values.push_back((int64_t{1} << exponent) + odd * half_step + beside);
          values.push_back(-values.back());
        }
      }
    }
  }
  for (const DataType from : {s64, u64})
    for (const DataType to : {f32, DataType::f64, DataType::bf16, DataType::f16}) {
      SCOPED_TRACE(join(name_of(from), " to ", name_of(to)));
      GraphBuilder g;
      const auto a = g.input(from, {static_cast<int64_t>(values.size())});
      g.op(OpKind::TypeCast, {a}, {}, to);
      Buffer data = buffer_for(g.tensor(a));
      for (size_t i = 0; i < values.size(); ++i) store_element(data.data(), static_cast<int64_t>(i), values[i]);
      expect_same_integers(g.finish(), {{a, data}});
    }
}

TEST(IntegersOfFloats, AreCutOff) {
  for (const DataType from : {f32, DataType::bf16, DataType::f64})
    for (const DataType to : {s32, s64, u16, u32, u64, s16, s8, u8, boolean}) {
      SCOPED_TRACE(join(name_of(from), " to ", name_of(to)));
      GraphBuilder g;
      const auto a = g.input(from, {16});
      g.op(OpKind::TypeCast, {a}, {}, to);
      Buffer data = buffer_for(g.tensor(a));
      const double values[] = {0,    -0.0, 0.9,   -0.9,         1.5,     -2.5,  1e6,  3e9,
                               -3e9, 1e30, -1e30, std::nan(""), 65535.7, 65536, 1e19, 4294967295.5};
      for (int64_t i = 0; i < 16; ++i) store_from_double(from, data.data(), i, values[i]);
      expect_same_integers(g.finish(), {{a, data}});
    }
}

// Floats as integers whose sign bit is flipped, and back, beside producers and consumers in other kernels.
TEST(BitsOfFloats, AreIntegersAndBack) {
  const std::pair<DataType, DataType> types[] = {
      {f32, s32}, {f32, u32}, {DataType::f64, s64}, {DataType::f64, u64}, {DataType::f16, s16}, {DataType::bf16, u16},
      {s64, u64}};
  for (const auto& [from, to] : types) {
    SCOPED_TRACE(join(name_of(from), " as ", name_of(to)));
    GraphBuilder g;
    const auto x = g.input(from, {7, 45}, {50, 1});
    const auto bits = g.op(OpKind::BitCast, {from == s64 ? x : g.op(OpKind::Abs, {x})}, {}, to);
    const auto mask = g.input(to, {});
    const auto back = g.op(OpKind::BitCast, {g.op(OpKind::BitwiseXor, {bits, mask}, {}, to)}, {}, from);
    g.op(OpKind::Add, {back, back}, {}, from);
    Buffer sign = buffer_for(g.tensor(mask));
    visit_integer_type(to, [&](auto of_type) {
      using Integer = decltype(of_type);
      store_element(sign.data(), 0, static_cast<Integer>(Integer{1} << (8 * sizeof(Integer) - 1)));
    });
    expect_cpu_matches_reference(g.finish(), 0, 1, {{mask, sign}});
  }
}

TEST(BitsOfFloats, OfEightBits) {
  for (const DataType from : {s8, DataType::f8_e4m3, DataType::f8_e5m2, boolean}) {
    SCOPED_TRACE(name_of(from));
    GraphBuilder g;
    const auto x = g.input(from, {5, 9});
    g.op(OpKind::TypeCast, {g.op(OpKind::BitCast, {x}, {}, u8)}, {}, s32);
    Buffer data = buffer_for(g.tensor(x));
    for (int64_t i = 0; i < 45; ++i) store_element(data.data(), i, static_cast<uint8_t>(from == boolean ? i % 2 : 5 * i));
    expect_cpu_matches_reference(g.finish(), 0, 1, {{x, data}});
  }
}

//   ids ──> >= 3 ─┐
//   mask ─> not ──and──> or ──> float ──> times x
TEST(MaskKernels, AreOneKernel) {
  GraphBuilder g;
  const auto ids = g.input(s64, {9, 33}), least = g.input(s64, {}), mask = g.input(boolean, {33}), x = g.input(f32, {9, 33});
  const auto late = g.op(OpKind::GreaterEqual, {ids, least}, {}, boolean);
  const auto seen = g.op(OpKind::LogicalAnd, {late, g.op(OpKind::LogicalNot, {mask})});
  const auto any = g.op(OpKind::LogicalOr, {seen, g.op(OpKind::Equal, {mask, late}, {}, boolean)});
  g.op(OpKind::Multiply, {g.op(OpKind::TypeCast, {any}, {}, f32), x});
  expect_one_kernel(expect_cpu_matches_reference(g.finish(), 4, 1,
                                                 {{ids, integers(g.tensor(ids), 0)}, {least, integers(g.tensor(least), 0)}}));
}

// A cast to an integer and back must not be removed.
TEST(MaskKernels, CastsThereAndBackStay) {
  GraphBuilder g;
  const auto whole = g.op(OpKind::TypeCast, {g.input(f32, {40})}, {}, s32);
  g.op(OpKind::Subtract, {g.op(OpKind::TypeCast, {whole}, {}, f32), g.input(f32, {40})});
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

}  // namespace
}  // namespace lamina::testing
