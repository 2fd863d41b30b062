#include "backends/cpu/code/kernel_memory.h"

#include <array>
#include <cstdint>
#include <new>
#include <string>
#include <system_error>
#include <utility>

namespace lamina::cpu {

using llvm::sys::Memory;
using llvm::sys::MemoryBlock;

namespace {

constexpr unsigned kReadWrite = Memory::MF_READ | Memory::MF_WRITE, kReadExecute = Memory::MF_READ | Memory::MF_EXEC;

}  // namespace

KernelMemory::~KernelMemory() {
  deregisterEHFrames();
  Memory::releaseMappedMemory(block_);
}

// Throws through LLVM, which has not allocated anything yet. If a section later gets no memory, LLVM ends the process.
void KernelMemory::reserveAllocationSpace(uintptr_t code_size, llvm::Align code_align, uintptr_t constants_size,
                                          llvm::Align constants_align, uintptr_t data_size, llvm::Align data_align) {
  const uintptr_t page = llvm::sys::Process::getPageSizeEstimate();
  const std::array sizes{std::pair(&code_, llvm::alignTo(code_size + code_align.value(), page)),
                         std::pair(&constants_, llvm::alignTo(constants_size + constants_align.value(), page)),
                         std::pair(&data_, llvm::alignTo(data_size + data_align.value(), page))};
  std::error_code fault;
  block_ = Memory::allocateMappedMemory(sizes[0].second + sizes[1].second + sizes[2].second, nullptr, kReadWrite, fault);
  if (fault) throw std::bad_alloc();
  auto* next = static_cast<uint8_t*>(block_.base());
  for (const auto& [part, size] : sizes) {
    *part = {next, next, next + size};
    next += size;
  }
}

uint8_t* KernelMemory::Part::take(uintptr_t size, uintptr_t align) {
  if (begin == nullptr) return nullptr;
  auto* const at = reinterpret_cast<uint8_t*>(llvm::alignTo(reinterpret_cast<uintptr_t>(next), align == 0 ? 1 : align));
  if (at > end || size > static_cast<uintptr_t>(end - at)) return nullptr;
  next = at + size;
  return at;
}

uint8_t* KernelMemory::allocateCodeSection(uintptr_t size, unsigned align, unsigned, llvm::StringRef) {
  return code_.take(size, align);
}

uint8_t* KernelMemory::allocateDataSection(uintptr_t size, unsigned align, unsigned, llvm::StringRef, bool is_constant) {
  return (is_constant ? constants_ : data_).take(size, align);
}

bool KernelMemory::finalizeMemory(std::string* fault) {
  for (const auto& [part, flags] : {std::pair(&code_, kReadExecute), std::pair(&constants_, unsigned{Memory::MF_READ})}) {
    if (part->begin == nullptr) continue;
    // LLVM invalidates the instruction cache of new executable memory on processors that require this.
    const MemoryBlock pages(part->begin, static_cast<size_t>(part->end - part->begin));
    if (const std::error_code error = Memory::protectMappedMemory(pages, flags)) {
      if (error == std::errc::not_enough_memory) throw std::bad_alloc();
      if (fault != nullptr)
        *fault = "cannot make memory " + std::string(flags == kReadExecute ? "executable: " : "read-only: ") + error.message();
      return true;
    }
  }
  return false;
}

}  // namespace lamina::cpu
