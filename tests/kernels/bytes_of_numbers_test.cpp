// When a ReLU may clear NaN, and which values are known to be numbers.
#include "kernels/bytes_of_numbers.h"

#include <gtest/gtest.h>

#include <functional>

#include "kernels/builder.h"

namespace lamina::kernel {
namespace {

// dst = made(max(x, 0)), over rows of 64.
Kernel relu_then(const std::function<Value(Value)>& made, DataType dst_type = DataType::s8) {
  Builder k("relu", {4, 64}, 1);
  const int x = k.add_arg({.name = "x", .strides = {64, 1}, .table = {}});
  const int dst = k.add_arg({.name = "dst", .dtype = dst_type, .output = true, .strides = {64, 1}, .table = {}});
  k.store(made(max(k.load(x), 0)), dst);
  return k.finish();
}

NodeIndex relu_of(const Kernel& kernel) {
  for (size_t i = 0; i < kernel.nodes.size(); ++i)
    if (kernel.nodes[i].op == MapOp::maximum) return static_cast<NodeIndex>(i);
  return -1;
}
NodeIndex stored_by(const Kernel& kernel) { return kernel.nodes.back().operands[0]; }

bool clears(const Kernel& kernel) { return may_clear_nan(kernel, relu_of(kernel)); }

TEST(ReluMayClearNan, BeforeProductsThatBecomeIntegers) {
  EXPECT_TRUE(clears(relu_then([](Value x) { return x; })));
  EXPECT_TRUE(clears(relu_then([](Value x) { return x * 3.0; })));
  EXPECT_TRUE(clears(relu_then([](Value x) { return fma(x, x.builder->constant(0.5, Type::f32), x * 1e-9); })));
}

TEST(ReluMayClearNan, NotWhereTheResultMayDiffer) {
  EXPECT_FALSE(clears(relu_then([](Value x) { return x * 3.0; }, DataType::f32)));  // NaN is stored
  EXPECT_FALSE(clears(relu_then([](Value x) { return x + 3.0; })));                 // 3, and not 0 of NaN
  EXPECT_FALSE(clears(
      relu_then([](Value x) { return fma(x, x.builder->constant(2.0, Type::f32), x.builder->constant(3.0, Type::f32)); })));
  EXPECT_FALSE(clears(relu_then([](Value x) { return 1.0 / x; })));
  EXPECT_FALSE(clears(relu_then([](Value x) { return max(x, 1.0); })));
}

TEST(ReluMayClearNan, IsMeantOfAMaximumWithZero) {
  const Kernel kernel = relu_then([](Value x) { return x; });
  for (size_t i = 0; i < kernel.nodes.size(); ++i)
    EXPECT_EQ(may_clear_nan(kernel, static_cast<NodeIndex>(i)), static_cast<NodeIndex>(i) == relu_of(kernel));
}

TEST(RangeOf, AQuotientOfAClearedReluByTwoPartsOfTheInverse) {
  const auto quotient = [](double high, double low) {
    return relu_then([=](Value x) { return fma(x, x.builder->constant(high, Type::f32), x * low); });
  };
  const auto stored_range = [](const Kernel& kernel) { return range_of(kernel, stored_by(kernel)); };
  EXPECT_EQ(stored_range(quotient(0.5, 1e-9)), NumberRange::nonnegative);
  EXPECT_EQ(stored_range(quotient(-0.5, -1e-9)), NumberRange::numbers);
  EXPECT_EQ(stored_range(quotient(0.5, -1e-9)), NumberRange::any);  // infinity minus infinity
  EXPECT_EQ(stored_range(quotient(0.5, 0)), NumberRange::any);      // 0 times infinity
  EXPECT_EQ(stored_range(relu_then([](Value x) { return x * -2.0 * -2.0; })), NumberRange::numbers);
  EXPECT_EQ(stored_range(relu_then([](Value x) { return x * 2.0; })), NumberRange::nonnegative);
  EXPECT_EQ(stored_range(relu_then([](Value x) { return x + 3.0; })), NumberRange::any);
}

}  // namespace
}  // namespace lamina::kernel
