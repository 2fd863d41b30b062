// From the source of a function to an object file: emission, a few optimisations, and LLVM's code generator.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "backends/cpu/code/code_source.h"
#include "backends/cpu/llvm/headers.h"

namespace lamina::cpu {

// Where the source of a function emits it.
struct CodeModule {
  llvm::Module& module;
  const std::string& symbol;
  const Instructions& target;
};

// Not thread-safe, but several instances may work in parallel. Works for machines of any kind. Throws Error(runtime_error) if
// LLVM refuses the machine, and std::bad_alloc if there is no memory; LLVM's memory is then leaked, because the exception
// passes LLVM without running destructors.
class ObjectCodeMaker {
 public:
  // With unwind tables, a debugger shows the callers.
  explicit ObjectCodeMaker(bool with_unwind_tables);

  // An ELF object that defines `symbol`.
  std::unique_ptr<llvm::MemoryBuffer> make(const CodeSource& source, const Machine& machine, const std::string& symbol);

 private:
  struct CodegenContext;

  void emit(CodegenContext& codegen, const CodeSource& source, const Machine& machine) const;
  void compile(CodegenContext& codegen, llvm::TargetMachine& generator, const CodeSource& source, const Machine& machine) const;

  const bool with_unwind_tables_;
  std::map<const Architecture*, std::unique_ptr<llvm::TargetMachine>> generators_;  // created on demand
};

// For tests: called by each thread that generates code, amid it. Null: nothing is called.
inline constinit std::atomic<void (*)()> called_while_code_is_generated = nullptr;

}  // namespace lamina::cpu
