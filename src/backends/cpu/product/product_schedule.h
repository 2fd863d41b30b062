// How the CPU runs a matrix product: the choices that do not change the bits of results (kernels/contraction.h).
//
//   for each unit: row_block rows x column_block columns of dst                      threads take units, and parts of some
//     for each k_block entries of k                                                  sums are carried over through dst
//       for each panel of columns        packed ahead, copied, or read in place      second-level cache
//         for each tile of rows          copied, or read in place                    first-level cache
//           the register tile (product_code.h)                                       registers
//
// or the same with the tiles of rows outside of the panels, or with the panels outside of the blocks of k.
#pragma once

#include <cstdint>
#include <string>

#include "backends/cpu/schedule/machine.h"
#include "backends/schedule/legal_product.h"
#include "kernels/contraction.h"

namespace lamina::cpu {

// product_fields.def documents each field.
struct ProductSchedule {
#define LAMINA_FIELD(type, name, usual, ...) type name = usual;
#include "backends/cpu/product/product_fields.def"

  // The fields in their order: visit(name, pointer to member).
  template <typename Visit>
  static constexpr void for_each_field(const Visit& visit) {
#define LAMINA_FIELD(type, name, usual, ...) visit(#name, &ProductSchedule::name);
#include "backends/cpu/product/product_fields.def"
  }
  bool operator==(const ProductSchedule&) const = default;
};

// The fields that differ from those of ProductSchedule{} (backends/schedule/schedule_text.h).
std::string describe(const ProductSchedule& schedule);

// Elements of this type in a vector.
int64_t lanes_of(const Machine& machine, DataType dtype);

// Whether two threads are faster than one, for this number of multiply-adds of vectors.
bool is_worth_threads(double multiply_adds, const Machine& machine);

int64_t panel_columns(const kernel::Contraction& contraction, const ProductSchedule& schedule);

// The input of the functions that compute a field's candidates.
struct ProductContext {
  const kernel::Contraction& contraction;
  const Machine& machine;
};

// The contraction and the machine must outlive the result.
LegalProduct<ProductSchedule, ProductContext> legal_product_schedules(const kernel::Contraction& contraction,
                                                                      const Machine& machine);

// How a product is used.
struct ProductUse {
  int threads = 1;             // at most
  bool packs_ahead = false;    // the weights are packed before the product runs
  int vectors = 0;             // of the panels that they are packed in; 0: not decided yet
  bool splits_panels = false;  // that they are packed in
  bool makes_rows = false;     // the rows of src are no matrix in memory: they are copied,
  int64_t part = 0;            // or, if not 0, found for parts of this many entries of k
};

// Whether the machine multiplies pairs of factors of these types (kernel::Contraction::multiplies_pairs).
bool multiplies_pairs(DataType src, DataType weights, const Machine& machine);

// Whether the transpose of dst is computed instead, with both factors in each other's place (kernel::transposed): if dst is
// narrower than a vector, or if the weights are along k and not packed ahead. They are then rows that are read as they are,
// only the smaller factor is copied, and results are transposed when they are written.
bool is_better_transposed(const kernel::Contraction& contraction, const Machine& machine, const ProductUse& use);

// By rules, from the sizes of caches and the number of registers.
ProductSchedule choose_product_schedule(const kernel::Contraction& contraction, const Machine& machine, const ProductUse& use);

}  // namespace lamina::cpu
