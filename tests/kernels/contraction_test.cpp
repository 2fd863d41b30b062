// A product as a kernel: what the interpreter computes, compared with sums in double, and what the verifier refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "interface/status.h"
#include "kernels/contraction.h"

namespace lamina::testing {
namespace {

using kernel::Contraction;
using kernel::MatrixStack;
using ::testing::HasSubstr;

MatrixStack dense(int64_t rows, int64_t columns, DataType dtype, const Dims& batch = {}) {
  MatrixStack matrix{rows, columns, columns, 1, Dims(batch.size(), 0), dtype};
  int64_t stride = rows * columns;
  for (size_t d = batch.size(); d-- > 0; stride *= batch[d]) matrix.batch_strides[d] = stride;
  return matrix;
}

Contraction contraction(int64_t m, int64_t k, int64_t n, DataType factors, DataType dst, const Dims& batch = {}) {
  Contraction c;
  c.matrices.m = m, c.matrices.k = k, c.matrices.n = n, c.matrices.batch = batch;
  c.matrices.src = dense(m, k, factors, batch);
  c.matrices.weights = dense(k, n, factors);
  c.matrices.weights.batch_strides = Dims(batch.size(), 0);
  c.matrices.dst = dense(m, n, dst, batch);
  return c;
}

std::vector<char> numbers(DataType dtype, int64_t count, unsigned seed) {
  std::vector<char> bytes(static_cast<size_t>(bytes_of(dtype, count)));
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> real(-1, 1);
  for (int64_t i = 0; i < count; ++i) store_from_double(dtype, bytes.data(), i, real(random));
  return bytes;
}

TEST(Contraction, IsCloseToSumsInDouble) {
  for (const auto& [type, dst_type, error] :
       std::vector<std::tuple<DataType, DataType, double>>{{DataType::f32, DataType::f32, 1e-5},
                                                           {DataType::f64, DataType::f64, 1e-14},
                                                           {DataType::bf16, DataType::f32, 1e-5},
                                                           {DataType::f16, DataType::f16, 1e-2}}) {
    const Contraction c = contraction(3, 40, 5, type, dst_type, {2});
    const std::vector<char> src = numbers(type, 2 * 3 * 40, 1), weights = numbers(type, 40 * 5, 2);
    std::vector<char> dst(static_cast<size_t>(bytes_of(dst_type, 2 * 3 * 5)));
    kernel::interpret(c, src.data(), weights.data(), nullptr, dst.data());
    for (int64_t row = 0; row < 6; ++row) {
      for (int64_t column = 0; column < 5; ++column) {
        double sum = 0;
        for (int64_t k = 0; k < 40; ++k)
          sum += load_as_double(type, src.data(), row * 40 + k) * load_as_double(type, weights.data(), k * 5 + column);
        EXPECT_NEAR(load_as_double(dst_type, dst.data(), row * 5 + column), sum, error) << name_of(type);
      }
    }
  }
}

// (1 + 2^-12)^2 - 1 has bits that a separate multiplication in f32 would round away.
TEST(Contraction, RoundsAProductAndASumOnce) {
  const Contraction c = contraction(1, 2, 1, DataType::f32, DataType::f32);
  const float src[] = {-1, 1 + 0x1p-12F}, weights[] = {1, 1 + 0x1p-12F};
  float dst = 0;
  kernel::interpret(c, src, weights, nullptr, &dst);
  EXPECT_EQ(dst, 0x1p-11F + 0x1p-24F);
}

TEST(Contraction, AddsInTheOrderOfK) {
  const Contraction c = contraction(1, 3, 1, DataType::f32, DataType::f32);
  const float src[] = {0x1p24F, 1, -0x1p24F}, weights[] = {1, 1, 1};
  float dst = 7;
  kernel::interpret(c, src, weights, nullptr, &dst);
  EXPECT_EQ(dst, 0);
}

TEST(Contraction, AddsTheBiasAndDstLast) {
  Contraction c = contraction(1, 3, 1, DataType::f32, DataType::f32);
  const float src[] = {0x1p24F, 1, -0x1p24F}, weights[] = {1, 1, 1}, bias = 3;
  float dst = 7;
  c.adds = true;
  kernel::interpret(c, src, weights, nullptr, &dst);
  EXPECT_EQ(dst, 7);
  c.adds = false;
  c.matrices.has_bias = true;
  c.matrices.bias = dense(1, 1, DataType::f32);
  kernel::interpret(c, src, weights, &bias, &dst);
  EXPECT_EQ(dst, 3);
}

TEST(Contraction, HasTheSameElementsIfTransposed) {
  const Contraction c = contraction(3, 7, 5, DataType::f32, DataType::f32);
  const std::vector<char> src = numbers(DataType::f32, 21, 1), weights = numbers(DataType::f32, 35, 2);
  std::vector<char> dst(60), other(60);
  kernel::interpret(c, src.data(), weights.data(), nullptr, dst.data());
  kernel::interpret(kernel::transposed(c), weights.data(), src.data(), nullptr, other.data());
  EXPECT_EQ(dst, other);
}

TEST(Contraction, IsVerified) {
  Contraction c = contraction(3, 7, 5, DataType::f32, DataType::f32, {2});
  kernel::verify(c);
  EXPECT_EQ(kernel::print(c), "2 x [3, 7] f32 by [7, 5] f32, to f32");
  const auto fault_of = [](const Contraction& wrong) -> std::string {
    try {
      kernel::verify(wrong);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  c.matrices.src.batch_strides.clear();
  EXPECT_THAT(fault_of(c), HasSubstr("lacks a stride of the batch"));
  c = contraction(3, 7, 5, DataType::s8, DataType::f32);
  EXPECT_THAT(fault_of(c), HasSubstr("another type than its sums allow"));
  c = contraction(3, 7, 5, DataType::f32, DataType::f32);
  c.adds = c.matrices.has_bias = true;
  c.matrices.bias = dense(1, 1, DataType::f32);
  EXPECT_THAT(fault_of(c), HasSubstr("adds to dst and has a bias"));
}

}  // namespace
}  // namespace lamina::testing
