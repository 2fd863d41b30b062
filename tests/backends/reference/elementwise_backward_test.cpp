// Gradients of the elementwise ops by finite differences of the forward op, from src and, if the op supports it, from dst.
#include "backends/reference/gradient_check.h"

namespace lamina::testing {
namespace {

using ::testing::ElementsAre;

struct Pair {
  const char* name;
  OpKind forward, backward;
  Attributes attributes;
  Numbers src;  // away from kinks
  bool offers_dst = false;
};

void PrintTo(const Pair& pair, std::ostream* out) { *out << pair.name; }

class ReferenceGradient : public ::testing::TestWithParam<Pair> {
 protected:
  static OpCase with_attributes(OpKind kind, const Attributes& attributes) {
    OpCase op(kind);
    for (const auto& [name, value] : attributes) op.attr(name, value);
    return op;
  }
  static Dims shape() { return {static_cast<int64_t>(GetParam().src.size())}; }
  static Numbers weights() {
    Numbers w;
    for (size_t i = 0; i < GetParam().src.size(); ++i) w.push_back(0.5 + static_cast<double>(i));
    return w;
  }
  static OpCase forward() {
    OpCase op = with_attributes(GetParam().forward, GetParam().attributes);
    op.input(shape(), GetParam().src);
    return op;
  }
  static OpCase backward(const Numbers& data) {
    OpCase op = with_attributes(GetParam().backward, GetParam().attributes);
    op.input(shape(), data).input(shape(), weights());
    return op;
  }
};

TEST_P(ReferenceGradient, AgreesWithFiniteDifferences) {
  OpCase op = backward(GetParam().src);
  if (GetParam().offers_dst) op.attr("use_dst", false);
  expect_close(op.result(), gradient_by_differences(forward(), 0, weights()), 1e-8);
}

class ReferenceGradientFromDst : public ReferenceGradient {};

TEST_P(ReferenceGradientFromDst, AgreesWithFiniteDifferences) {
  const OpCase op = backward(forward().result());
  expect_close(op.result(), gradient_by_differences(forward(), 0, weights()), 1e-8);
}

const Numbers kAround{-5, -2.5, -1, -0.25, 0.25, 1, 2.5, 5};
const Numbers kPositive{0.125, 0.5, 1, 3};

const std::vector<Pair> kPairs{
    Pair{"Abs", OpKind::Abs, OpKind::AbsBackward, {}, kAround},
    Pair{"Clamp", OpKind::Clamp, OpKind::ClampBackward, {{"min", -2.0F}, {"max", 3.0F}}, kAround, true},
    Pair{"Elu", OpKind::Elu, OpKind::EluBackward, {{"alpha", 0.5F}}, kAround, true},
    Pair{"GeluErf", OpKind::GELU, OpKind::GELUBackward, {}, kAround},
    Pair{"GeluTanh", OpKind::GELU, OpKind::GELUBackward, {{"mode", std::string("gelu_tanh")}}, kAround},
    Pair{"HardSigmoid", OpKind::HardSigmoid, OpKind::HardSigmoidBackward, {{"alpha", 0.25F}, {"beta", 0.4F}}, kAround},
    Pair{"HardSwish", OpKind::HardSwish, OpKind::HardSwishBackward, {}, kAround},
    Pair{"Mish", OpKind::Mish, OpKind::MishBackward, {}, kAround},
    Pair{"ReLU", OpKind::ReLU, OpKind::ReLUBackward, {}, kAround, true},
    Pair{"Sigmoid", OpKind::Sigmoid, OpKind::SigmoidBackward, {}, kAround, true},
    Pair{"SoftPlus", OpKind::SoftPlus, OpKind::SoftPlusBackward, {{"beta", 1.5F}}, kAround},
    Pair{"Sqrt", OpKind::Sqrt, OpKind::SqrtBackward, {}, kPositive, true},
    Pair{"Tanh", OpKind::Tanh, OpKind::TanhBackward, {}, kAround, true}};

std::vector<Pair> pairs_with_dst() {
  std::vector<Pair> found;
  for (const Pair& pair : kPairs)
    if (pair.offers_dst) found.push_back(pair);
  return found;
}

std::string name_of_pair(const ::testing::TestParamInfo<Pair>& instance) { return instance.param.name; }

INSTANTIATE_TEST_SUITE_P(Ops, ReferenceGradient, ::testing::ValuesIn(kPairs), name_of_pair);
INSTANTIATE_TEST_SUITE_P(Ops, ReferenceGradientFromDst, ::testing::ValuesIn(pairs_with_dst()), name_of_pair);

OpCase backward(OpKind kind, const Numbers& src) {
  const auto count = static_cast<int64_t>(src.size());
  OpCase op(kind);
  op.input({count}, src).input({count}, Numbers(src.size(), 2.0));
  return op;
}

TEST(ReferenceGradientAtKinks, IsThatOfTheDocument) {
  EXPECT_THAT(backward(OpKind::AbsBackward, {0}).result(), ElementsAre(0));
  EXPECT_THAT(backward(OpKind::ReLUBackward, {0}).attr("use_dst", false).result(), ElementsAre(0));
  EXPECT_THAT(backward(OpKind::HardSwishBackward, {-3, 3}).result(), ElementsAre(0, 2));
  EXPECT_THAT(backward(OpKind::ClampBackward, {-1, 1}).attr("min", -1.0).attr("max", 1.0).result(), ElementsAre(0, 0));
  EXPECT_THAT(backward(OpKind::HardSigmoidBackward, {-2, 2}).attr("alpha", 0.25).attr("beta", 0.5).result(), ElementsAre(0, 0));
}

TEST(ReferenceGradientFarOut, NeitherOverflowsNorCancels) {
  EXPECT_THAT(backward(OpKind::MishBackward, {800, -800}).result(), ElementsAre(2, 0));
  EXPECT_THAT(backward(OpKind::GELUBackward, {800, -800}).result(), ElementsAre(2, 0));
  EXPECT_THAT(backward(OpKind::GELUBackward, {1e20, -1e20}).attr("mode", "gelu_tanh").result(), ElementsAre(2, 0));
  EXPECT_NEAR(backward(OpKind::SigmoidBackward, {300}).attr("use_dst", false).result()[0] / (2 * std::exp(-300.0)), 1, 1e-13);
  EXPECT_NEAR(backward(OpKind::TanhBackward, {100}).attr("use_dst", false).result()[0] / (8 * std::exp(-200.0)), 1, 1e-13);
}

}  // namespace
}  // namespace lamina::testing
