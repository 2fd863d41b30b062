#include "backends/cpu/library/onednn/matmul_problem.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "backends/cpu/library/onednn/overlap.h"
#include "kernels/matmul_stack.h"

namespace lamina::cpu::onednn {

namespace {

// The strides of axes with one entry are unused and set to those of a dense matrix.
Matrix settled(Matrix matrix) {
  if (matrix.columns == 1 && matrix.rows == 1) {
    matrix.row_stride = matrix.column_stride = 1;
  } else if (matrix.columns == 1) {
    matrix.column_stride = matrix.row_stride == 1 ? matrix.rows : 1;
  } else if (matrix.rows == 1) {
    matrix.row_stride = matrix.column_stride == 1 ? matrix.columns : 1;
  }
  return matrix;
}

Matrix matrix_of(const kernel::MatrixStack& stack) {
  return {stack.rows, stack.columns, stack.row_stride, stack.column_stride, stack.dtype};
}

// Whether the rows of one matrix of the batch are followed by those of the next one.
bool rows_run_on(const Dims& batch, const Dims& strides, const Matrix& matrix) {
  int64_t expected = matrix.row_stride * matrix.rows;
  for (size_t d = batch.size(); d-- > 0;) {
    if (batch[d] != 1 && strides[d] != expected) return false;
    expected *= batch[d];
  }
  return true;
}

template <typename M>
Dims extents_of(const M& matrix) {
  return {matrix.rows, matrix.columns};
}
template <typename M>
Dims strides_of(const M& matrix) {
  return {matrix.row_stride, matrix.column_stride};
}

int64_t entries_of(const Dims& batch) {
  int64_t count = 1;
  for (const int64_t extent : batch) count *= extent;
  return count;
}

void list_products(MatmulProblem& problem, const Dims& batch, const std::vector<Dims>& strides) {
  std::map<int64_t, int64_t> positions;
  for (int64_t i = 0; i < entries_of(batch); ++i) {
    std::vector<int64_t> at(strides.size(), 0);
    int64_t rest = i;
    for (size_t d = batch.size(); d-- > 0; rest /= batch[d]) {
      for (size_t side = 0; side < strides.size(); ++side) at[side] += rest % batch[d] * strides[side][d];
    }
    problem.products.push_back({at[0], at[1], at[2], at[3], {at.begin() + 4, at.end()}});
    const auto [place, is_new] = positions.try_emplace(at[1], static_cast<int64_t>(positions.size()));
    if (is_new) problem.distinct_weights.push_back(at[1]);
    problem.weights_of_product.push_back(place->second);
  }
}

// Whether the batch is one product with more rows: the same weights and bias for all, and consecutive rows.
bool are_one_product(const MatmulProblem& problem, const Dims& batch, const std::vector<Dims>& strides) {
  const auto is_one = [&](const Dims& side) { return std::all_of(side.begin(), side.end(), [](int64_t s) { return s == 0; }); };
  for (size_t i = 0; i < problem.operands.size(); ++i) {
    const Matrix& matrix = problem.operands[i];
    const Dims& over = strides[4 + i];
    if (matrix.row_stride == 0 ? !is_one(over) : !rows_run_on(batch, over, matrix)) return false;
  }
  return is_one(strides[1]) && is_one(strides[2]) && problem.bias.row_stride == 0 &&
         rows_run_on(batch, strides[0], problem.src) && rows_run_on(batch, strides[3], problem.dst);
}

}  // namespace

bool has_factors_apart(const kernel::LibraryStep& step) {
  const kernel::MatmulStack stack = kernel::matmul_stack(step);
  return are_apart(extents_of(stack.src), strides_of(stack.src)) &&
         are_apart(extents_of(stack.weights), strides_of(stack.weights));
}

MatmulProblem matmul_problem(const kernel::LibraryStep& step) {
  const kernel::MatmulStack stack = kernel::matmul_stack(step);
  MatmulProblem problem;
  problem.m = stack.m, problem.n = stack.n, problem.k = stack.k;
  problem.src = settled(matrix_of(stack.src)), problem.weights = settled(matrix_of(stack.weights));
  problem.dst = settled(matrix_of(stack.dst));
  problem.has_bias = stack.has_bias;
  if (stack.has_bias) problem.bias = matrix_of(stack.bias);
  Dims batch = stack.batch;
  std::vector<Dims> strides = {stack.src.batch_strides, stack.weights.batch_strides, stack.bias.batch_strides,
                               stack.dst.batch_strides};
  for (const LogicalTensor& tensor : step.operands) {
    const kernel::MatrixStack operand = kernel::over_dst(step, tensor);
    problem.operands.push_back(matrix_of(operand));
    Matrix& matrix = problem.operands.back();
    if (matrix.columns == 1 && matrix.row_stride != 0) matrix.column_stride = 1;  // dst has one column too
    strides.push_back(operand.batch_strides);
  }
  if (are_one_product(problem, batch, strides)) {
    problem.m *= entries_of(batch);
    problem.src.rows = problem.dst.rows = problem.m;
    for (Matrix& operand : problem.operands) operand.rows = operand.row_stride == 0 ? 1 : problem.m;
    batch.clear();
  }
  list_products(problem, batch, strides);
  const std::pair<const char*, const Matrix*> named[] = {
      {"src", &problem.src}, {"weights", &problem.weights}, {"bias", &problem.bias}, {"dst", &problem.dst}};
  for (const auto& [name, matrix] : named) require_apart(step.op, name, extents_of(*matrix), strides_of(*matrix));
  for (const Matrix& operand : problem.operands)
    require_apart(step.op, "an operand of a post-op", extents_of(operand), strides_of(operand));
  return problem;
}

}  // namespace lamina::cpu::onednn
