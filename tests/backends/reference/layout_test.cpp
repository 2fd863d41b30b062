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

TEST(ReferenceBitCast, ReadsTheBits) {
  OpCase op(OpKind::BitCast);
  op.input({3}, {1, -2.5, 3.75}, f32).outputs({DataType::s32});
  EXPECT_THAT(op.result(), ElementsAre(1065353216, -1071644672, 1081081856));
  OpCase back(OpKind::BitCast);
  back.input({2}, {0x3c00, 0xbc00}, DataType::u16).outputs({DataType::f16});
  EXPECT_THAT(back.result(), ElementsAre(1, -1));
  OpCase wide(OpKind::BitCast);
  wide.input({1}, {-2}, DataType::f64).outputs({DataType::u64});
  EXPECT_EQ(wide.run()[0].integers, std::vector<int64_t>{-4611686018427387904});
}

TEST(ReferenceSlice, TakesEveryOtherElementOfAPart) {
  OpCase op(OpKind::Slice);
  op.input({2, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, f32).outputs({f32});
  op.attr("starts", list({-1, 1})).attr("ends", list({INT64_MAX, 5})).attr("steps", list({1, 2}));
  EXPECT_EQ(op.run()[0].shape, Dims({1, 2}));
  EXPECT_THAT(op.result(), ElementsAre(6, 8));
  op.attr("starts", list({0})).attr("ends", list({-3})).attr("axes", list({1})).attr("steps", list({}));
  EXPECT_THAT(op.result(), ElementsAre(0, 1, 5, 6));
}

TEST(ReferenceSlice, KeepsEveryBitOfLongIntegers) {
  OpCase op(OpKind::Slice);
  op.input({3}, {1, 9007199254740992, 3}, DataType::s64).outputs({DataType::s64});
  op.attr("starts", list({1})).attr("ends", list({2}));
  EXPECT_EQ(op.run()[0].integers, std::vector<int64_t>{9007199254740992});
}

TEST(ReferenceExpand, RepeatsWhereTheExtentIsOne) {
  OpCase op(OpKind::Expand);
  op.input({2, 1}, {1, 2}, f32).attr("shape", list({2, -1, 3})).outputs({f32});
  EXPECT_EQ(op.run()[0].shape, Dims({2, 2, 3}));
  EXPECT_THAT(op.result(), ElementsAre(1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2));
}

TEST(ReferenceGenIndex, CountsAlongItsAxis) {
  OpCase op(OpKind::GenIndex);
  op.input({2, 3}, Numbers(6, 0.5), f32).attr("axis", 0).outputs({DataType::s32});
  EXPECT_THAT(op.result(), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(op.attr("axis", -1).result(), ElementsAre(0, 1, 2, 0, 1, 2));
}

}  // namespace
}  // namespace lamina::testing
