// From an object file to code that runs, in memory of its own that is first written, then executable, never both.
#pragma once

#include <string>

#include "backends/cpu/code/jit_symbols.h"
#include "backends/cpu/code/llvm_headers.h"

namespace lamina::cpu {

// For one thread at a time; what it loads lives as long as the process.
class ObjectLinker {
 public:
  explicit ObjectLinker(const SymbolRequest& request) : listeners_(listeners_for(request)) {}

  // The address of `symbol` in `object`. An error where the object is not whole, defines no such symbol, or needs one that the
  // process does not have; nothing of it stays then.
  llvm::Expected<void*> link(llvm::MemoryBufferRef object, const std::string& symbol);

 private:
  std::vector<llvm::JITEventListener*> listeners_;
};

}  // namespace lamina::cpu
