// From an object file to code that runs, in memory of its own that is first written, then executable, never both.
#pragma once

#include <memory>
#include <string>

#include "backends/cpu/code/jit_symbols.h"
#include "backends/cpu/code/llvm_headers.h"

namespace lamina::cpu {

struct LinkedCode {
  void* address = nullptr;             // of the symbol
  std::shared_ptr<const void> memory;  // the code runs as long as somebody holds it
};

// For one thread at a time; what it loads outlives it. Code that perf, gdb or a jitdump was told of stays for ever: they may
// look for it at any time.
class ObjectLinker {
 public:
  explicit ObjectLinker(const SymbolRequest& request) : listeners_(listeners_for(request)) {}

  // `symbol` in `object`. An error where the object is not whole, defines no such symbol, or needs one that the
  // process does not have; nothing of it stays then.
  llvm::Expected<LinkedCode> link(llvm::MemoryBufferRef object, const std::string& symbol);

 private:
  std::vector<llvm::JITEventListener*> listeners_;
};

}  // namespace lamina::cpu
