// Compiles weights of 4 and 8 bits for products (dispatch/quantized_weights.h).
#pragma once

#include <cstdint>
#include <memory>

#include "backends/cpu/dispatch/quantized_weights.h"
#include "backends/cpu/library/products/product_runner.h"
#include "backends/cpu/product/dequantized_schedule.h"
#include "backends/cpu/schedule/machine.h"
#include "kernels/quantized_matrix.h"

namespace lamina::cpu {

// The longest run for which a panel can be made (QuantizedPanel::run).
int64_t run_of(const kernel::QuantizedMatrix& matrix);

std::unique_ptr<const QuantizedWeights> quantized_weights(const kernel::QuantizedMatrix& matrix, const Machine& machine,
                                                          const DequantizedSchedule& schedule, bool is_packed);

// Those of a product, which they must outlive.
ProductWeights product_weights(const QuantizedWeights& weights);

}  // namespace lamina::cpu
