// MatMul with NumPy's rules: a 1-D side gains an axis that the result drops, the dims before the last two broadcast, the
// transposes swap the last two axes and mean nothing to a 1-D side. The bias broadcasts to dst.
#include "backends/reference/op_run.h"
#include "interface/status.h"

namespace lamina::reference {
namespace {

// One side as a stack of matrices: extents and strides of rows and columns, and the batch dims in front.
struct Side {
  int64_t rows = 1, columns = 1, row_stride = 0, column_stride = 0;
  Dims batch;
};

Side side_of(const Tensor& tensor, bool transposed, bool is_left) {
  const size_t rank = tensor.shape.size();
  if (rank == 1) return is_left ? Side{1, tensor.shape[0], 0, 1, {}} : Side{tensor.shape[0], 1, 1, 0, {}};
  Side side{tensor.shape[rank - 2], tensor.shape[rank - 1], tensor.shape[rank - 1], 1, {}};
  side.batch.assign(tensor.shape.begin(), tensor.shape.end() - 2);
  if (transposed) {
    std::swap(side.rows, side.columns);
    std::swap(side.row_stride, side.column_stride);
  }
  return side;
}

// Strides of a batch of matrices of `size` elements each, broadcast to `batch`.
Dims batch_strides(const Side& side, const Dims& batch) {
  Dims strides = broadcast_strides(side.batch, batch);
  for (int64_t& stride : strides) stride *= side.rows * side.columns;
  return strides;
}

Dims broadcast_batch(const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims batch = longer;
  const size_t added = longer.size() - shorter.size();
  for (size_t dim = 0; dim < shorter.size(); ++dim)
    if (batch[dim + added] == 1) batch[dim + added] = shorter[dim];
  return batch;
}

// dst (dense, left.rows x right.columns) += left * right. The middle loop runs over the sum, so that rows are read in order.
void multiply(const double* a, const Side& left, const double* b, const Side& right, double* dst) {
  for (int64_t m = 0; m < left.rows; ++m)
    for (int64_t k = 0; k < left.columns; ++k) {
      const double factor = a[m * left.row_stride + k * left.column_stride];
      const double* row = b + k * right.row_stride;
      double* result = dst + m * right.columns;
      for (int64_t n = 0; n < right.columns; ++n) result[n] += factor * row[n * right.column_stride];
    }
}

void matmul(const OpRun& run) {
  const Tensor& src = run.in("src");
  const Tensor& weights = run.in("weights");
  const Side left = side_of(src, run.attribute<bool>("transpose_a"), true);
  const Side right = side_of(weights, run.attribute<bool>("transpose_b"), false);
  LAMINA_CHECK(left.columns == right.rows, join(describe(run.op()), ": ", left.columns, " columns, ", right.rows, " rows"));
  Tensor& dst = run.out("dst");
  const Dims batch = broadcast_batch(left.batch, right.batch);
  int64_t done = 0;
  for_each_offset<2>(batch, {batch_strides(left, batch), batch_strides(right, batch)}, [&](const auto& at) {
    multiply(src.values.data() + at[0], left, weights.values.data() + at[1], right, dst.values.data() + done);
    done += left.rows * right.columns;
  });
  const Tensor* bias = run.in_or_null("bias");
  if (bias == nullptr) return;
  int64_t i = 0;
  for_each_offset<1>(dst.shape, {broadcast_strides(bias->shape, dst.shape)},
                     [&](const auto& at) { dst[i++] += (*bias)[at[0]]; });
}

}  // namespace

Evaluators matmul_evaluators() { return {{OpKind::MatMul, matmul}}; }

}  // namespace lamina::reference
