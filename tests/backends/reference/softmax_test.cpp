// SoftMax and LogSoftmax: by hand, masked rows, gradients.
#include <limits>

#include "backends/reference/gradient_check.h"
#include "support/random_tensor.h"

namespace lamina::testing {
namespace {

using ::testing::ElementsAre;
constexpr DataType f64 = DataType::f64;
const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();
const double kLn3 = std::log(3.0);

TEST(ReferenceSoftMax, NormalizesAlongItsAxis) {
  OpCase last(OpKind::SoftMax), first(OpKind::SoftMax);
  last.input({2, 2}, {0, kLn3, 5, 5}).outputs({f64, f64});
  expect_close(last.result(0), {0.25, 0.75, 0.5, 0.5});
  expect_close(last.result(1), {std::log(4.0), 5 + std::log(2.0)});
  EXPECT_EQ(last.run()[1].shape, Dims({2, 1}));
  first.input({2, 2}, {0, 1, kLn3, 1}).attr("axis", -2);
  expect_close(first.result(), {0.25, 0.5, 0.75, 0.5});
}

TEST(ReferenceSoftMax, DoesNotOverflow) {
  OpCase op(OpKind::SoftMax);
  op.input({1, 2}, {1e6, 1e6 + kLn3}).outputs({f64, f64});
  expect_close(op.result(0), {0.25, 0.75}, 1e-9);
}

TEST(ReferenceSoftMax, MaskedRowsFollowTheMode) {
  const Numbers src{-kInf, -kInf, 0, -kInf};
  OpCase plain(OpKind::SoftMax), zero(OpKind::SoftMax);
  plain.input({2, 2}, src);
  expect_close(plain.result(), {kNaN, kNaN, 1, 0});
  zero.input({2, 2}, src).attr("mode", "inf_as_zero").outputs({f64, f64});
  expect_close(zero.result(0), {0, 0, 1, 0});
  expect_close(zero.result(1), {0, 0});
}

TEST(ReferenceSoftMax, NanSpoilsItsOwnRowOnly) {
  for (const char* mode : {"none", "inf_as_zero"}) {
    OpCase op(OpKind::SoftMax);
    op.input({3, 2}, {kNaN, -kInf, 1, 1, kInf, 0}).attr("mode", mode);
    expect_close(op.result(), {kNaN, kNaN, 0.5, 0.5, kNaN, kNaN});
  }
}

TEST(ReferenceLogSoftmax, IsTheLogarithm) {
  OpCase op(OpKind::LogSoftmax);
  op.input({1, 3}, {0, kLn3, -kInf});
  expect_close(op.result(), {-std::log(4.0), kLn3 - std::log(4.0), -kInf});
}

TEST(ReferenceSoftMaxBackward, AgreesWithFiniteDifferences) {
  RandomTensor random(11);
  const Dims shape{2, 4, 3};
  const Numbers src = random.uniform(24, -3, 3), dy = random.uniform(24, -1, 1);
  const std::pair<OpKind, OpKind> kinds[] = {{OpKind::SoftMax, OpKind::SoftMaxBackward},
                                             {OpKind::LogSoftmax, OpKind::LogSoftmaxBackward}};
  for (const auto& [forward_kind, backward_kind] : kinds)
    for (const int axis : {0, 1, -1}) {
      OpCase forward(forward_kind), backward(backward_kind);
      forward.input(shape, src).attr("axis", axis);
      backward.input(shape, dy).input(shape, forward.result()).attr("axis", axis);
      expect_close(backward.result(), gradient_by_differences(forward, 0, dy), 1e-8);
    }
}

}  // namespace
}  // namespace lamina::testing
