// Where a kernel's code and constants lie: one mapping, so that code reaches its constants by an offset of 32 bits.
#pragma once

#include <cstdint>
#include <string>

#include "backends/cpu/code/llvm_headers.h"

namespace lamina::cpu {

// One object's sections, in the order code, constants, data; writable until finalizeMemory, which makes code executable and
// constants readable alone. Given back when this ends.
class KernelMemory final : public llvm::RTDyldMemoryManager {
 public:
  ~KernelMemory() override;

  bool needsToReserveAllocationSpace() override { return true; }
  void reserveAllocationSpace(uintptr_t code_size, llvm::Align code_align, uintptr_t constants_size,
                              llvm::Align constants_align, uintptr_t data_size, llvm::Align data_align) override;
  uint8_t* allocateCodeSection(uintptr_t size, unsigned align, unsigned id, llvm::StringRef name) override;
  uint8_t* allocateDataSection(uintptr_t size, unsigned align, unsigned id, llvm::StringRef name, bool is_constant) override;
  bool finalizeMemory(std::string* fault) override;  // true: `fault` says what went wrong

 private:
  struct Part {
    uint8_t *begin = nullptr, *next = nullptr, *end = nullptr;  // whole pages
    uint8_t* take(uintptr_t size, uintptr_t align);             // null where it is full
  };

  llvm::sys::MemoryBlock block_;
  Part code_, constants_, data_;
};

}  // namespace lamina::cpu
