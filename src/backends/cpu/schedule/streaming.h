// Outputs that are written past the caches, and how a row's walk meets their lines.
#pragma once

#include "backends/cpu/schedule/schedule.h"

namespace lamina::cpu {

// After choose_lanes.
void choose_streaming(Schedule& schedule, const kernel::Kernel& kernel);

}  // namespace lamina::cpu
