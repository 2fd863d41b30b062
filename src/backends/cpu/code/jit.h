// From a kernel to machine code: one JIT per process, with a cache of code by structure, and one on disk for those who ask for
// it (backends/cache/code_cache.h).
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
  KernelFunction function = nullptr;  // null of another architecture than the host's
  std::string symbol;
  bool from_cache = false;             // in memory or on disk
  std::shared_ptr<const void> memory;  // of the function: it may be called as long as a copy of this lives
};

// Thread-safe. The code is made for `machine`, which need not be this one. Throws Error(runtime_error) when LLVM refuses it.
CompiledKernel compile_kernel(const kernel::Kernel& kernel, const Schedule& schedule, const Machine& machine);

}  // namespace lamina::cpu
