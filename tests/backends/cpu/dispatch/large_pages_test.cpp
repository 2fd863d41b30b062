// Memory of packed weights: blocks that do not overlap, aligned, each alive as long as a pointer to it.
#include "backends/cpu/dispatch/large_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace lamina::testing {
namespace {

using cpu::kLargePage;
using cpu::LargePages;

TEST(LargePages, GiveBlocksThatDoNotOverlap) {
  auto pages = std::make_unique<LargePages>();
  const std::vector<size_t> sizes{1,    100,        kLargePage / 2, kLargePage / 2, 64, kLargePage, 3 * kLargePage + 8,
                                  4096, kLargePage, 65536};
  std::vector<std::shared_ptr<void>> blocks;
  for (size_t i = 0; i < sizes.size(); ++i) {
    blocks.push_back(pages->allocate(sizes[i]));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks.back().get()) % 64, 0U);
    std::memset(blocks.back().get(), static_cast<int>(i), sizes[i]);
  }
  pages.reset();
  blocks[3].reset();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (blocks[i] == nullptr) continue;
    const auto* const bytes = static_cast<const unsigned char*>(blocks[i].get());
    EXPECT_TRUE(std::all_of(bytes, bytes + sizes[i], [&](unsigned char byte) { return byte == i; })) << i;
  }
}

TEST(LargePages, PlaceBlocksOneAfterTheOther) {
  LargePages pages;
  const std::shared_ptr<void> large = pages.allocate(kLargePage), first = pages.allocate(kLargePage + 64),
                              second = pages.allocate(1000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large.get()) % kLargePage, 0U);
  EXPECT_EQ(static_cast<char*>(second.get()) - static_cast<char*>(first.get()), static_cast<ptrdiff_t>(kLargePage + 64));
}

}  // namespace
}  // namespace lamina::testing
