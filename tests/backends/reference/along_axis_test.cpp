// TopK, CumSum, linear recurrences and GroupedMatMul.
#include <limits>

#include "backends/reference/gradient_check.h"
#include "support/index_error.h"
#include "support/random_tensor.h"

namespace lamina::testing {
namespace {

using ::testing::ElementsAre;
constexpr DataType f32 = DataType::f32, f64 = DataType::f64, s32 = DataType::s32, s64 = DataType::s64;
const double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

TEST(ReferenceTopK, TakesTheLargestInOrder) {
  OpCase op(OpKind::TopK);
  op.input({2, 4}, {3, 1, 4, 1, -5, 9, -2, 6}).attr("k", 2).outputs({f64, s64});
  EXPECT_THAT(op.result(0), ElementsAre(4, 3, 9, 6));
  EXPECT_THAT(op.result(1), ElementsAre(2, 0, 1, 3));
  op.attr("axis", 0).attr("k", 1);
  EXPECT_THAT(op.result(0), ElementsAre(3, 9, 4, 6));
  EXPECT_THAT(op.result(1), ElementsAre(0, 1, 0, 1));
}

TEST(ReferenceTopK, KeepsTheOrderOfEqualElements) {
  OpCase op(OpKind::TopK);
  op.input({5}, {2, 1, 2, 1, 2}).attr("k", 5).outputs({f64, s64});
  EXPECT_THAT(op.result(1), ElementsAre(0, 2, 4, 1, 3));
  EXPECT_THAT(op.attr("largest", false).result(1), ElementsAre(1, 3, 0, 2, 4));
}

TEST(ReferenceTopK, ANanIsTheLargest) {
  OpCase op(OpKind::TopK);
  op.input({4}, {kInf, kNan, -kInf, 0}).attr("k", 4).outputs({f64, s64});
  EXPECT_THAT(op.result(1), ElementsAre(1, 0, 3, 2));
  EXPECT_THAT(op.attr("largest", false).result(1), ElementsAre(2, 3, 0, 1));
}

TEST(ReferenceCumSum, AddsFromTheBeginning) {
  OpCase op(OpKind::CumSum);
  op.input({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(op.result(), ElementsAre(1, 3, 6, 4, 9, 15));
  EXPECT_THAT(op.attr("exclusive", true).result(), ElementsAre(0, 1, 3, 0, 4, 9));
  EXPECT_THAT(op.attr("reverse", true).result(), ElementsAre(5, 3, 0, 11, 6, 0));
  EXPECT_THAT(op.attr("exclusive", false).result(), ElementsAre(6, 5, 3, 15, 11, 6));
  EXPECT_THAT(op.attr("reverse", false).attr("axis", 0).result(), ElementsAre(1, 2, 3, 5, 7, 9));
}

TEST(ReferenceCumProd, MultipliesFromTheBeginning) {
  OpCase op(OpKind::CumProd);
  op.input({2, 3}, {1, 2, 3, 4, -5, 6});
  EXPECT_THAT(op.result(), ElementsAre(1, 2, 6, 4, -20, -120));
  EXPECT_THAT(op.attr("exclusive", true).result(), ElementsAre(1, 1, 2, 1, 4, -20));
  EXPECT_THAT(op.attr("reverse", true).result(), ElementsAre(6, 3, 1, -30, 6, 1));
  EXPECT_THAT(op.attr("exclusive", false).attr("axis", 0).result(), ElementsAre(4, -10, 18, 4, -5, 6));
}

TEST(ReferenceLinearRecurrence, MultipliesTheStateAndAdds) {
  OpCase op(OpKind::LinearRecurrence);
  op.input({2, 3}, {7, 2, -1, 5, 0.5, 3}).input({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(op.result(), ElementsAre(1, 4, -1, 4, 7, 27));
  EXPECT_THAT(op.attr("reverse", true).result(), ElementsAre(57, 8, 3, 44, 8, 6));
  EXPECT_THAT(op.attr("reverse", false).attr("axis", 0).result(), ElementsAre(1, 2, 3, 9, 6, 15));
}

// Loss: the sum of diff_dst * dst.
TEST(ReferenceLinearRecurrenceBackward, IsTheGradient) {
  OpCase op(OpKind::LinearRecurrenceBackward);
  op.input({3}, {1, 10, 100}).input({3}, {7, 2, -1}).input({3}, {1, 4, -1}).outputs({f64, f64});
  EXPECT_THAT(op.result(0), ElementsAre(0, -90, 400));
  EXPECT_THAT(op.result(1), ElementsAre(-179, -90, 100));
  op.attr("reverse", true);
  EXPECT_THAT(op.result(0), ElementsAre(1 * 4, 17 * -1, 0));
  EXPECT_THAT(op.result(1), ElementsAre(1, 17, 134));
}

TEST(ReferenceLinearRecurrenceBackward, AgreesWithFiniteDifferences) {
  RandomTensor random(5);
  const Dims shape{2, 4, 3};
  const Numbers factors = random.uniform(24, -1, 1), src = random.uniform(24, -1, 1), dy = random.uniform(24, -1, 1);
  for (const int axis : {0, 1, -1})
    for (const bool reverse : {false, true}) {
      OpCase forward(OpKind::LinearRecurrence), backward(OpKind::LinearRecurrenceBackward);
      forward.input(shape, factors).input(shape, src).attr("axis", axis).attr("reverse", reverse);
      backward.input(shape, dy).input(shape, factors).input(shape, forward.result()).outputs({f64, f64});
      backward.attr("axis", axis).attr("reverse", reverse);
      for (const size_t input : {0, 1}) expect_close(backward.result(input), gradient_by_differences(forward, input, dy), 1e-8);
    }
}

TEST(ReferenceCumProd, IntegersWrapAround) {
  OpCase op(OpKind::CumProd);
  op.input({3}, {65536, 65536, 5}, s32).outputs({s32});
  EXPECT_THAT(op.result(), ElementsAre(65536, 0, 0));
}

TEST(ReferenceCumSum, IntegersWrapAround) {
  OpCase op(OpKind::CumSum);
  op.input({3}, {2147483647, 1, 5}, s32).outputs({s32});
  EXPECT_THAT(op.result(), ElementsAre(2147483647, -2147483648.0, -2147483643.0));
}

// Two groups of rows: [1 2] by the first matrix, the other two rows by the second.
TEST(ReferenceGroupedMatMul, MultipliesEachGroupByItsMatrix) {
  OpCase op(OpKind::GroupedMatMul);
  op.input({3, 2}, {1, 2, 3, 4, 5, 6}).input({2, 2, 2}, {1, 0, 0, 1, 0, 1, 10, 0}).input({2}, {1, 3}, s32);
  EXPECT_THAT(op.result(), ElementsAre(1, 2, 40, 3, 60, 5));
  EXPECT_THAT(op.attr("transpose_b", true).result(), ElementsAre(1, 2, 4, 30, 6, 50));
}

// Three columns of src by three rows of weights: the first, then the other two, then none.
TEST(ReferenceGroupedMatMul, MultipliesGroupsOfColumns) {
  OpCase op(OpKind::GroupedMatMul);
  op.input({2, 3}, {1, 2, 3, 4, 5, 6}).input({3, 1}, {1, 10, 100}).input({3}, {1, 3, 3}, s32);
  EXPECT_THAT(op.result(), ElementsAre(1, 4, 320, 650, 0, 0));
}

TEST(ReferenceGroupedMatMul, RowsAfterTheLastGroupAreZero) {
  OpCase op(OpKind::GroupedMatMul);
  op.input({3, 1}, {1, 2, 3}).input({3, 1, 1}, {10, 100, 1000}).input({3}, {1, 0, 2}, s64);
  EXPECT_THAT(op.result(), ElementsAre(10, 2000, 0));  // the second group ends before the first and is empty
}

TEST(ReferenceGroupedMatMul, NamesAGroupThatEndsOutside) {
  OpCase op(OpKind::GroupedMatMul);
  op.input({3, 1}, {1, 2, 3}).input({2, 1, 1}, {1, 1}).input({2}, {1, 4}, s32);
  EXPECT_EQ(index_error_of([&] { op.run(); }), "GroupedMatMul \"op0\": input offsets holds 4 at position [1], allowed is 0..3");
}

}  // namespace
}  // namespace lamina::testing
