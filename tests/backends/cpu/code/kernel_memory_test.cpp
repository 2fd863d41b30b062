// One mapping for all sections of an object: aligned, within reach of a 32-bit offset, null once a part is full, and protected
// as a whole.
#include "backends/cpu/code/kernel_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace lamina::testing {
namespace {

using cpu::KernelMemory;

// A function that returns immediately.
#if defined(__aarch64__)
constexpr uint8_t kReturn[] = {0xC0, 0x03, 0x5F, 0xD6};
#else
constexpr uint8_t kReturn[] = {0xC3};
#endif

bool is_aligned(const uint8_t* address, uintptr_t align) { return reinterpret_cast<uintptr_t>(address) % align == 0; }

TEST(KernelMemory, PartsOfOneMapping) {
  KernelMemory memory;
  ASSERT_TRUE(memory.needsToReserveAllocationSpace());
  memory.reserveAllocationSpace(3000, llvm::Align(64), 200, llvm::Align(64), 100, llvm::Align(16));
  uint8_t* const code = memory.allocateCodeSection(3000, 64, 1, ".text");
  uint8_t* const constants = memory.allocateDataSection(100, 64, 2, ".rodata", true);
  uint8_t* const more = memory.allocateDataSection(36, 64, 3, ".rodata.cst4", true);
  uint8_t* const data = memory.allocateDataSection(100, 16, 4, ".data", false);
  for (uint8_t* const section : {code, constants, more, data}) ASSERT_NE(section, nullptr);
  EXPECT_TRUE(is_aligned(code, 64) && is_aligned(constants, 64) && is_aligned(more, 64) && is_aligned(data, 16));
  EXPECT_LE(code + 3000, constants);
  EXPECT_LE(constants + 100, more);
  EXPECT_LE(more + 36, data);
  EXPECT_LT(data - code, 1 << 20);
  EXPECT_EQ(memory.allocateDataSection(8192, 16, 5, ".data", false), nullptr) << "more than was reserved";
  std::memcpy(code, kReturn, sizeof kReturn);
  constants[0] = 7;
  std::string fault;
  ASSERT_FALSE(memory.finalizeMemory(&fault)) << fault;
  reinterpret_cast<void (*)()>(code)();
  EXPECT_EQ(constants[0], 7);
  data[0] = 1;
}

TEST(KernelMemoryDeathTest, CodeAndConstantsAreNotWrittenLater) {
  KernelMemory memory;
  memory.reserveAllocationSpace(16, llvm::Align(16), 16, llvm::Align(16), 0, llvm::Align(1));
  uint8_t* const code = memory.allocateCodeSection(16, 16, 1, ".text");
  uint8_t* const constants = memory.allocateDataSection(16, 16, 2, ".rodata", true);
  ASSERT_FALSE(memory.finalizeMemory(nullptr));
  EXPECT_DEATH(std::memset(code, 0, 1), "");
  EXPECT_DEATH(std::memset(constants, 0, 1), "");
}

TEST(KernelMemory, NothingReservedNothingGiven) {
  KernelMemory memory;
  EXPECT_EQ(memory.allocateCodeSection(16, 16, 1, ".text"), nullptr);
  EXPECT_FALSE(memory.finalizeMemory(nullptr));
}

}  // namespace
}  // namespace lamina::testing
