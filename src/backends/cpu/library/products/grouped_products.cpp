#include "backends/cpu/library/products/grouped_products.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "backends/cpu/dispatch/group_ends.h"
#include "backends/cpu/dispatch/grouped_step.h"
#include "backends/cpu/dispatch/grouped_sums_step.h"
#include "backends/cpu/library/products/machine_of.h"
#include "backends/cpu/library/products/product_runner.h"
#include "backends/cpu/product/tuning.h"
#include "interface/op_schema.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using kernel::Contraction;
using kernel::MatrixStack;

MatrixStack matrix_of(const LogicalTensor& tensor, bool transposes = false) {
  const Dims& shape = *tensor.shape;
  const size_t rank = shape.size();
  MatrixStack matrix{shape[rank - 2], shape[rank - 1], tensor.strides[rank - 2], tensor.strides[rank - 1], {}, tensor.dtype};
  if (transposes) {
    std::swap(matrix.rows, matrix.columns);
    std::swap(matrix.row_stride, matrix.column_stride);
  }
  return matrix;
}

MatrixStack src_of(const kernel::LibraryStep& step) {
  return matrix_of(step.inputs[0], step.op.attribute<bool>("transpose_a"));
}
MatrixStack weights_of(const kernel::LibraryStep& step) {
  return matrix_of(step.inputs[1], step.op.attribute<bool>("transpose_b"));
}

MatrixStack rows_of(MatrixStack matrix, int64_t rows) {
  matrix.rows = rows;
  return matrix;
}
MatrixStack columns_of(MatrixStack matrix, int64_t columns) {
  matrix.columns = columns;
  return matrix;
}

// Into columns that are neighbours.
Contraction part_of(const MatrixStack& src, const MatrixStack& weights, DataType dst, int64_t row_stride,
                    const Machine& machine) {
  Contraction part;
  part.matrices.m = src.rows, part.matrices.n = weights.columns, part.matrices.k = weights.rows;
  part.matrices.src = src;
  part.matrices.weights = weights;
  part.matrices.dst = {src.rows, weights.columns, row_stride, 1, {}, dst};
  part.multiplies_pairs = multiplies_pairs(src.dtype, weights.dtype, machine);
  return part;
}

GroupedStep::Part runner_of(const Contraction& part, const Machine& machine, int threads, std::string* described) {
  auto runner =
      std::make_unique<const ProductRunner>(part, machine, choose_product_schedule(part, machine, {threads}), threads);
  *described = describe(runner->schedule());
  return runner;
}

std::unique_ptr<const Primitive> rows_in_groups(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  const MatrixStack src = src_of(step), dst = matrix_of(step.outputs[0]), weights = weights_of(step);
  const Machine machine = machine_of(use);
  GroupedProgram program{.rows = src.rows,
                         .to_next_row = bytes_of(src.dtype, src.row_stride),
                         .to_next_matrix = bytes_of(step.inputs[1].dtype, step.inputs[1].strides[0]),
                         .dtype = dst.dtype,
                         .row_stride = dst.row_stride,
                         .column_stride = dst.column_stride,
                         .part_rows = {}};
  const int64_t most_rows = std::clamp<int64_t>(src.rows, 1, product_tuning::kRowsOfParts.back());
  std::ranges::copy_if(product_tuning::kRowsOfParts, std::back_inserter(program.part_rows),
                       [&](int64_t rows) { return rows < most_rows; });
  program.part_rows.push_back(most_rows);
  GroupedStep::Parts parts;
  std::string schedule;
  for (const int64_t rows : program.part_rows)
    parts.push_back(
        runner_of(part_of(rows_of(src, rows), weights, dst.dtype, weights.columns, machine), machine, use.threads, &schedule));
  std::string name = join("products of groups of rows, up to ", program.part_rows.back(), " at once, ", schedule);
  return std::make_unique<const GroupedStep>(std::move(program), GroupEnds(place_of(step.op, "input offsets"), step.inputs[2]),
                                             std::move(parts), std::move(name));
}

std::unique_ptr<const Primitive> sums_of_groups(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  const MatrixStack src = src_of(step), dst = matrix_of(step.outputs[0]), weights = weights_of(step);
  const Machine machine = machine_of(use);
  GroupedSumsProgram program{.terms = src.columns,
                             .to_next_column = bytes_of(src.dtype, src.column_stride),
                             .to_next_row = bytes_of(weights.dtype, weights.row_stride),
                             .sums = dst.dtype == DataType::f64 ? DataType::f64 : DataType::f32,
                             .dtype = dst.dtype,
                             .group_stride = step.outputs[0].strides[0],
                             .row_stride = dst.row_stride,
                             .column_stride = dst.column_stride,
                             // odd: products of bf16 then copy both factors, as they must for any number of terms
                             .part_terms = std::clamp<int64_t>(src.columns, 1, product_tuning::kMostTerms) | 1};
  program.adds_to_dst = program.sums == program.dtype && program.column_stride == 1;
  GroupedSumsStep::Parts parts;
  std::string schedule;
  const int64_t row_stride = program.adds_to_dst ? program.row_stride : weights.columns;
  for (auto* const each : {&parts.next, &parts.first}) {
    const int64_t terms = program.part_terms;
    Contraction part = part_of(columns_of(src, terms), rows_of(weights, terms), program.sums, row_stride, machine);
    part.adds = each == &parts.next;
    *each = runner_of(part, machine, use.threads, &schedule);
  }
  std::string name = join("sums of products over groups, up to ", program.part_terms, " terms at once, ", schedule);
  MatrixCopy copy_out = matrix_copy(program.sums, dst.dtype, machine, vector_bits(machine));
  return std::make_unique<const GroupedSumsStep>(std::move(program),
                                                 GroupEnds(place_of(step.op, "input offsets"), step.inputs[2]),
                                                 std::move(parts), std::move(copy_out), std::move(name));
}

}  // namespace

std::unique_ptr<const Primitive> grouped_product(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  return step.inputs[1].shape->size() == 2 ? sums_of_groups(step, use) : rows_in_groups(step, use);
}

}  // namespace lamina::cpu
