// The prefetches of register tiles, in the emitted LLVM IR: each line of weights that an entry of k reads, once.
#include <gtest/gtest.h>
#include <llvm/IR/IntrinsicInst.h>

#include <vector>

#include "backends/cpu/product/emit_product.h"
#include "backends/cpu/support/described_machines.h"

namespace lamina::testing {
namespace {

constexpr int64_t kFirstLevel = 3, kSecondLevel = 2;  // LLVM's locality levels

// The levels into which the tile prefetches lines that it will read.
std::vector<int64_t> levels_of(const cpu::ProductTile& tile) {
  llvm::LLVMContext context;
  llvm::Module module("module", context);
  cpu::emit_product_tile(module, "tile", tile, epyc().machine.instructions);
  const auto value = [](const llvm::IntrinsicInst& prefetch, unsigned argument) {
    return llvm::cast<llvm::ConstantInt>(prefetch.getArgOperand(argument))->getSExtValue();
  };
  std::vector<int64_t> levels;
  for (const llvm::BasicBlock& block : *module.getFunction("tile")) {
    for (const llvm::Instruction& instruction : block) {
      const auto* const prefetch = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      if (prefetch == nullptr || prefetch->getIntrinsicID() != llvm::Intrinsic::prefetch || value(*prefetch, 1) == 1) continue;
      levels.push_back(value(*prefetch, 2));
    }
  }
  return levels;
}

using Levels = std::vector<int64_t>;

TEST(ProductPrefetch, OfAMatrixIsEachLineOfItsRows) {
  const cpu::ProductTile in_place{.rows = 8, .vectors = 3, .bytes_ahead = 1024};
  EXPECT_EQ(levels_of(in_place), Levels(3, kSecondLevel));
}

// Each of the two rows that are joined has half of the bytes.
TEST(ProductPrefetch, OfPairsIsOfBothRows) {
  const cpu::ProductTile pairs{
      .weights = DataType::bf16, .rows = 8, .vectors = 4, .multiplies_pairs = true, .bytes_ahead = 1024};
  EXPECT_EQ(levels_of(pairs), Levels(4, kSecondLevel));
}

// A step of the loop has four entries, and then there is one for the rest.
TEST(ProductPrefetch, OfAPackedPanelIsIntoTheLevelOfTheSchedule) {
  for (const bool to_first : {false, true}) {
    const cpu::ProductTile packed{
        .rows = 8, .vectors = 2, .bytes_ahead = 2048, .prefetches_to_first = to_first, .is_dense = true};
    const int entries = cpu::entries_of_step(packed) + (cpu::entries_of_step(packed) > 1 ? 1 : 0);
    EXPECT_EQ(levels_of(packed), Levels(static_cast<size_t>(2 * entries), to_first ? kFirstLevel : kSecondLevel));
  }
}

}  // namespace
}  // namespace lamina::testing
