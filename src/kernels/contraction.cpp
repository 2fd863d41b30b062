#include "kernels/contraction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "interface/status.h"

namespace lamina::kernel {

namespace {

MatrixStack transposed(MatrixStack matrix) {
  std::swap(matrix.rows, matrix.columns);
  std::swap(matrix.row_stride, matrix.column_stride);
  return matrix;
}

// The offset of an entry of the batch.
int64_t batch_offset(const Dims& batch, const Dims& strides, int64_t entry) {
  int64_t offset = 0;
  for (size_t d = strides.size(); d-- > 0; entry /= batch[d]) offset += entry % batch[d] * strides[d];
  return offset;
}

// The matrices of one entry of the batch. Offsets are in elements.
struct Entry {
  const MatmulStack& stack;
  const void *src, *weights, *bias;
  void* dst;
  int64_t src_at, weights_at, bias_at, dst_at;
  const float* scales;  // of integers
};

template <typename T>
T element(const void* memory, const MatrixStack& matrix, int64_t first, int64_t row, int64_t column) {
  return static_cast<T>(load_as_double(matrix.dtype, memory, first + row * matrix.row_stride + column * matrix.column_stride));
}

template <typename T>
T sum_in_order(const Entry& e, int64_t row, int64_t column) {
  T sum = 0;
  for (int64_t k = 0; k < e.stack.k; ++k)
    sum = std::fma(element<T>(e.src, e.stack.src, e.src_at, row, k),
                   element<T>(e.weights, e.stack.weights, e.weights_at, k, column), sum);
  return sum;
}

template <typename T>
void store_sum(const Entry& e, bool adds, int64_t row, int64_t column, T sum) {
  if (e.stack.has_bias) sum += element<T>(e.bias, e.stack.bias, e.bias_at, row, column);
  const MatrixStack& dst = e.stack.dst;
  if (adds) sum += element<T>(e.dst, dst, e.dst_at, row, column);
  store_from_double(dst.dtype, e.dst, e.dst_at + row * dst.row_stride + column * dst.column_stride, static_cast<double>(sum));
}

float flushed(float value) { return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0F, value) : value; }

// The chain of multiply-adds over pairs.
float sum_of_pairs(const Entry& e, int64_t row, int64_t column) {
  float sum = 0;
  const auto add = [&](int64_t k) {
    if (k >= e.stack.k) return;
    sum = flushed(std::fma(flushed(element<float>(e.src, e.stack.src, e.src_at, row, k)),
                           flushed(element<float>(e.weights, e.stack.weights, e.weights_at, k, column)), sum));
  };
  for (int64_t k = 0; k < e.stack.k; k += 2) add(k + 1), add(k);
  return sum;
}

void interpret_integers(const Entry& e, const IntegerFactors& factors, int64_t row, int64_t column) {
  int64_t sum = 0;
  for (int64_t k = 0; k < e.stack.k; ++k)
    sum += (element<int64_t>(e.src, e.stack.src, e.src_at, row, k) - factors.src_zero_point) *
           (element<int64_t>(e.weights, e.stack.weights, e.weights_at, k, column) - factors.weights_zero_point);
  float result = static_cast<float>(sum) * e.scales[factors.scales.size() == 1 ? 0 : column];
  if (e.stack.has_bias) result += element<float>(e.bias, e.stack.bias, e.bias_at, row, column);
  const MatrixStack& dst = e.stack.dst;
  store_from_double(dst.dtype, e.dst, e.dst_at + row * dst.row_stride + column * dst.column_stride, double{result});
}

// The largest distance of an integer of this type from its zero point.
int64_t largest(DataType dtype, int64_t zero_point) {
  const int64_t lowest = dtype == DataType::s8 ? std::numeric_limits<int8_t>::min() : 0;
  return std::max(zero_point - lowest, lowest + std::numeric_limits<uint8_t>::max() - zero_point);
}

void check(bool holds, const char* what, const Contraction& contraction) {
  if (!holds) throw Error(Status::runtime_error, join("a contraction ", what, ": ", print(contraction)));
}

}  // namespace

Type Contraction::sum_type() const {
  if (integers) return Type::s32;
  const bool is_wide = matrices.src.dtype == DataType::f64 || matrices.weights.dtype == DataType::f64;
  return is_wide ? Type::f64 : Type::f32;
}

IntegerFactors integer_factors_of(const LibraryStep& step, DataType src, DataType weights, int64_t terms) {
  const QuantizedProduct& quantized = *step.quantized;
  const int64_t src_zero_point = quantized.src.zero_point, weights_zero_point = quantized.weights.zero_point;
  IntegerFactors factors{static_cast<int32_t>(src_zero_point), static_cast<int32_t>(weights_zero_point),
                         quantized.weights.scales};
  for (float& scale : factors.scales) scale *= quantized.src.scales.front();
  const int64_t product = largest(src, src_zero_point) * largest(weights, weights_zero_point);
  const int64_t most = std::numeric_limits<int32_t>::max() / std::max<int64_t>(product, 1);
  if (terms > most)
    throw Error(Status::unimplemented, place_of(step.op),
                join("a sum of ", terms, " products of integers may exceed 32 bits; with these zero points, at most ", most,
                     " are allowed"));
  return factors;
}

Contraction contraction_of(const LibraryStep& step) {
  LAMINA_CHECK(!step.dequantized && !step.post_ops, join(describe(step.op), " is not a plain product"));
  Contraction contraction{collapsed(matmul_stack(step)), step.adds};
  const MatmulStack& stack = contraction.matrices;
  if (step.quantized) contraction.integers = integer_factors_of(step, stack.src.dtype, stack.weights.dtype, stack.k);
  verify(contraction);
  return contraction;
}

Contraction dequantized_contraction_of(const LibraryStep& step) {
  LAMINA_CHECK(step.dequantized && !step.post_ops, join(describe(step.op), " is not a product with dequantised weights"));
  Contraction contraction{collapsed(matmul_stack(step)), step.adds};
  MatrixStack& weights = contraction.matrices.weights;
  weights.dtype = DataType::f32;
  weights.row_stride = contraction.matrices.n, weights.column_stride = 1;
  if (step.dequantized->rows) {
    MatrixStack& src = contraction.matrices.src;
    src.dtype = DataType::f32;
    src.row_stride = contraction.matrices.k, src.column_stride = 1;
    src.batch_strides.assign(src.batch_strides.size(), 0);
  }
  verify(contraction);
  return contraction;
}

Contraction transposed(Contraction contraction) {
  MatmulStack& stack = contraction.matrices;
  std::swap(stack.m, stack.n);
  std::swap(stack.src, stack.weights);
  for (MatrixStack* matrix : {&stack.src, &stack.weights, &stack.bias, &stack.dst}) *matrix = transposed(*matrix);
  return contraction;
}

std::string print(const Contraction& contraction) {
  const MatmulStack& stack = contraction.matrices;
  return join(stack.products(), " x [", stack.m, ", ", stack.k, "] ", name_of(stack.src.dtype), " by [", stack.k, ", ", stack.n,
              "] ", name_of(stack.weights.dtype), stack.has_bias ? join(", bias ", name_of(stack.bias.dtype)) : "",
              contraction.multiplies_pairs ? ", in pairs" : "", contraction.adds ? ", added to " : ", to ",
              name_of(stack.dst.dtype));
}

void verify(const Contraction& contraction) {
  const MatmulStack& stack = contraction.matrices;
  check(stack.m >= 0 && stack.n >= 0 && stack.k >= 0, "has a negative extent", contraction);
  check(!contraction.adds || !stack.has_bias, "adds to dst and has a bias", contraction);
  check(!contraction.adds || !contraction.integers, "adds integers to dst", contraction);
  check(!contraction.multiplies_pairs ||
            (!contraction.integers && stack.src.dtype == DataType::bf16 && stack.weights.dtype == DataType::bf16),
        "multiplies pairs of another type than bf16", contraction);
  if (contraction.integers) {
    const auto scales = static_cast<int64_t>(contraction.integers->scales.size());
    const Dims& strides = contraction.integers->scale_strides;
    check(strides.empty() || strides.size() == stack.batch.size(), "lacks a stride of the scales", contraction);
    int64_t last = stack.n - 1;
    for (size_t d = 0; d < strides.size(); ++d) last += (stack.batch[d] - 1) * strides[d];
    check(scales == 1 || scales == last + 1, "has neither one scale nor one per column", contraction);
  }
  for (const MatrixStack* matrix : {&stack.src, &stack.weights, &stack.bias, &stack.dst}) {
    if (matrix == &stack.bias && !stack.has_bias) continue;
    const bool is_factor = matrix == &stack.src || matrix == &stack.weights;
    check(contraction.integers && is_factor ? is_byte_integer(matrix->dtype) : is_floating(matrix->dtype),
          "has a matrix of another type than its sums allow", contraction);
    check(matrix->batch_strides.size() == stack.batch.size(), "lacks a stride of the batch", contraction);
  }
}

void interpret(const Contraction& contraction, const void* src, const void* weights, const void* bias, void* dst) {
  const MatmulStack& stack = contraction.matrices;
  for (int64_t entry = 0; entry < stack.products(); ++entry) {
    const auto at = [&](const MatrixStack& matrix) { return batch_offset(stack.batch, matrix.batch_strides, entry); };
    const float* scales = nullptr;
    if (const auto& integers = contraction.integers)
      scales = integers->scales.data() + batch_offset(stack.batch, integers->scale_strides, entry);
    const Entry matrices{stack,         src,           weights,           bias,
                         dst,           at(stack.src), at(stack.weights), stack.has_bias ? at(stack.bias) : 0,
                         at(stack.dst), scales};
    for (int64_t row = 0; row < stack.m; ++row) {
      for (int64_t column = 0; column < stack.n; ++column) {
        if (contraction.integers)
          interpret_integers(matrices, *contraction.integers, row, column);
        else if (contraction.sum_type() == Type::f64)
          store_sum(matrices, contraction.adds, row, column, sum_in_order<double>(matrices, row, column));
        else
          store_sum(
              matrices, contraction.adds, row, column,
              contraction.multiplies_pairs ? sum_of_pairs(matrices, row, column) : sum_in_order<float>(matrices, row, column));
      }
    }
  }
}

}  // namespace lamina::kernel
