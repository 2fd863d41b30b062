// Reductions over each choice of axes, over nothing, and with NaN.
#include <limits>

#include "backends/reference/op_case.h"

namespace lamina::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

OpCase reduction(OpKind kind, const Dims& shape, const Numbers& src, std::vector<int64_t> axes) {
  OpCase op(kind);
  op.input(shape, src).attr("axes", Attribute(std::move(axes)));
  return op;
}

const Numbers kSix{1, -2, 3, -4, 5, -6};

TEST(ReferenceReduce, Formulas) {
  EXPECT_THAT(reduction(OpKind::ReduceSum, {2, 3}, kSix, {1}).result(), ElementsAre(2, -5));
  EXPECT_THAT(reduction(OpKind::ReduceMean, {2, 3}, kSix, {1}).result(), ElementsAre(2.0 / 3, -5.0 / 3));
  EXPECT_THAT(reduction(OpKind::ReduceL1, {2, 3}, kSix, {1}).result(), ElementsAre(6, 15));
  EXPECT_THAT(reduction(OpKind::ReduceL2, {2, 3}, {3, 4, 0, 0, 0, 2}, {1}).result(), ElementsAre(5, 2));
  EXPECT_THAT(reduction(OpKind::ReduceMax, {2, 3}, kSix, {1}).result(), ElementsAre(3, 5));
  EXPECT_THAT(reduction(OpKind::ReduceMin, {2, 3}, kSix, {1}).result(), ElementsAre(-2, -6));
  EXPECT_THAT(reduction(OpKind::ReduceProd, {2, 3}, kSix, {1}).result(), ElementsAre(-6, 120));
}

TEST(ReferenceReduce, TakesAnyAxes) {
  Numbers src;
  for (int i = 0; i < 12; ++i) src.push_back(i);
  const Dims shape{2, 3, 2};
  EXPECT_THAT(reduction(OpKind::ReduceSum, shape, src, {0}).result(), ElementsAre(6, 8, 10, 12, 14, 16));
  EXPECT_THAT(reduction(OpKind::ReduceSum, shape, src, {-1, 0}).result(), ElementsAre(14, 22, 30));
  const OpCase kept = reduction(OpKind::ReduceSum, shape, src, {0, 2}).attr("keep_dims", true);
  EXPECT_EQ(kept.run()[0].shape, Dims({1, 3, 1}));
  EXPECT_THAT(reduction(OpKind::ReduceSum, shape, src, {0, 1, 2}).result(), ElementsAre(66));
}

TEST(ReferenceReduce, TakesAxesFromAnInput) {
  OpCase op(OpKind::ReduceSum);
  op.input({2, 3}, kSix).input({1}, {-2}, DataType::s32).output_shape({3});
  EXPECT_THAT(op.result(), ElementsAre(-3, 3, -3));
}

TEST(ReferenceReduce, OverNothingGivesTheNeutralValue) {
  EXPECT_THAT(reduction(OpKind::ReduceSum, {2, 0}, {}, {1}).result(), ElementsAre(0, 0));
  EXPECT_THAT(reduction(OpKind::ReduceL2, {2, 0}, {}, {1}).result(), ElementsAre(0, 0));
  EXPECT_THAT(reduction(OpKind::ReduceProd, {2, 0}, {}, {1}).result(), ElementsAre(1, 1));
  EXPECT_THAT(reduction(OpKind::ReduceMax, {2, 0}, {}, {1}).result(), Each(-kInf));
  EXPECT_THAT(reduction(OpKind::ReduceMin, {2, 0}, {}, {1}).result(), Each(kInf));
  expect_close(reduction(OpKind::ReduceMean, {2, 0}, {}, {1}).result(), {kNaN, kNaN});
  EXPECT_TRUE(reduction(OpKind::ReduceSum, {0, 2}, {}, {1}).result().empty());
}

TEST(ReferenceReduce, NanSpoilsItsOwnResultOnly) {
  for (const OpKind kind : {OpKind::ReduceMax, OpKind::ReduceMin, OpKind::ReduceSum, OpKind::ReduceProd})
    expect_close(reduction(kind, {2, 2}, {kNaN, 1, 2, 2}, {0}).result(), {kNaN, kind == OpKind::ReduceSum   ? 3.0
                                                                                : kind == OpKind::ReduceMin ? 1.0
                                                                                                            : 2.0});
}

}  // namespace
}  // namespace lamina::testing
