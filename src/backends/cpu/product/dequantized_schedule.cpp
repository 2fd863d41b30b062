#include "backends/cpu/product/dequantized_schedule.h"

#include <algorithm>

#include "backends/cpu/product/tuning.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

int64_t parts_of(int64_t extent, int64_t part) { return (extent + part - 1) / part; }

// Registers hold the sums, the scales and weights of one row of a panel, and two more.
int most_rows_in_registers(const Machine& machine, int vectors) {
  return (machine.instructions->registers - 2 - 2 * vectors) / vectors;
}

// For one row, each vector needs registers for its sum, scales, words and weights; the constants need one more for each.
int most_vectors(const Machine& machine) {
  return std::min(product_tuning::kDequantizedVectors, machine.instructions->registers / 5);
}

// As few tiles of rows as have two vectors or more, on the panel of one unit, which streams from memory.
ProductSchedule in_registers(const kernel::Contraction& c, const Machine& machine) {
  ProductSchedule s;
  s.vector_bits = vector_bits(machine);
  const int64_t tiles = parts_of(c.matrices.m, most_rows_in_registers(machine, 2));
  s.rows = static_cast<int>(parts_of(c.matrices.m, tiles));
  s.vectors = 1;
  while (s.vectors < most_vectors(machine) && most_rows_in_registers(machine, s.vectors + 1) >= s.rows) ++s.vectors;
  s.row_block = c.matrices.m;
  s.column_block = panel_columns(c, s);
  s.prefetches = true;
  return s;
}

}  // namespace

std::string describe(const DequantizedSchedule& schedule) {
  return join(describe(schedule.product), schedule.in_registers ? ", dequantises in registers" : "");
}

DequantizedSchedule legal(const ProductSchedule& product, bool in_registers, const kernel::Contraction& c, int64_t run) {
  DequantizedSchedule schedule{product, in_registers};
  schedule.product.copies_panels = true;
  if (in_registers) {
    schedule.product.k_block = c.matrices.k;
    schedule.product.copies_rows =
        product.copies_rows || c.matrices.src.column_stride != 1 || c.matrices.src.dtype != DataType::f32;
  } else {
    schedule.product.k_block = std::min(std::max(product.k_block / run, int64_t{1}) * run, c.matrices.k);
  }
  return schedule;
}

DequantizedSchedule choose_dequantized_schedule(const kernel::Contraction& c, int64_t run, const Machine& machine,
                                                int threads) {
  if (c.matrices.m <= product_tuning::kFewRows) return legal(in_registers(c, machine), true, c, run);
  return legal(choose_product_schedule(c, machine, {threads}), false, c, run);
}

}  // namespace lamina::cpu
