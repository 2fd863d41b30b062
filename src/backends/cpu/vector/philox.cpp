#include "backends/cpu/vector/philox.h"

#include <array>
#include <cstdint>

#include "interface/status.h"

namespace lamina::cpu {
namespace {

using llvm::Value;
using Builder = llvm::IRBuilder<>;
using Block = std::array<Value*, 4>;

// A scalar as wide as `type`; what has that width already stays.
Value* widen(Builder& b, Value* value, llvm::Type* type) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  if (vector == nullptr || value->getType()->isVectorTy()) return value;
  return b.CreateVectorSplat(vector->getNumElements(), value);
}

Value* low_half(Builder& b, Value* value) { return b.CreateTrunc(value, value->getType()->getWithNewType(b.getInt32Ty())); }
Value* high_half(Builder& b, Value* value) { return low_half(b, b.CreateLShr(value, 32)); }

// 32 x 32 bits to 64.
Value* wide_product(Builder& b, Value* word, uint64_t factor) {
  auto* wide = word->getType()->getWithNewType(b.getInt64Ty());
  return b.CreateMul(b.CreateZExt(word, wide), llvm::ConstantInt::get(wide, factor));
}

// One call of the generator per lane; `block` is the element position with its two lowest bits cleared.
Block philox4x32_10(Builder& b, Value* block, Value* seed, Value* offset) {
  auto* words = block->getType()->getWithNewType(b.getInt32Ty());
  Block counter{widen(b, low_half(b, offset), words), widen(b, high_half(b, offset), words), low_half(b, block),
                high_half(b, block)};
  std::array<Value*, 2> key{low_half(b, seed), high_half(b, seed)};  // scalars where the seed is one
  for (int round = 0; round < 10; ++round) {
    Value* x = wide_product(b, counter[0], 0xD2511F53);
    Value* y = wide_product(b, counter[2], 0xCD9E8D57);
    counter = {b.CreateXor(b.CreateXor(high_half(b, y), counter[1]), widen(b, key[0], words)), low_half(b, y),
               b.CreateXor(b.CreateXor(high_half(b, x), counter[3]), widen(b, key[1], words)), low_half(b, x)};
    key = {b.CreateAdd(key[0], llvm::ConstantInt::get(key[0]->getType(), 0x9E3779B9)),
           b.CreateAdd(key[1], llvm::ConstantInt::get(key[1]->getType(), 0xBB67AE85))};
  }
  return counter;
}

// The results of lane i as lanes 4i .. 4i + 3.
Value* interleave(Builder& b, const Block& words, int lanes) {
  llvm::SmallVector<int, 64> pair, all;
  for (int i = 0; i < 2 * lanes; ++i) pair.push_back(i);
  Value* low = b.CreateShuffleVector(words[0], words[1], pair);
  Value* high = b.CreateShuffleVector(words[2], words[3], pair);
  for (int i = 0; i < lanes; ++i)
    for (int word = 0; word < 4; ++word) all.push_back(word * lanes + i);
  return b.CreateShuffleVector(low, high, all);
}

}  // namespace

Value* emit_philox_word(Builder& b, Value* index, Value* seed, Value* offset) {
  auto* type = index->getType();
  Value* block = b.CreateAnd(index, llvm::ConstantInt::get(type, ~uint64_t{3}));
  const Block words = philox4x32_10(b, block, seed, offset);
  Value* place = low_half(b, b.CreateAnd(index, llvm::ConstantInt::get(type, 3)));
  const auto is = [&](uint64_t which) { return b.CreateICmpEQ(place, llvm::ConstantInt::get(place->getType(), which)); };
  Value* upper = b.CreateSelect(is(2), words[2], words[3]);
  return b.CreateZExt(b.CreateSelect(is(0), words[0], b.CreateSelect(is(1), words[1], upper)), type);
}

Value* emit_philox_words_from(Builder& b, Value* first, int width, Value* seed, Value* offset) {
  LAMINA_CHECK(width > 0 && width % 4 == 0, join("philox makes four words at a time, not ", width));
  const int calls = width / 4;
  llvm::SmallVector<llvm::Constant*, 16> steps;
  for (int i = 0; i < calls; ++i) steps.push_back(b.getInt64(static_cast<uint64_t>(4 * i)));
  Value* block = b.CreateAdd(b.CreateVectorSplat(static_cast<unsigned>(calls), first), llvm::ConstantVector::get(steps));
  Value* words = interleave(b, philox4x32_10(b, block, seed, offset), calls);
  return b.CreateZExt(words, words->getType()->getWithNewType(b.getInt64Ty()));
}

}  // namespace lamina::cpu
