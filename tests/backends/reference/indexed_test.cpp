// Gather, and its gradient.
#include "backends/reference/op_case.h"
#include "support/index_error.h"

namespace lamina::testing {
namespace {

using ::testing::ElementsAre;
constexpr DataType f32 = DataType::f32, s32 = DataType::s32, s64 = DataType::s64;

TEST(ReferenceGather, TakesRowsByTheirIndex) {
  OpCase op(OpKind::Gather);
  op.input({3, 2}, {0, 1, 2, 3, 4, 5}, f32).input({2}, {2, -3}, s64).outputs({f32});
  EXPECT_THAT(op.result(), ElementsAre(4, 5, 0, 1));
  EXPECT_THAT(op.attr("axis", 1).set(1, {1, 0}).result(), ElementsAre(1, 0, 3, 2, 5, 4));
}

TEST(ReferenceGather, NamesAnIndexThatPointsNowhere) {
  OpCase op(OpKind::Gather);
  op.input({3}, {0, 1, 2}, f32).input({2, 2}, {0, 1, 3, 9}, s32).outputs({f32});
  EXPECT_EQ(index_error_of([&] { op.run(); }), "Gather \"op0\": input indices holds 3 at position [1, 0], allowed is -3..2");
}

TEST(ReferenceScatterAdd, AddsWhatHasOneIndex) {
  OpCase op(OpKind::ScatterAdd);
  op.input({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, f32).input({4}, {1, 0, 1, -1}, s64).attr("extent", 3).outputs({f32});
  EXPECT_THAT(op.result(), ElementsAre(3, 4, 6, 8, 7, 8));
  EXPECT_THAT(op.attr("ignore_index", 1).result(), ElementsAre(3, 4, 0, 0, 7, 8));
}

// The gradient of sum(gather(x) * w) is scatter_add(w), for every element of x.
TEST(ReferenceScatterAdd, IsTheGradientOfGather) {
  const Numbers indices{2, 0, 2, 1, 2, 0}, weights{1, -2, 3, 5, 7, 11, 13, -17, 19, 23, 29, 31};
  OpCase gather(OpKind::Gather), scatter(OpKind::ScatterAdd);
  gather.input({2, 4}, Numbers(8, 0)).input({2, 3}, indices, s64).attr("axis", 1);
  scatter.input({2, 2, 3}, weights).input({2, 3}, indices, s64).attr("axis", 1).attr("extent", 4);
  const Numbers gradient = scatter.result();
  for (size_t i = 0; i < 8; ++i) {
    Numbers unit(8, 0);
    unit[i] = 1;
    const Numbers gathered = gather.set(0, unit).result();
    double along = 0;
    for (size_t k = 0; k < gathered.size(); ++k) along += gathered[k] * weights[k];
    EXPECT_EQ(gradient[i], along) << i;
  }
}

}  // namespace
}  // namespace lamina::testing
