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

// Registers hold the sums of both kinds, the sums of one row of a panel's codes, and four more.
int most_rows_of_integers(const Machine& machine, int vectors) {
  return std::max((machine.instructions->registers - 4 - vectors) / (2 * vectors), 1);
}

// For one row of floats, each vector needs registers for its sum, scales, words and weights; the constants need one more for
// each.
int most_vectors_of_floats(const Machine& machine) {
  return std::min(product_tuning::kDequantizedVectors, machine.instructions->registers / 5);
}

// As few tiles of rows as have this many vectors or more; the widest panels with which registers hold these rows.
void choose_tile(int64_t rows, int least_vectors, int most_vectors, const Machine& machine,
                 int (*most_rows)(const Machine&, int), ProductSchedule& s) {
  const int64_t tiles = parts_of(rows, most_rows(machine, least_vectors));
  s.rows = static_cast<int>(parts_of(rows, tiles));
  s.vectors = 1;
  while (s.vectors < most_vectors && most_rows(machine, s.vectors + 1) >= s.rows) ++s.vectors;
}

// On the panel of one unit, which streams from memory.
ProductSchedule in_registers(const kernel::Contraction& c, const Machine& machine) {
  ProductSchedule s;
  s.vector_bits = vector_bits(machine);
  choose_tile(c.matrices.m, 2, most_vectors_of_floats(machine), machine, most_rows_in_registers, s);
  s.row_block = c.matrices.m;
  s.column_block = panel_columns(c, s);
  s.prefetches = true;
  return s;
}

}  // namespace

std::string describe(const DequantizedSchedule& schedule) {
  return join(describe(schedule.product), schedule.multiplies_integers ? ", multiplies integers"
                                          : schedule.in_registers      ? ", dequantises in registers"
                                                                       : "");
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

DequantizedSchedule legal_of_integers(const ProductSchedule& product, const kernel::Contraction& c) {
  DequantizedSchedule schedule{product, true, true};
  schedule.product.copies_panels = schedule.product.copies_rows = true;
  schedule.product.panels_first = true;
  schedule.product.k_block = c.matrices.k;
  return schedule;
}

// Rows are prepared once per unit, so units have many columns. Panels that are not packed are made once per unit, so units then
// have all rows.
DequantizedSchedule choose_schedule_of_integers(const kernel::Contraction& c, const Machine& machine, int threads,
                                                bool is_packed) {
  ProductSchedule s;
  s.vector_bits = vector_bits(machine);
  choose_tile(c.matrices.m, 1, product_tuning::kDequantizedVectors, machine, most_rows_of_integers, s);
  const int64_t row_blocks = is_packed ? parts_of(c.matrices.m, product_tuning::kRowsOfUnit) : 1;
  s.row_block = parts_of(parts_of(c.matrices.m, row_blocks), s.rows) * s.rows;
  const int64_t columns = panel_columns(c, s), units = threads * product_tuning::kUnitsPerThread;
  s.column_block = parts_of(parts_of(c.matrices.n, columns), parts_of(units, row_blocks)) * columns;
  s.prefetches = true;
  return legal_of_integers(s, c);
}

DequantizedSchedule choose_dequantized_schedule(const kernel::Contraction& c, int64_t run, const Machine& machine,
                                                int threads) {
  if (c.matrices.m <= product_tuning::kFewRows) return legal(in_registers(c, machine), true, c, run);
  return legal(choose_product_schedule(c, machine, {threads}), false, c, run);
}

}  // namespace lamina::cpu
