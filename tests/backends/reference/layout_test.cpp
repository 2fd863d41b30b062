// Ops that move values, and GenIndex.
#include "backends/reference/op_case.h"

namespace lamina::testing {
namespace {

using ::testing::ElementsAre;
constexpr DataType f32 = DataType::f32;

Attribute list(std::vector<int64_t> values) { return values; }

TEST(ReferenceReshape, KeepsTheRowMajorOrder) {
  OpCase op(OpKind::StaticReshape);
  op.input({2, 3}, {1, 2, 3, 4, 5, 6}, f32).attr("shape", list({0, -1, 1})).attr("special_zero", true).outputs({f32});
  EXPECT_EQ(op.run()[0].shape, Dims({2, 3, 1}));
  EXPECT_THAT(op.result(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(ReferenceTranspose, MovesAxes) {
  // src [1, 2, 3] -> [3, 1, 2]
  OpCase op(OpKind::StaticTranspose);
  op.input({1, 2, 3}, {1, 2, 3, 4, 5, 6}, f32).attr("order", list({-1, 0, 1})).outputs({f32});
  EXPECT_EQ(op.run()[0].shape, Dims({3, 1, 2}));
  EXPECT_THAT(op.result(), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(ReferenceTranspose, AnEmptyOrderReversesTheAxes) {
  OpCase op(OpKind::StaticTranspose);
  op.input({2, 3}, {1, 2, 3, 4, 5, 6}, f32).attr("order", list({})).outputs({f32});
  EXPECT_THAT(op.result(), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(ReferenceConcat, JoinsAlongAnAxis) {
  OpCase op(OpKind::Concat);
  op.input({2, 1}, {1, 2}, f32).input({2, 2}, {3, 4, 5, 6}, f32).input({2, 0}, {}, f32).attr("axis", -1).outputs({f32});
  EXPECT_THAT(op.result(), ElementsAre(1, 3, 4, 2, 5, 6));
}

TEST(ReferenceGenIndex, CountsAlongItsAxis) {
  OpCase op(OpKind::GenIndex);
  op.input({2, 3}, Numbers(6, 0.5), f32).attr("axis", 0).outputs({DataType::s32});
  EXPECT_THAT(op.result(), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(op.attr("axis", -1).result(), ElementsAre(0, 1, 2, 0, 1, 2));
}

}  // namespace
}  // namespace lamina::testing
