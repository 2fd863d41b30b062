// MatMul with NumPy's rules. A 1-D side gains an axis that the result drops. The dims before the last two broadcast. The
// transposes swap the last two axes and do not affect a 1-D side. The bias broadcasts to dst. GroupedMatMul multiplies each
// group of rows by its own matrix, or each group of columns by the same rows of one.
#include <algorithm>
#include <array>

#include "backends/reference/op_run.h"
#include "backends/reference/products.h"
#include "interface/indices.h"
#include "interface/status.h"

namespace lamina::reference {
namespace {

// One side as a stack of dense matrices, with its leading batch dims.
struct Side {
  int64_t rows = 1, columns = 1;
  Dims batch;
  const double* values = nullptr;
  std::vector<double> copy = {};  // used for a transposed side

  const double* row(int64_t offset, int64_t m) const { return values + offset + m * columns; }
};

void transpose(const Tensor& tensor, Side& side) {
  std::swap(side.rows, side.columns);
  side.copy.resize(tensor.values.size());
  const int64_t size = side.rows * side.columns;
  parallel_for(size == 0 ? 0 : tensor.size() / side.columns, side.columns, [&](int64_t row) {
    const int64_t matrix = row / side.rows * size, m = row % side.rows;
    for (int64_t k = 0; k < side.columns; ++k)
      side.copy[static_cast<size_t>(matrix + m * side.columns + k)] = tensor[matrix + k * side.rows + m];
  });
  side.values = side.copy.data();
}

Side side_of(const Tensor& tensor, bool transposed, bool is_left) {
  const size_t rank = tensor.shape.size();
  const double* values = tensor.values.data();
  if (rank == 1) return is_left ? Side{1, tensor.shape[0], {}, values} : Side{tensor.shape[0], 1, {}, values};
  Side side{tensor.shape[rank - 2], tensor.shape[rank - 1], {tensor.shape.begin(), tensor.shape.end() - 2}, values};
  if (transposed) transpose(tensor, side);
  return side;
}

// Strides of a batch of matrices with `size` elements each, broadcast to `batch`.
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

// dst += left * right for a tile of rows from `first` on. The offsets are those of the matrices.
void multiply_tile(const Side& left, int64_t left_offset, const Side& right, int64_t right_offset, int64_t first, double* dst) {
  const int rows = static_cast<int>(std::min<int64_t>(kTileRows, left.rows - first));
  std::array<const double*, kTileRows> from{};
  std::array<double*, kTileRows> to{};
  for (int t = 0; t < rows; ++t) {
    from[static_cast<size_t>(t)] = left.row(left_offset, first + t);
    to[static_cast<size_t>(t)] = dst + (first + t) * right.columns;
  }
  add_products(from.data(), to.data(), rows, left.columns, right.row(right_offset, 0), right.columns);
}

void matmul(const OpRun& run) {
  const Tensor& src = run.in("src");
  const Tensor& weights = run.in("weights");
  const Side left = side_of(src, run.attribute<bool>("transpose_a"), true);
  const Side right = side_of(weights, run.attribute<bool>("transpose_b"), false);
  LAMINA_CHECK(left.columns == right.rows, join(describe(run.op()), ": ", left.columns, " columns, ", right.rows, " rows"));
  Tensor& dst = run.out("dst");
  const Dims batch = broadcast_batch(left.batch, right.batch);
  std::vector<std::array<int64_t, 2>> matrices;  // the offsets of each pair
  for_each_offset<2>(batch, {batch_strides(left, batch), batch_strides(right, batch)},
                     [&](const auto& at) { matrices.push_back(at); });
  const int64_t tiles = (left.rows + kTileRows - 1) / kTileRows;
  const auto pairs = static_cast<int64_t>(matrices.size());
  parallel_for(pairs * tiles, kTileRows * left.columns * right.columns, [&](int64_t item) {
    const int64_t pair = item / tiles;
    const auto& [left_offset, right_offset] = matrices[static_cast<size_t>(pair)];
    double* result = dst.values.data() + pair * left.rows * right.columns;
    multiply_tile(left, left_offset, right, right_offset, item % tiles * kTileRows, result);
  });
  const Tensor* bias = run.in_or_null("bias");
  if (bias == nullptr) return;
  for_each_offset_parallel<2>(dst.shape, {dense_strides(dst.shape), broadcast_strides(bias->shape, dst.shape)},
                              [&](const auto& at) { dst[at[0]] += (*bias)[at[1]]; });
}

// The groups that check_group_end allows, of `extent` entries: calls visit(group, first, count).
template <typename Visit>
void for_each_group(const OpRun& run, int64_t extent, const Visit& visit) {
  const Tensor& offsets = run.in("offsets");
  int64_t first = 0;
  for (int64_t group = 0; group < offsets.size(); ++group) {
    const auto end = static_cast<int64_t>(offsets[group]);
    check_group_end(run.op(), group, end, extent);
    const int64_t count = std::max<int64_t>(end - first, 0);
    visit(group, first, count);
    first += count;
  }
}

void multiply_group(const Side& left, const Side& right, int64_t matrix, double* dst) {
  parallel_for((left.rows + kTileRows - 1) / kTileRows, kTileRows * left.columns * right.columns,
               [&](int64_t tile) { multiply_tile(left, 0, right, matrix, tile * kTileRows, dst); });
}

void grouped_matmul(const OpRun& run) {
  const Side left = side_of(run.in("src"), run.attribute<bool>("transpose_a"), true);
  const Side right = side_of(run.in("weights"), run.attribute<bool>("transpose_b"), false);
  double* const dst = run.out("dst").values.data();
  if (run.in("weights").shape.size() == 3) {
    for_each_group(run, left.rows, [&](int64_t group, int64_t first, int64_t rows) {
      const Side part{rows, left.columns, {}, left.row(0, first)};
      multiply_group(part, right, group * right.rows * right.columns, dst + first * right.columns);
    });
    return;
  }
  for_each_group(run, left.columns, [&](int64_t group, int64_t first, int64_t count) {
    Side part{left.rows, count, {}};
    part.copy.resize(static_cast<size_t>(left.rows * count));
    for (int64_t i = 0; i < left.rows; ++i)
      std::copy_n(left.row(0, i) + first, count, part.copy.begin() + static_cast<std::ptrdiff_t>(i * count));
    part.values = part.copy.data();
    multiply_group(part, right, first * right.columns, dst + group * left.rows * right.columns);
  });
}

}  // namespace

Evaluators matmul_evaluators() { return {{OpKind::MatMul, matmul}, {OpKind::GroupedMatMul, grouped_matmul}}; }

}  // namespace lamina::reference
