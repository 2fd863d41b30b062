#include "backends/cpu/library/onednn/matmul_problem.h"

#include <algorithm>
#include <map>

#include "interface/status.h"

namespace lamina::cpu::onednn {

namespace {

// A side of the product with the strides of its batch dims.
struct Side {
  Matrix matrix;
  Dims batch, batch_strides;
};

// Strides of axes with one entry mean nothing: they are made those of a dense matrix.
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

Side side_of(const LogicalTensor& tensor, bool transposed, bool is_column) {
  const Dims& shape = *tensor.shape;
  const size_t rank = shape.size();
  if (rank == 1) {
    const Matrix row{1, shape[0], 0, tensor.strides[0], tensor.dtype}, column{shape[0], 1, tensor.strides[0], 0, tensor.dtype};
    return {settled(is_column ? column : row), {}, {}};
  }
  Matrix matrix{shape[rank - 2], shape[rank - 1], tensor.strides[rank - 2], tensor.strides[rank - 1], tensor.dtype};
  if (transposed) {
    std::swap(matrix.rows, matrix.columns);
    std::swap(matrix.row_stride, matrix.column_stride);
  }
  return {settled(matrix), {shape.begin(), shape.end() - 2}, {tensor.strides.begin(), tensor.strides.end() - 2}};
}

// Strides over `batch`, 0 where the side is broadcast.
Dims strides_over(const Dims& batch, const Side& side) {
  Dims strides(batch.size(), 0);
  const size_t added = batch.size() - side.batch.size();
  for (size_t d = 0; d < side.batch.size(); ++d) {
    if (side.batch[d] != 1) strides[d + added] = side.batch_strides[d];
  }
  return strides;
}

// Dst with the axes that a side of rank 1 has dropped.
Side dst_side(const LogicalTensor& tensor, bool row_dropped, bool column_dropped) {
  LogicalTensor whole = tensor;
  const auto insert = [&](size_t at) {
    whole.shape->insert(whole.shape->begin() + static_cast<std::ptrdiff_t>(at), 1);
    whole.strides.insert(whole.strides.begin() + static_cast<std::ptrdiff_t>(at), 1);
  };
  if (row_dropped) insert(whole.shape->size() - (column_dropped ? 0 : 1));
  if (column_dropped) insert(whole.shape->size());
  return side_of(whole, false, false);
}

// The bias over all of dst's axes, dropped ones too.
Side bias_side(const LogicalTensor& tensor, size_t dst_rank, bool row_dropped, bool column_dropped) {
  Dims strides(dst_rank, 0);
  Dims shape(dst_rank, 1);
  const size_t added = dst_rank - tensor.shape->size();
  for (size_t d = 0; d < tensor.shape->size(); ++d) {
    shape[d + added] = (*tensor.shape)[d];
    strides[d + added] = shape[d + added] == 1 ? 0 : tensor.strides[d];
  }
  Side side;
  side.matrix.dtype = tensor.dtype;
  const auto take = [&](int64_t& extent, int64_t& stride) {
    extent = shape.back(), stride = strides.back();
    shape.pop_back(), strides.pop_back();
  };
  if (!column_dropped) take(side.matrix.columns, side.matrix.column_stride);
  if (!row_dropped) take(side.matrix.rows, side.matrix.row_stride);
  side.batch = shape, side.batch_strides = strides;
  return side;
}

// Whether rows run on from one matrix of the batch to the next.
bool rows_run_on(const Dims& batch, const Dims& strides, const Matrix& matrix) {
  int64_t expected = matrix.row_stride * matrix.rows;
  for (size_t d = batch.size(); d-- > 0;) {
    if (batch[d] != 1 && strides[d] != expected) return false;
    expected *= batch[d];
  }
  return true;
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

}  // namespace

MatmulProblem matmul_problem(const kernel::LibraryStep& step) {
  const LogicalTensor &src_tensor = step.inputs[0], &weights_tensor = step.inputs[1];
  const bool row_dropped = src_tensor.rank() == 1, column_dropped = weights_tensor.rank() == 1;
  const Side src = side_of(src_tensor, step.op.attribute<bool>("transpose_a"), false);
  const Side weights = side_of(weights_tensor, step.op.attribute<bool>("transpose_b"), true);
  Side dst = dst_side(step.outputs[0], row_dropped, column_dropped);
  MatmulProblem problem;
  problem.m = dst.matrix.rows, problem.n = dst.matrix.columns, problem.k = src.matrix.columns;
  problem.src = src.matrix, problem.weights = weights.matrix, problem.dst = dst.matrix;
  Dims batch = dst.batch;
  std::vector<Dims> strides = {strides_over(batch, src), strides_over(batch, weights), Dims(batch.size(), 0),
                               strides_over(batch, dst)};
  problem.has_bias = step.inputs.size() > 2 && !step.inputs[2].is_empty_port();
  if (problem.has_bias) {
    const Side bias = bias_side(step.inputs[2], step.outputs[0].shape->size(), row_dropped, column_dropped);
    problem.bias = bias.matrix;
    strides[2] = strides_over(batch, bias);
  }
  std::vector<Side> operands;
  for (const LogicalTensor& tensor : step.operands) {
    operands.push_back(bias_side(tensor, step.outputs[0].shape->size(), row_dropped, column_dropped));
    Matrix& operand = operands.back().matrix;
    if (operand.columns == 1 && operand.row_stride != 0) operand.column_stride = 1;  // dst has one column too
    problem.operands.push_back(operand);
    strides.push_back(strides_over(batch, operands.back()));
  }
  const auto is_one = [&](const Dims& side) { return std::all_of(side.begin(), side.end(), [](int64_t s) { return s == 0; }); };
  const auto runs_on = [&](size_t operand) {
    const Matrix& matrix = operands[operand].matrix;
    const Dims& over = strides[4 + operand];
    return matrix.row_stride == 0 ? is_one(over) : rows_run_on(batch, over, matrix);
  };
  bool do_operands_run_on = true;
  for (size_t i = 0; i < operands.size(); ++i) do_operands_run_on = do_operands_run_on && runs_on(i);
  if (do_operands_run_on && is_one(strides[1]) && is_one(strides[2]) && problem.bias.row_stride == 0 &&
      rows_run_on(batch, strides[0], src.matrix) && rows_run_on(batch, strides[3], dst.matrix)) {
    problem.m *= entries_of(batch);
    problem.src.rows = problem.dst.rows = problem.m;
    for (Matrix& operand : problem.operands) operand.rows = operand.row_stride == 0 ? 1 : problem.m;
    batch.clear();
  }
  list_products(problem, batch, strides);
  return problem;
}

}  // namespace lamina::cpu::onednn
