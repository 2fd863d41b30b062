// From a kernel to an object file: emission, the little that it leaves to optimize, and LLVM's code generator.
#pragma once

#include <memory>
#include <string>

#include "backends/cpu/code/llvm_headers.h"
#include "backends/cpu/schedule/schedule.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

// For one thread at a time. Throws Error(runtime_error) when LLVM refuses the machine.
class ObjectCodeMaker {
 public:
  // With unwind tables a debugger sees who called.
  explicit ObjectCodeMaker(bool with_unwind_tables);

  // An ELF object that defines `symbol`; see emit_kernel.h for its signature.
  std::unique_ptr<llvm::MemoryBuffer> make(const kernel::Kernel& kernel, const Schedule& schedule, const Machine& machine,
                                           const std::string& symbol);

 private:
  void optimize(llvm::Function& function, const TargetFeatures& target);
  std::unique_ptr<llvm::MemoryBuffer> object_of(llvm::Module& module, bool reduces_strength);

  const bool with_unwind_tables_;
  std::unique_ptr<llvm::TargetMachine> machine_;
};

}  // namespace lamina::cpu
