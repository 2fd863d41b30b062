// The emitted Philox gives the same words and decisions as the reference's plain code, bit for bit.
#include "backends/cpu/vector/philox.h"

#include <gtest/gtest.h>

#include "backends/cpu/vector/vector_jit.h"
#include "backends/reference/philox.h"

namespace lamina::cpu::testing {
namespace {

ElementType integers(unsigned bits) {
  return [bits](llvm::LLVMContext& context) { return llvm::Type::getIntNTy(context, bits); };
}

const std::vector<std::pair<int64_t, int64_t>> kSeedsAndOffsets{
    {0, 0}, {1, 0}, {42, 7}, {-1, -1}, {int64_t{1} << 40, 3}, {5, (int64_t{1} << 33) + 9}};

std::vector<int64_t> positions() {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < 256; ++i) all.push_back(i);
  for (int64_t i = 0; i < 256; ++i) all.push_back((int64_t{1} << 32) - 128 + i);
  for (int64_t i = 0; i < 256; ++i) all.push_back((int64_t{1} << 45) + i);
  return all;
}

// Checks the words at the positions and at positions up to `most_moved` further.
void expect_words(const Emit& emit, int width, int64_t seed, int64_t offset, int64_t most_moved = 0) {
  for (const auto& level : runnable_levels()) {
    VectorJit jit(level);
    const ArrayFunction draw = jit.compile(emit, integers(64), integers(64), width);
    auto index = positions();
    std::vector<uint64_t> words(index.size());
    for (int64_t moved = 0; moved <= most_moved; ++moved) {
      draw(index.data(), words.data(), static_cast<int64_t>(index.size()));
      for (size_t i = 0; i < index.size(); ++i)
        ASSERT_EQ(words[i], reference::dropout_word(index[i], seed, offset)) << level << ", element " << index[i];
      for (int64_t& i : index) ++i;
    }
  }
}

TEST(Philox, DrawsTheReferencesWordForEveryElement) {
  for (const auto& [seed, offset] : kSeedsAndOffsets)
    for (const int width : {1, 8, 16}) {
      const Emit emit = [s = seed, o = offset](llvm::IRBuilder<>& b, llvm::Value* index, const Instructions&) {
        return emit_philox_word(b, index, b.getInt64(static_cast<uint64_t>(s)), b.getInt64(static_cast<uint64_t>(o)));
      };
      expect_words(emit, width, seed, offset);
    }
}

TEST(Philox, TakesSeedAndOffsetAsVectorsToo) {
  const Emit emit = [](llvm::IRBuilder<>& b, llvm::Value* index, const Instructions&) {
    return emit_philox_word(b, index, b.CreateVectorSplat(8, b.getInt64(42)), b.CreateVectorSplat(8, b.getInt64(7)));
  };
  expect_words(emit, 8, 42, 7);
}

TEST(Philox, DrawsTheSameWordsForNeighboursAtOnce) {
  for (const auto& [seed, offset] : kSeedsAndOffsets)
    for (const int width : {4, 16, 64}) {
      const Emit emit = [s = seed, o = offset, width](llvm::IRBuilder<>& b, llvm::Value* index, const Instructions&) {
        llvm::Value* const words =
            emit_philox_words_from(b, b.CreateExtractElement(index, uint64_t{0}), width, b.getInt64(static_cast<uint64_t>(s)),
                                   b.getInt64(static_cast<uint64_t>(o)));
        return b.CreateZExt(words, index->getType());
      };
      expect_words(emit, width, seed, offset, 3);  // from any position on
    }
}

}  // namespace
}  // namespace lamina::cpu::testing
