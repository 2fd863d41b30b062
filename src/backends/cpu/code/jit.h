// From a kernel to machine code: one JIT per process, with a cache of code by structure, and optionally one on disk
// (backends/cache/code_cache.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backends/cpu/schedule/schedule.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

// void NAME(call, row_begin, row_end, inner_begin, inner_end, partials); see emit_kernel.h.
using KernelFunction = void (*)(const int64_t*, int64_t, int64_t, int64_t, int64_t, void*);

struct CompiledKernel {
  KernelFunction function = nullptr;  // null for another architecture than the host's
  std::string symbol;
  bool from_cache = false;             // in memory or on disk
  std::shared_ptr<const void> memory;  // owns the function, which may be called as long as a copy of this exists
};

// Thread-safe. The code is for `machine`, which may differ from this one. Throws Error(runtime_error) if LLVM refuses it.
CompiledKernel compile_kernel(const kernel::Kernel& kernel, const Schedule& schedule, const Machine& machine);

}  // namespace lamina::cpu
