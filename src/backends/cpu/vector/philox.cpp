// All arithmetic is in lanes of 64 bits, whose low halves contain the words. A product of two words yields the next round's
// words in its two halves, so no lanes are converted.
#include "backends/cpu/vector/philox.h"

#include <array>
#include <cstdint>
#include <vector>

#include "interface/status.h"

namespace lamina::cpu {
namespace {

using llvm::Value;
using Builder = llvm::IRBuilder<>;
using Words = std::array<Value*, 4>;  // in the low halves; the high halves are undefined
using Key = std::array<Value*, 2>;

constexpr int kRounds = 10;

// A scalar broadcast to the width of `type`. Values with that width do not change.
Value* widen(Builder& b, Value* value, llvm::Type* type) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  if (vector == nullptr || value->getType()->isVectorTy()) return value;
  return b.CreateVectorSplat(vector->getNumElements(), value);
}

Value* high_half(Builder& b, Value* value) { return b.CreateLShr(value, 32); }
Value* low_half(Builder& b, Value* value) { return b.CreateAnd(value, uint64_t{0xffffffff}); }

// The other half of the counter is the element's position with its two lowest bits cleared, which is the same for four
// neighbours.
Words counter_of(Builder& b, Value* block, Value* offset) {
  return {widen(b, offset, block->getType()), widen(b, high_half(b, offset), block->getType()), block, high_half(b, block)};
}
Key key_of(Builder& b, Value* seed) { return {seed, high_half(b, seed)}; }  // scalars if the seed is one

void take_round(Builder& b, Words& counter, Key& key) {
  const auto product = [&](Value* word, uint64_t factor) {
    return b.CreateMul(low_half(b, word), llvm::ConstantInt::get(word->getType(), factor));
  };
  llvm::Type* const type = counter[0]->getType();
  Value* const x = product(counter[0], 0xD2511F53);
  Value* const y = product(counter[2], 0xCD9E8D57);
  counter = {b.CreateXor(b.CreateXor(high_half(b, y), counter[1]), widen(b, key[0], type)), y,
             b.CreateXor(b.CreateXor(high_half(b, x), counter[3]), widen(b, key[1], type)), x};
  key = {b.CreateAdd(key[0], llvm::ConstantInt::get(key[0]->getType(), 0x9E3779B9)),
         b.CreateAdd(key[1], llvm::ConstantInt::get(key[1]->getType(), 0xBB67AE85))};
}

// Ten rounds in a row.
Words draw(Builder& b, Value* block, Value* seed, Value* offset) {
  Words counter = counter_of(b, block, offset);
  Key key = key_of(b, seed);
  for (int round = 0; round < kRounds; ++round) take_round(b, counter, key);
  return counter;
}

// Ten rounds as a loop, with a tenth of the code.
Words draw_in_loop(Builder& b, Value* block, Value* seed, Value* offset) {
  Words counter = counter_of(b, block, offset);
  Key key = key_of(b, seed);
  llvm::Function* const function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* const before = b.GetInsertBlock();
  auto* const head = llvm::BasicBlock::Create(b.getContext(), "round", function);
  auto* const after = llvm::BasicBlock::Create(b.getContext(), "drawn", function);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  std::vector<llvm::PHINode*> carried;
  const auto carry = [&](Value*& value) {
    carried.push_back(b.CreatePHI(value->getType(), 2));
    carried.back()->addIncoming(value, before);
    value = carried.back();
  };
  Value* round = b.getInt32(0);
  carry(round);
  for (Value*& word : counter) carry(word);
  for (Value*& word : key) carry(word);
  take_round(b, counter, key);
  round = b.CreateAdd(round, b.getInt32(1));
  const std::array<Value*, 7> next{round, counter[0], counter[1], counter[2], counter[3], key[0], key[1]};
  for (size_t i = 0; i < next.size(); ++i) carried[i]->addIncoming(next[i], head);
  b.CreateCondBr(b.CreateICmpULT(round, b.getInt32(kRounds)), head, after);
  b.SetInsertPoint(after);
  return counter;
}

// The words of each lane, 32 bits each: words 4i .. 4i + 3 belong to lane i.
Value* interleave(Builder& b, const Words& words, int lanes) {
  const auto elements = static_cast<unsigned>(lanes);
  auto* const low_and_high = llvm::FixedVectorType::get(b.getInt32Ty(), 2 * elements);
  auto* const pairs = llvm::FixedVectorType::get(b.getInt64Ty(), elements);
  llvm::SmallVector<int, 32> low_of_two, order;
  for (int i = 0; i < lanes; ++i) {
    low_of_two.append({2 * i, 2 * lanes + 2 * i});
    order.append({i, lanes + i});
  }
  const auto pair = [&](Value* first, Value* second) {
    Value* const both =
        b.CreateShuffleVector(b.CreateBitCast(first, low_and_high), b.CreateBitCast(second, low_and_high), low_of_two);
    return b.CreateBitCast(both, pairs);
  };
  Value* const all = b.CreateShuffleVector(pair(words[0], words[1]), pair(words[2], words[3]), order);
  return b.CreateBitCast(all, llvm::FixedVectorType::get(b.getInt32Ty(), 4 * elements));
}

// The words of `calls` calls for the elements from `begin` on.
Value* draw_side_by_side(Builder& b, Value* begin, int calls, Value* seed, Value* offset) {
  llvm::SmallVector<llvm::Constant*, 16> steps;
  for (int i = 0; i < calls; ++i) steps.push_back(b.getInt64(static_cast<uint64_t>(4 * i)));
  Value* const blocks = b.CreateAdd(b.CreateVectorSplat(static_cast<unsigned>(calls), begin), llvm::ConstantVector::get(steps));
  return interleave(b, draw(b, blocks, seed, offset), calls);
}

// All words but the first `begin` (0 to 3) of `words`, followed by as many of `after`. If `begin` is known to be 0, LLVM
// finds that `after` is unused.
Value* words_from(Builder& b, Value* words, Value* after, Value* begin) {
  const auto* const type = llvm::cast<llvm::FixedVectorType>(words->getType());
  const auto width = static_cast<int>(type->getNumElements());
  llvm::SmallVector<int, 64> as_wide(type->getNumElements(), llvm::PoisonMaskElem);
  for (int i = 0; i < 3; ++i) as_wide[static_cast<size_t>(i)] = i;
  Value* const next = b.CreateShuffleVector(after, as_wide);
  const auto run_from = [&](int first) {
    llvm::SmallVector<int, 64> order;
    for (int i = 0; i < width; ++i) order.push_back(first + i);
    return b.CreateShuffleVector(words, next, order);
  };
  const auto choose = [&](uint64_t bit, Value* if_set, Value* if_not) {
    Value* const is_set = b.CreateICmpNE(b.CreateAnd(begin, bit), b.getInt64(0));
    return b.CreateSelect(b.CreateVectorSplat(static_cast<unsigned>(width), is_set), if_set, if_not);
  };
  return choose(2, choose(1, run_from(3), run_from(2)), choose(1, run_from(1), run_from(0)));
}

}  // namespace

Value* emit_philox_word(Builder& b, Value* index, Value* seed, Value* offset) {
  auto* type = index->getType();
  const Words words = draw_in_loop(b, b.CreateAnd(index, ~uint64_t{3}), seed, offset);
  const auto has = [&](uint64_t bit) { return b.CreateICmpNE(b.CreateAnd(index, bit), llvm::Constant::getNullValue(type)); };
  Value* const upper = b.CreateSelect(has(1), words[3], words[2]);
  return low_half(b, b.CreateSelect(has(2), upper, b.CreateSelect(has(1), words[1], words[0])));
}

Value* emit_philox_words_from(Builder& b, Value* first, int width, Value* seed, Value* offset) {
  LAMINA_CHECK(width > 0 && width % 4 == 0, join("philox makes four words at a time, not ", width));
  constexpr int kCallsAfter = 2;  // one would be enough, but LLVM would scalarise it
  Value* const begin = b.CreateAnd(first, ~uint64_t{3});
  Value* const words = draw_side_by_side(b, begin, width / 4, seed, offset);
  Value* const past_end = b.CreateAdd(begin, b.getInt64(static_cast<uint64_t>(width)));
  return words_from(b, words, draw_side_by_side(b, past_end, kCallsAfter, seed, offset), b.CreateAnd(first, 3));
}

}  // namespace lamina::cpu
