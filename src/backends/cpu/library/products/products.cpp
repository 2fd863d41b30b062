// MatMul by generated code: f32 and f64; bf16 in pairs where there are instructions for them; bf16 and f16, which it converts;
// weights of 4 and 8 bits, which it dequantises or multiplies by integers in groups; and integers of 8 bits, where no library
// multiplies them fast and exactly.
#include <algorithm>
#include <functional>
#include <optional>

#include "backends/cpu/dispatch/dequantized_step.h"
#include "backends/cpu/dispatch/product_step.h"
#include "backends/cpu/library/library_ops.h"
#include "backends/cpu/library/products/grouped_products.h"
#include "backends/cpu/library/products/machine_of.h"
#include "backends/cpu/library/products/product_runner.h"
#include "backends/cpu/library/products/quantized_weights.h"
#include "backends/cpu/program/tuning.h"
#include "interface/status.h"
#include "kernels/integer_rows.h"
#include "kernels/quantized_matrix.h"

namespace lamina::cpu {

namespace {

using kernel::Contraction;

bool is_narrow(DataType dtype) { return dtype == DataType::bf16 || dtype == DataType::f16; }
bool is_as_wide_as_sums(DataType dtype) { return dtype == DataType::f32 || dtype == DataType::f64; }

// Whether dst is one dense matrix, with the rows of all entries of the batch.
bool makes_matrix(const kernel::MatmulStack& product) {
  const kernel::MatrixStack& dst = product.dst;
  if ((product.n > 1 && dst.column_stride != 1) || (product.m > 1 && dst.row_stride != product.n)) return false;
  int64_t next = product.m * product.n;
  for (size_t d = product.batch.size(); d-- > 0; next *= product.batch[d])
    if (product.batch[d] > 1 && dst.batch_strides[d] != next) return false;
  return true;
}

// The product that reads a dense copy of src, whose rows begin at different sets of a cache, if src is contiguous along its
// rows. It pays for enough rows that threads would copy the same weights for each part of them.
std::optional<Contraction> of_transposed_src(Contraction c) {
  constexpr int64_t kLeastRows = 128;
  kernel::MatrixStack& src = c.matrices.src;
  const int64_t bytes = bytes_of(src.dtype, 1);
  if (c.integers || !c.matrices.batch.empty() || src.row_stride != 1 || src.column_stride == 1 || bytes > 4 ||
      c.matrices.m < kLeastRows)
    return std::nullopt;
  src.column_stride = 1;
  src.row_stride = (aligned(c.matrices.k * bytes) | tuning::kLine) / bytes;
  return c;
}

// A product for this use, as `use.like` if that is given.
std::unique_ptr<const Primitive> product_step(const Contraction& contraction, size_t ports, const PrimitiveUse& use) {
  const auto* const like = dynamic_cast<const ProductStep*>(use.like);
  const bool is_like_packed = like != nullptr && like->packed_bytes() > 0;  // the factor that is packed is the step's input 1
  const Machine machine = machine_of(use);
  const bool may_pack = like != nullptr ? is_like_packed : use.packs_weights && !use.reads_packed_once;
  ProductPorts of{ports, !is_like_packed && is_better_transposed(contraction, machine, {use.threads, may_pack})};
  ProductWeights weights{.are_packed_ahead = may_pack && !of.swaps_factors};
  ProductUse with{use.threads, weights.are_packed_ahead};
  if (like != nullptr) {
    weights.packed_k = like->product().matrices().k, weights.packed_n = like->product().matrices().n;
    if (with.packs_ahead) with.vectors = static_cast<int>(like->product().program().vectors);
    if (with.packs_ahead) with.splits_panels = like->product().program().splits_panels;
  }
  Contraction computed = of.swaps_factors ? kernel::transposed(contraction) : contraction;
  ProductSchedule schedule = choose_product_schedule(computed, machine, with);
  if (const auto dense = of_transposed_src(computed)) {
    if (const ProductSchedule of_dense = choose_product_schedule(*dense, machine, with); !of_dense.copies_rows) {
      of.src_column = bytes_of(computed.matrices.src.dtype, computed.matrices.src.column_stride);
      computed = *dense;
      schedule = of_dense;
    }
  }
  auto product = std::make_unique<const ProductRunner>(computed, machine, schedule, use.threads, weights);
  of.is_matrix = makes_matrix(contraction.matrices);
  std::string name = join("product, ", describe(schedule), weights.are_packed_ahead ? ", weights packed" : "",
                          of.src_column > 0 ? ", a transposed copy of the rows" : "");
  return std::make_unique<const ProductStep>(std::move(product), of, std::move(name));
}

std::unique_ptr<const Primitive> product_of_integers(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  const kernel::QuantizedMatrix matrix = kernel::quantized_matrix(step);
  const kernel::IntegerRows integers = kernel::integer_rows(step);
  const Contraction contraction = kernel::dequantized_contraction_of(step);
  const Machine machine = machine_of(use);
  const bool is_packed = use.packs_weights && !use.in_a_tile;
  const DequantizedSchedule schedule = choose_schedule_of_integers(contraction, machine, use.threads, is_packed);
  auto weights = quantized_weights(matrix, kernel::part_of_group(matrix), machine, schedule, is_packed);
  auto rows = quantized_rows(integers, *weights, contraction.matrices.m);
  auto product = std::make_unique<const ProductRunner>(contraction, machine, schedule.product, use.threads,
                                                       product_weights(*weights, &integers), rows.get());
  const lamina::QuantizedRows& given = *step.dequantized->rows;
  DequantizedPorts ports{step.inputs.size(),
                         step.dequantized->given_scales,
                         step.dequantized->given_zero_points,
                         given.scales != kNoValue,
                         given.zero_points != kNoValue,
                         given.given_scale,
                         static_cast<int32_t>(given.given_zero_point)};
  std::string name = join("product of ", name_of(integers.dtype), " by ", kernel::print(matrix), ", ", describe(schedule));
  return std::make_unique<const DequantizedStep>(std::move(weights), std::move(rows), std::move(product), std::move(ports),
                                                 std::move(name));
}

std::unique_ptr<const Primitive> dequantized_product(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  if (step.dequantized->rows) return product_of_integers(step, use);
  const kernel::QuantizedMatrix matrix = kernel::quantized_matrix(step);
  const Contraction contraction = kernel::dequantized_contraction_of(step);
  const Machine machine = machine_of(use);
  const int64_t run = run_of(matrix);
  const DequantizedSchedule schedule = choose_dequantized_schedule(contraction, run, machine, use.threads);
  auto weights = quantized_weights(matrix, run, machine, schedule, use.packs_weights && !use.in_a_tile);
  auto product = std::make_unique<const ProductRunner>(contraction, machine, schedule.product, use.threads,
                                                       product_weights(*weights, nullptr));
  DequantizedPorts ports{step.inputs.size(), step.dequantized->given_scales, step.dequantized->given_zero_points};
  return std::make_unique<const DequantizedStep>(std::move(weights), nullptr, std::move(product), std::move(ports),
                                                 join("product by ", kernel::print(matrix), ", ", describe(schedule)));
}

bool all_tensors(const kernel::LibraryStep& step, const std::function<bool(DataType)>& holds) {
  for (const auto* ports : {&step.inputs, &step.outputs}) {
    for (const LogicalTensor& tensor : *ports)
      if (!tensor.is_empty_port() && !holds(tensor.dtype)) return false;
  }
  return true;
}

std::unique_ptr<const Primitive> product(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  if (step.dequantized) return dequantized_product(step, use);
  const DataType dtype = step.outputs[0].dtype;
  if (step.quantized || step.post_ops || !is_as_wide_as_sums(dtype)) return nullptr;
  if (!all_tensors(step, [dtype](DataType other) { return other == dtype; })) return nullptr;
  return product_step(kernel::contraction_of(step), step.inputs.size(), use);
}

std::unique_ptr<const Primitive> converted_product(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  const auto is_converted = [](DataType dtype) { return dtype == DataType::f32 || is_narrow(dtype); };
  if (step.post_ops || (!step.quantized && !all_tensors(step, is_converted))) return nullptr;
  Contraction contraction = kernel::contraction_of(step);
  contraction.multiplies_pairs =
      !step.quantized && multiplies_pairs(step.inputs[0].dtype, step.inputs[1].dtype, machine_of(use));
  return product_step(contraction, step.inputs.size(), use);
}

// On machines with instructions for bf16. oneDNN always multiplies pairs there; with tiles it is faster.
std::unique_ptr<const Primitive> bf16_product(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  const Instructions& instructions = machine_of(use).instructions;
  if (!instructions.rounds_to_bf16 || instructions.has_bf16_tiles) return nullptr;
  const bool is_bf16 = step.inputs[0].dtype == DataType::bf16 && step.inputs[1].dtype == DataType::bf16;
  return is_bf16 && !step.dequantized && !step.quantized ? converted_product(step, use) : nullptr;
}

}  // namespace

std::vector<LibraryOp> product_ops() {
  return {{.kind = OpKind::MatMul,
           .compile = product,
           .is_fast_in = is_as_wide_as_sums,
           .dequantizes_weights = true,
           .multiplies_quantized_rows = true},
          {.kind = OpKind::MatMul, .compile = bf16_product, .is_fast_in = [](DataType) { return false; }},
          {.kind = OpKind::GroupedMatMul, .compile = grouped_product}};
}

std::vector<LibraryOp> converted_product_ops() {
  return {
      {.kind = OpKind::MatMul, .compile = converted_product, .is_fast_in = is_narrow, .takes_integers = [] { return true; }}};
}

}  // namespace lamina::cpu
