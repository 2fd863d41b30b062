// How the CPU runs a product with weights of 4 or 8 bits.
#pragma once

#include <cstdint>
#include <string>

#include "backends/cpu/product/product_schedule.h"

namespace lamina::cpu {

// The panels of `product` are always copied, or found packed.
struct DequantizedSchedule {
  ProductSchedule product;
  // The register tile reads integers and dequantises them. Else a panel is dequantised before all rows use it.
  bool in_registers = false;
  bool multiplies_integers = false;  // kernels/integer_rows.h; in registers
};

std::string describe(const DequantizedSchedule& schedule);

// The legal schedule that is most like these choices. `run`: entries of k that cannot be divided (QuantizedPanel).
DequantizedSchedule legal(const ProductSchedule& product, bool in_registers, const kernel::Contraction& contraction,
                          int64_t run);

// Likewise, for a product of integers.
DequantizedSchedule legal_of_integers(const ProductSchedule& product, const kernel::Contraction& contraction);

// By rules.
DequantizedSchedule choose_schedule_of_integers(const kernel::Contraction& contraction, const Machine& machine, int threads,
                                                bool is_packed);
DequantizedSchedule choose_dequantized_schedule(const kernel::Contraction& contraction, int64_t run, const Machine& machine,
                                                int threads);

}  // namespace lamina::cpu
