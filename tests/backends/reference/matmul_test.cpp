// MatMul: NumPy's rules for ranks and batches, transposes, bias.
#include "backends/reference/op_case.h"

namespace lamina::testing {
namespace {

using ::testing::ElementsAre;
constexpr DataType f32 = DataType::f32;

OpCase matmul(const Dims& a, const Numbers& left, const Dims& b, const Numbers& right) {
  OpCase op(OpKind::MatMul);
  op.input(a, left, f32).input(b, right, f32).outputs({f32});
  return op;
}

const Numbers kSix{1, 2, 3, 4, 5, 6};

TEST(ReferenceMatMul, MultipliesMatrices) {
  // [1 2 3; 4 5 6] * [1 4; 2 5; 3 6] = [14 32; 32 77]
  EXPECT_THAT(matmul({2, 3}, kSix, {3, 2}, {1, 4, 2, 5, 3, 6}).result(), ElementsAre(14, 32, 32, 77));
  EXPECT_THAT(matmul({2, 3}, kSix, {2, 3}, kSix).attr("transpose_b", true).result(), ElementsAre(14, 32, 32, 77));
  EXPECT_THAT(matmul({3, 2}, {1, 4, 2, 5, 3, 6}, {3, 2}, {1, 4, 2, 5, 3, 6}).attr("transpose_a", true).result(),
              ElementsAre(14, 32, 32, 77));
}

TEST(ReferenceMatMul, VectorsDropTheirAxis) {
  EXPECT_THAT(matmul({3}, {1, 1, 1}, {3}, {1, 2, 3}).result(), ElementsAre(6));
  EXPECT_THAT(matmul({2, 3}, kSix, {3}, {1, 1, 1}).result(), ElementsAre(6, 15));
  EXPECT_THAT(matmul({2}, {1, 1}, {2, 3}, kSix).result(), ElementsAre(5, 7, 9));
}

TEST(ReferenceMatMul, BatchesBroadcast) {
  // [2, 1, 1, 2] x [3, 2, 1] -> [2, 3, 1, 1]
  const OpCase op = matmul({2, 1, 1, 2}, {1, 2, 3, 4}, {3, 2, 1}, {1, 0, 0, 1, 1, 1});
  EXPECT_EQ(op.run()[0].shape, Dims({2, 3, 1, 1}));
  EXPECT_THAT(op.result(), ElementsAre(1, 2, 3, 3, 4, 7));
}

TEST(ReferenceMatMul, AddsABias) {
  EXPECT_THAT(matmul({2, 3}, kSix, {3, 2}, {1, 4, 2, 5, 3, 6}).input({2}, {100, 200}, f32).result(),
              ElementsAre(114, 232, 132, 277));
}

TEST(ReferenceMatMul, ASumOfNothingIsZero) { EXPECT_THAT(matmul({2, 0}, {}, {0, 2}, {}).result(), ElementsAre(0, 0, 0, 0)); }

}  // namespace
}  // namespace lamina::testing
