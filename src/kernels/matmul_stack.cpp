#include "kernels/matmul_stack.h"

#include <algorithm>
#include <array>

namespace lamina::kernel {

namespace {

// The matrices of a tensor, with strides over the tensor's own batch dims.
struct Side {
  MatrixStack matrix;
  Dims batch;
};

Side side_of(const LogicalTensor& tensor, bool transposed, bool is_column) {
  const Dims& shape = *tensor.shape;
  const size_t rank = shape.size();
  if (rank == 1) {
    const int64_t stride = tensor.strides[0];
    if (is_column) return {{shape[0], 1, stride, 0, {}, tensor.dtype}, {}};
    return {{1, shape[0], 0, stride, {}, tensor.dtype}, {}};
  }
  MatrixStack matrix{shape[rank - 2], shape[rank - 1], tensor.strides[rank - 2], tensor.strides[rank - 1], {}, tensor.dtype};
  if (transposed) {
    std::swap(matrix.rows, matrix.columns);
    std::swap(matrix.row_stride, matrix.column_stride);
  }
  matrix.batch_strides.assign(tensor.strides.begin(), tensor.strides.end() - 2);
  return {matrix, {shape.begin(), shape.end() - 2}};
}

// Strides over `batch`; 0 where the side is broadcast.
MatrixStack broadcast_to(const Dims& batch, Side side) {
  Dims strides(batch.size(), 0);
  const size_t added = batch.size() - side.batch.size();
  for (size_t d = 0; d < side.batch.size(); ++d) {
    if (side.batch[d] != 1) strides[d + added] = side.matrix.batch_strides[d];
  }
  side.matrix.batch_strides = strides;
  return side.matrix;
}

// Dst with the axis restored that a side of rank 1 removes.
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

// A tensor that is broadcast over dst, with all axes of dst, including removed ones.
Side side_over_dst(const LogicalTensor& tensor, size_t dst_rank, bool row_dropped, bool column_dropped) {
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
  side.batch = shape, side.matrix.batch_strides = strides;
  return side;
}

std::array<MatrixStack*, 4> tensors_of(MatmulStack& stack) { return {&stack.src, &stack.weights, &stack.bias, &stack.dst}; }

void drop_batch_dim(MatmulStack& stack, size_t d) {
  const auto at = static_cast<std::ptrdiff_t>(d);
  stack.batch.erase(stack.batch.begin() + at);
  for (MatrixStack* tensor : tensors_of(stack)) tensor->batch_strides.erase(tensor->batch_strides.begin() + at);
}

// Whether dims d and d + 1 can be merged into one in every tensor.
bool runs_on(MatmulStack& stack, size_t d) {
  const auto tensors = tensors_of(stack);
  return std::all_of(tensors.begin(), tensors.end(), [&](const MatrixStack* tensor) {
    return tensor->batch_strides[d] == tensor->batch_strides[d + 1] * stack.batch[d + 1];
  });
}

bool last_is_rows(const MatmulStack& stack) {
  if (stack.batch.empty() || stack.weights.batch_strides.back() != 0) return false;
  const auto rows_run_on = [&](const MatrixStack& tensor) {
    return tensor.batch_strides.back() == tensor.row_stride * stack.m;
  };
  return rows_run_on(stack.src) && rows_run_on(stack.dst) && (!stack.has_bias || rows_run_on(stack.bias));
}

}  // namespace

MatmulStack matmul_stack(const LibraryStep& step) {
  const LogicalTensor &src = step.inputs[0], &weights = step.inputs[1], &dst = step.outputs[0];
  const bool row_dropped = src.rank() == 1, column_dropped = weights.rank() == 1;
  const Side dst_matrices = dst_side(dst, row_dropped, column_dropped);
  MatmulStack stack;
  stack.batch = dst_matrices.batch;
  stack.src = broadcast_to(stack.batch, side_of(src, step.op.attribute<bool>("transpose_a"), false));
  stack.weights = broadcast_to(stack.batch, side_of(weights, step.op.attribute<bool>("transpose_b"), true));
  stack.dst = broadcast_to(stack.batch, dst_matrices);
  stack.m = stack.dst.rows, stack.n = stack.dst.columns, stack.k = stack.src.columns;
  stack.has_bias = step.inputs.size() > 2 && !step.inputs[2].is_empty_port();
  stack.bias.batch_strides.assign(stack.batch.size(), 0);
  if (stack.has_bias) stack.bias = over_dst(step, step.inputs[2]);
  return stack;
}

MatrixStack over_dst(const LibraryStep& step, const LogicalTensor& tensor) {
  const LogicalTensor& dst = step.outputs[0];
  const bool row_dropped = step.inputs[0].rank() == 1, column_dropped = step.inputs[1].rank() == 1;
  const Dims batch = dst_side(dst, row_dropped, column_dropped).batch;
  return broadcast_to(batch, side_over_dst(tensor, dst.shape->size(), row_dropped, column_dropped));
}

MatmulStack collapsed(MatmulStack stack) {
  for (size_t d = stack.batch.size(); d-- > 0;) {
    if (stack.batch[d] == 1) drop_batch_dim(stack, d);
  }
  for (size_t d = stack.batch.size(); d-- > 1;) {
    if (!runs_on(stack, d - 1)) continue;
    stack.batch[d] *= stack.batch[d - 1];
    drop_batch_dim(stack, d - 1);
  }
  if (stack.m == 1) {  // the stride of rows is then unused, and a batch of rows can be one matrix
    for (MatrixStack* tensor : {&stack.src, &stack.bias, &stack.dst})
      tensor->row_stride = stack.batch.empty() ? 0 : tensor->batch_strides.back();
  }
  if (!last_is_rows(stack)) return stack;
  stack.m *= stack.batch.back();
  stack.src.rows = stack.dst.rows = stack.m;
  drop_batch_dim(stack, stack.batch.size() - 1);
  return stack;
}

}  // namespace lamina::kernel
