// From a kernel to an object file: emission, the little that it leaves to optimize, and LLVM's code generator.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "backends/cpu/code/llvm_headers.h"
#include "backends/cpu/schedule/schedule.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

// For one thread at a time, and for machines of any kind. Throws Error(runtime_error) when LLVM refuses the machine,
// std::bad_alloc where there is no memory: what LLVM held then stays with it for ever, since the exception has passed it
// without a destructor being called.
class ObjectCodeMaker {
 public:
  // With unwind tables a debugger sees who called.
  explicit ObjectCodeMaker(bool with_unwind_tables);

  // An ELF object that defines `symbol`; see emit_kernel.h for its signature.
  std::unique_ptr<llvm::MemoryBuffer> make(const kernel::Kernel& kernel, const Schedule& schedule, const Machine& machine,
                                           const std::string& symbol);

 private:
  struct CodegenContext;

  void emit(CodegenContext& codegen, const kernel::Kernel& kernel, const Schedule& schedule, const Machine& machine) const;
  void compile(CodegenContext& codegen, llvm::TargetMachine& generator, const kernel::Kernel& kernel, const Schedule& schedule,
               const Machine& machine) const;

  const bool with_unwind_tables_;
  std::map<const Architecture*, std::unique_ptr<llvm::TargetMachine>> generators_;  // of those that were asked for
};

}  // namespace lamina::cpu
