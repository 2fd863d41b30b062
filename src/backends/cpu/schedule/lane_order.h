// Whether lanes are elements of a row or rows: a model of what either costs.
#pragma once

#include "backends/cpu/schedule/schedule.h"

namespace lamina::cpu {

// Puts the outer dim along which rows should go side by side last, if that schedule suits one of them. Column sums are taken in
// the order of rows, so where there are any the order stays.
kernel::Kernel with_rows_arranged(kernel::Kernel kernel, const Machine& machine);

// Makes lanes of rows where that costs less. The kernel's rows are arranged.
void choose_lanes(Schedule& schedule, const kernel::Kernel& kernel);

}  // namespace lamina::cpu
