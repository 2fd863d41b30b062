// A function of machine code.
#pragma once

#include <memory>
#include <string>

#include "backends/cpu/program/program_writer.h"

namespace lamina::cpu {

struct CompiledCode {
  const void* address = nullptr;  // null for another architecture than the host's, and if objects are kept
  std::string symbol = "";
  bool from_cache = false;                       // in memory or on disk
  std::shared_ptr<const void> memory = nullptr;  // owns the function, which may be called as long as a copy of this exists
  std::shared_ptr<const std::string> object = nullptr;  // an ELF object that defines the symbol, if the machine keeps objects

  // Whether there is code, be it for this machine or another.
  explicit operator bool() const { return address != nullptr || !symbol.empty(); }

  // `Function`: a pointer to the type that the source documents.
  template <typename Function>
  Function as() const {
    return reinterpret_cast<Function>(const_cast<void*>(address));
  }
};

inline void write(ProgramWriter& to, const CompiledCode& code) {
  if (code)
    to.write_code(code.symbol, code.object);
  else
    to.write_no_code();
}
inline CompiledCode read_code(ProgramReader& from) { return {.address = from.read_code()}; }

}  // namespace lamina::cpu
