// What steps from a file must be, so that to load them is safe, and a run reads only their own arrays. Each function throws
// Error(invalid_arguments).
#pragma once

#include <cstddef>

#include "backends/cpu/program/axis_program.h"
#include "backends/cpu/program/grouped_program.h"
#include "backends/cpu/program/kernel_program.h"
#include "backends/cpu/program/product_program.h"
#include "backends/cpu/program/quantized_panel.h"
#include "backends/cpu/program/tile_program.h"
#include "backends/cpu/program/window_program.h"
#include "backends/cpu/program/window_work.h"
#include "kernels/quantized_matrix.h"

namespace lamina::cpu {

void require(bool holds, const char* expected);

void check(const KernelProgram& program);
// `args`: of the step. `constants`: of the plan.
void check(const TileProgram& program, size_t args, size_t constants);
void check(const ProductProgram& program);
void check(const TopKProgram& program);
void check(const RunningProgram& program);
void check(const RecurrenceProgram& program);
void check(const WindowRowsProgram& program);
void check(const kernel::QuantizedMatrix& matrix, const QuantizedPanel& panel);
void check(const ConvolutionProgram& program, size_t args);
void check(const WindowWork& work, size_t args);
void check(const GroupedProgram& program);
void check(const GroupedSumsProgram& program);
// `codes`: kinds of tiles.
void check(const LineProgram& program, size_t args, size_t codes);
void check(const TapProgram& program, size_t args);

}  // namespace lamina::cpu
