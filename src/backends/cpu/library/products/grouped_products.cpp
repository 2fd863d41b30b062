#include "backends/cpu/library/products/grouped_products.h"

#include <algorithm>
#include <string>
#include <utility>

#include "backends/cpu/dispatch/grouped_step.h"
#include "backends/cpu/library/products/machine_of.h"
#include "backends/cpu/library/products/product_runner.h"
#include "interface/op_schema.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using kernel::Contraction;
using kernel::MatrixStack;

constexpr int64_t kMostRows = 64;  // of a part: enough to reuse each panel of weights from the cache

MatrixStack matrix_of(const LogicalTensor& tensor) {
  const Dims& shape = *tensor.shape;
  const size_t rank = shape.size();
  return {shape[rank - 2], shape[rank - 1], tensor.strides[rank - 2], tensor.strides[rank - 1], {}, tensor.dtype};
}

MatrixStack weights_of(const kernel::LibraryStep& step) {
  MatrixStack weights = matrix_of(step.inputs[1]);
  if (step.op.attribute<bool>("transpose_b")) {
    std::swap(weights.rows, weights.columns);
    std::swap(weights.row_stride, weights.column_stride);
  }
  return weights;
}

// The product of `rows` rows by one matrix, into contiguous rows.
Contraction part_of(int64_t rows, const MatrixStack& src, const MatrixStack& weights, DataType dst, const Machine& machine) {
  Contraction contraction;
  contraction.matrices.m = rows;
  contraction.matrices.n = weights.columns;
  contraction.matrices.k = weights.rows;
  contraction.matrices.src = {rows, src.columns, src.row_stride, src.column_stride, {}, src.dtype};
  contraction.matrices.weights = weights;
  contraction.matrices.dst = {rows, weights.columns, weights.columns, 1, {}, dst};
  contraction.multiplies_pairs = multiplies_pairs(src.dtype, weights.dtype, machine);
  return contraction;
}

}  // namespace

std::unique_ptr<const Primitive> grouped_product(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  const MatrixStack src = matrix_of(step.inputs[0]), dst = matrix_of(step.outputs[0]), weights = weights_of(step);
  const Machine machine = machine_of(use);
  GroupedProgram program{.rows = src.rows,
                         .to_next_row = bytes_of(src.dtype, src.row_stride),
                         .to_next_matrix = bytes_of(step.inputs[1].dtype, step.inputs[1].strides[0]),
                         .dtype = dst.dtype,
                         .row_stride = dst.row_stride,
                         .column_stride = dst.column_stride,
                         .part_rows = {}};
  const int64_t most_rows = std::min(src.rows, kMostRows);
  for (int64_t rows = 1; rows < most_rows; rows *= 2) program.part_rows.push_back(rows);
  program.part_rows.push_back(std::max<int64_t>(most_rows, 1));
  GroupedStep::Parts parts;
  std::string name;
  for (const int64_t rows : program.part_rows) {
    const Contraction part = part_of(rows, src, weights, dst.dtype, machine);
    auto runner = std::make_unique<const ProductRunner>(part, machine, choose_product_schedule(part, machine, {use.threads}),
                                                        use.threads);
    name = join("products of groups of rows, up to ", rows, " at once, ", describe(runner->schedule()));
    parts.push_back(std::move(runner));
  }
  return std::make_unique<const GroupedStep>(std::move(program), place_of(step.op, "input offsets"), step.inputs[2],
                                             std::move(parts), std::move(name));
}

}  // namespace lamina::cpu
