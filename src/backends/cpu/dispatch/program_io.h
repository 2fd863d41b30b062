// Compiled plans in files: the steps as the runner has them, written by the compiler and read by the runtime.
#pragma once

#include <memory>

#include "backends/cpu/dispatch/program_runner.h"
#include "backends/cpu/program/program_writer.h"

namespace lamina::cpu {

// Throws Error(unimplemented) for a step that cannot be written, and names it.
void write_program(ProgramWriter& to, const ProgramRunner& program);

// Throws Error(invalid_arguments) for data that write_program does not write. The numbers of args, ports and constants are
// checked, so that a plan of `inputs` and `outputs` ports reads only its own arrays.
std::shared_ptr<const ProgramRunner> read_program(ProgramReader& from, size_t inputs, size_t outputs);

}  // namespace lamina::cpu
