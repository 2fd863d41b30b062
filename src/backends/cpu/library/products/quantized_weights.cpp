#include "backends/cpu/library/products/quantized_weights.h"

#include <utility>

#include "backends/cpu/code/jit.h"
#include "backends/cpu/product/dequantized_code.h"
#include "backends/cpu/product/tuning.h"

namespace lamina::cpu {

namespace {

QuantizedPanel panel_of(const kernel::QuantizedMatrix& matrix, int64_t run, const ProductSchedule& schedule) {
  return {.dtype = matrix.values.dtype,
          .vector_bits = schedule.vector_bits,
          .vectors = schedule.vectors,
          .run = run,
          .scales = matrix.scales.dtype,
          .has_zero_points = matrix.zero_points.has_value(),
          .rounds_to = matrix.rounds_to};
}

}  // namespace

// A divisor of the group, in whole words, so that the words of successive runs are contiguous.
int64_t run_of(const kernel::QuantizedMatrix& matrix) {
  const int64_t entries = 32 / bits_of(matrix.values.dtype), group = matrix.group_rows;
  if (group <= product_tuning::kLongestRun) return group;
  for (int64_t run = product_tuning::kLongestRun / entries * entries; run > 0; run -= entries)
    if (group % run == 0) return run;
  return group;
}

std::unique_ptr<const QuantizedWeights> quantized_weights(const kernel::QuantizedMatrix& matrix, int64_t run,
                                                          const Machine& machine, const DequantizedSchedule& schedule,
                                                          bool is_packed) {
  QuantizedWeightsProgram program{matrix, panel_of(matrix, run, schedule.product), schedule.in_registers, is_packed};
  const QuantizedPanel& panel = program.panel;
  const auto copy_along_k = [&] {
    return compile_code(
        source_of(PanelCopy{.vector_bits = panel.vector_bits, .vectors = panel.vectors, .along_k = true, .bytes_ahead = 0}),
        machine);
  };
  QuantizedWeightsCode code;
  if (!program.in_registers) code.dequantise = compile_code(source_of(DequantizedTile{.panel = panel, .rows = 0}), machine);
  if (panel.run % panel.entries_of_word() == 0) {
    if (matrix.values.row_stride == 1)
      code.words = copy_along_k();
    else if (matrix.values.column_stride == 1)
      code.words = compile_code(
          source_of(WordCopy{.dtype = panel.dtype, .vector_bits = panel.vector_bits, .vectors = panel.vectors}), machine);
  }
  const bool has_own_scales = matrix.group_columns == 1 && panel.run == matrix.group_rows;
  if (has_own_scales && matrix.scales.row_stride == 1 && panel.scales == DataType::f32) code.scales_along_k = copy_along_k();
  return std::make_unique<const QuantizedWeights>(std::move(program), std::move(code));
}

std::unique_ptr<const QuantizedRows> quantized_rows(const kernel::IntegerRows& rows, const QuantizedWeights& weights,
                                                    int64_t rows_of_entry) {
  return std::make_unique<const QuantizedRows>(QuantizedRowsProgram{rows, weights.program().panel, rows_of_entry});
}

ProductWeights product_weights(const QuantizedWeights& weights, const kernel::IntegerRows* rows) {
  ProductWeights of{.source = &weights};
  if (!weights.program().in_registers) return of;
  if (rows != nullptr) {
    of.tile = [panel = weights.program().panel,
               has_zero_points = rows->has_zero_points || rows->dtype == DataType::u8](const ProductTile& of_floats) {
      return source_of(IntegerTile{.panel = panel,
                                   .rows = of_floats.rows,
                                   .has_zero_points = has_zero_points,
                                   .bytes_ahead = product_tuning::kIntegersAhead});
    };
    return of;
  }
  of.tile = [panel = weights.program().panel](const ProductTile& of_floats) {
    return source_of(DequantizedTile{.panel = panel, .rows = of_floats.rows, .bytes_ahead = product_tuning::kIntegersAhead});
  };
  return of;
}

}  // namespace lamina::cpu
