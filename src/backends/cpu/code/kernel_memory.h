// Memory of a kernel's code and constants: one mapping, so that code reaches its constants with 32-bit offsets.
#pragma once

#include <cstdint>
#include <string>

#include "backends/cpu/llvm/headers.h"

namespace lamina::cpu {

// The sections of one object, in the order code, constants, data. They are writable until finalizeMemory, which makes code
// executable and constants read-only. The destructor frees the memory.
class KernelMemory final : public llvm::RTDyldMemoryManager {
 public:
  ~KernelMemory() override;

  bool needsToReserveAllocationSpace() override { return true; }
  void reserveAllocationSpace(uintptr_t code_size, llvm::Align code_align, uintptr_t constants_size,
                              llvm::Align constants_align, uintptr_t data_size, llvm::Align data_align) override;
  uint8_t* allocateCodeSection(uintptr_t size, unsigned align, unsigned id, llvm::StringRef name) override;
  uint8_t* allocateDataSection(uintptr_t size, unsigned align, unsigned id, llvm::StringRef name, bool is_constant) override;
  bool finalizeMemory(std::string* fault) override;  // true: failed, and `fault` says why

 private:
  struct Part {
    uint8_t *begin = nullptr, *next = nullptr, *end = nullptr;  // whole pages
    uint8_t* take(uintptr_t size, uintptr_t align);             // null if it is full
  };

  llvm::sys::MemoryBlock block_;
  Part code_, constants_, data_;
};

}  // namespace lamina::cpu
