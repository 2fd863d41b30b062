// From the source of a function to machine code: one JIT per process, with a cache of code by structure, and optionally one on
// disk (backends/cache/code_cache.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backends/cpu/code/code_source.h"
#include "backends/cpu/schedule/schedule.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

struct CompiledCode {
  void* address = nullptr;  // null for another architecture than the host's
  std::string symbol;
  bool from_cache = false;             // in memory or on disk
  std::shared_ptr<const void> memory;  // owns the function, which may be called as long as a copy of this exists

  // `Function`: a pointer to the type that the source documents.
  template <typename Function>
  Function as() const {
    return reinterpret_cast<Function>(address);
  }
};

// void NAME(call, row_begin, row_end, inner_begin, inner_end, partials); see emit_kernel.h.
using KernelFunction = void (*)(const int64_t*, int64_t, int64_t, int64_t, int64_t, void*);

struct CompiledKernel : CompiledCode {
  KernelFunction function = nullptr;
};

// Thread-safe. The code is for `machine`, which may differ from this one. Throws Error(runtime_error) if LLVM refuses it.
CompiledCode compile_code(const CodeSource& source, const Machine& machine);
CompiledKernel compile_kernel(const kernel::Kernel& kernel, const Schedule& schedule, const Machine& machine);

}  // namespace lamina::cpu
