// Reports generated functions to perf and gdb, on request (docs/debugging.md).
#pragma once

#include <vector>

#include "backends/cpu/llvm/headers.h"

namespace lamina::cpu {

// LAMINA_JIT_SYMBOLS is a list of
//   perf     lines in /tmp/perf-PID.map, which perf reads for names
//   jitdump  a file that `perf inject --jit` reads, including code (if LLVM was built with it)
//   gdb      the JIT interface of gdb
// Throws Error(invalid_arguments) for any other entry.
struct SymbolRequest {
  bool perf = false, jitdump = false, gdb = false;
  bool any() const { return perf || jitdump || gdb; }
};
SymbolRequest symbol_request();

// They live until the process ends.
std::vector<llvm::JITEventListener*> listeners_for(const SymbolRequest& request);

}  // namespace lamina::cpu
