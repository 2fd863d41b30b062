// From an object file to executable code. Its memory is first writable, then executable, never both.
#pragma once

#include <memory>
#include <string>

#include "backends/cpu/code/jit_symbols.h"
#include "backends/cpu/llvm/headers.h"

namespace lamina::cpu {

struct LinkedCode {
  void* address = nullptr;             // of the symbol
  std::shared_ptr<const void> memory;  // owns the code, which may run as long as a copy of this exists
};

// Thread-safe. Loaded code outlives it. Code that was reported to perf, gdb or a jitdump is never freed, because they may
// read it at any time.
class ObjectLinker {
 public:
  explicit ObjectLinker(const SymbolRequest& request) : listeners_(listeners_for(request)) {}

  // Links `symbol` in `object`. Returns an error, and frees everything, if the object is incomplete, does not define the
  // symbol, or needs a symbol that the process does not have.
  llvm::Expected<LinkedCode> link(llvm::MemoryBufferRef object, const std::string& symbol) const;

 private:
  std::vector<llvm::JITEventListener*> listeners_;
};

}  // namespace lamina::cpu
