// Compiles weights of 4 and 8 bits for products (dispatch/quantized_weights.h).
#pragma once

#include <cstdint>
#include <memory>

#include "backends/cpu/dispatch/quantized_rows.h"
#include "backends/cpu/dispatch/quantized_weights.h"
#include "backends/cpu/library/products/product_runner.h"
#include "backends/cpu/product/dequantized_schedule.h"
#include "backends/cpu/schedule/machine.h"
#include "kernels/integer_rows.h"
#include "kernels/quantized_matrix.h"

namespace lamina::cpu {

// The longest run for which a panel can be made (QuantizedPanel::run).
int64_t run_of(const kernel::QuantizedMatrix& matrix);

// With panels of this run.
std::unique_ptr<const QuantizedWeights> quantized_weights(const kernel::QuantizedMatrix& matrix, int64_t run,
                                                          const Machine& machine, const DequantizedSchedule& schedule,
                                                          bool is_packed);

// The first factor of a product of integers: `rows_of_entry` rows in each entry of the batch.
std::unique_ptr<const QuantizedRows> quantized_rows(const kernel::IntegerRows& rows, const QuantizedWeights& weights,
                                                    int64_t rows_of_entry);

// Those of a product, which they must outlive. `rows`: the first factor of a product of integers; else null.
ProductWeights product_weights(const QuantizedWeights& weights, const kernel::IntegerRows* rows);

}  // namespace lamina::cpu
