// From the source of a function to machine code: one JIT per process, with a cache of code by structure, and optionally one on
// disk (backends/cache/code_cache.h).
#pragma once

#include "backends/cpu/code/code_source.h"
#include "backends/cpu/program/compiled_code.h"
#include "backends/cpu/program/kernel_function.h"
#include "backends/cpu/schedule/schedule.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

struct CompiledKernel : CompiledCode {
  KernelFunction function = nullptr;
};

// Thread-safe. The code is for `machine`, which may differ from this one. Throws Error(runtime_error) if LLVM refuses it.
CompiledCode compile_code(const CodeSource& source, const Machine& machine);
CompiledKernel compile_kernel(const kernel::Kernel& kernel, const Schedule& schedule, const Machine& machine);

}  // namespace lamina::cpu
