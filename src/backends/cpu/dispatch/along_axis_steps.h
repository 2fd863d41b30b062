// TopK, CumSum, CumProd and linear recurrences as steps, by lamina's own loops.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "backends/cpu/dispatch/primitive.h"
#include "backends/cpu/program/axis_program.h"
#include "backends/cpu/program/program_writer.h"

namespace lamina::cpu {

std::unique_ptr<const Primitive> top_k_step(TopKProgram program);
std::unique_ptr<const Primitive> running_step(RunningProgram program);
std::unique_ptr<const Primitive> recurrence_step(RecurrenceProgram program);

// Of steps with this number of args.
std::unique_ptr<const Primitive> read_top_k(ProgramReader& from, size_t args);
std::unique_ptr<const Primitive> read_running(ProgramReader& from, size_t args);
std::unique_ptr<const Primitive> read_recurrence(ProgramReader& from, size_t args);

}  // namespace lamina::cpu
