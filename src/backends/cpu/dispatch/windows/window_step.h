// Pools and resampling as steps of a plan.
#pragma once

#include <cstddef>
#include <memory>

#include "backends/cpu/dispatch/primitive.h"
#include "backends/cpu/program/program_writer.h"
#include "backends/cpu/program/window_work.h"

namespace lamina::cpu {

std::unique_ptr<const Primitive> window_step(WindowWork work);
// Of a step with this number of args.
std::unique_ptr<const Primitive> read_windows(ProgramReader& from, size_t args);

}  // namespace lamina::cpu
