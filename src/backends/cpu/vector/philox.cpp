#include "backends/cpu/vector/philox.h"

#include <cstdint>
#include <vector>

#include "backends/cpu/vector/lanes.h"
#include "interface/status.h"
#include "kernels/math/philox.h"

namespace lamina::cpu {
namespace {

using llvm::Value;
using Builder = llvm::IRBuilder<>;
using Bits = kernel::math::Bits<FloatLanes>;
using State = kernel::math::PhiloxState<FloatLanes>;

// The generator for the blocks of each lane. `seed` and `offset` are scalars or as wide as `block`.
class Philox {
 public:
  Philox(Builder& b, Value* block, Value* seed, Value* offset)
      : b_(b),
        lanes_(lanes_of(block)),
        of_seed_(lanes_of(seed)),
        of_offset_(lanes_of(offset)),
        start_(philox_start(Bits{&lanes_, block}, Bits{&of_seed_, seed}, Bits{&of_offset_, offset})) {}

  State words() const { return philox_words(start_); }
  // The rounds as a loop, with a tenth of the code.
  State words_in_loop() const {
    llvm::Function* const function = b_.GetInsertBlock()->getParent();
    llvm::BasicBlock* const before = b_.GetInsertBlock();
    auto* const head = llvm::BasicBlock::Create(b_.getContext(), "round", function);
    auto* const after = llvm::BasicBlock::Create(b_.getContext(), "drawn", function);
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    std::vector<llvm::PHINode*> carried;
    const auto carry = [&](Value* value) {
      carried.push_back(b_.CreatePHI(value->getType(), 2));
      carried.back()->addIncoming(value, before);
      return carried.back();
    };
    Value* const round = carry(b_.getInt32(0));
    State state = start_;
    for (Bits& part : state) part.value = carry(part.value);
    state = philox_round(state);
    Value* const next = b_.CreateAdd(round, b_.getInt32(1));
    carried[0]->addIncoming(next, head);
    for (size_t i = 0; i < state.size(); ++i) carried[i + 1]->addIncoming(state[i].value, head);
    b_.CreateCondBr(b_.CreateICmpULT(next, b_.getInt32(kernel::math::kPhiloxRounds)), head, after);
    b_.SetInsertPoint(after);
    return state;
  }
  Value* word_of(const State& words, Value* index) const { return philox_word_of(words, Bits{&lanes_, index}).value; }

 private:
  FloatLanes lanes_of(Value* integers) const { return FloatLanes(b_, integers->getType()->getWithNewType(b_.getDoubleTy())); }

  Builder& b_;
  const FloatLanes lanes_, of_seed_, of_offset_;  // for their integers of 64 bits
  const State start_;
};

// The words of each lane, 32 bits each: words 4i .. 4i + 3 belong to lane i.
Value* interleave(Builder& b, const State& words, int lanes) {
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
  Value* const all = b.CreateShuffleVector(pair(words[0].value, words[1].value), pair(words[2].value, words[3].value), order);
  return b.CreateBitCast(all, llvm::FixedVectorType::get(b.getInt32Ty(), 4 * elements));
}

// The words of `calls` calls for the elements from `begin` on.
Value* draw_side_by_side(Builder& b, Value* begin, int calls, Value* seed, Value* offset) {
  llvm::SmallVector<llvm::Constant*, 16> steps;
  for (int i = 0; i < calls; ++i) steps.push_back(b.getInt64(static_cast<uint64_t>(4 * i)));
  Value* const blocks = b.CreateAdd(b.CreateVectorSplat(static_cast<unsigned>(calls), begin), llvm::ConstantVector::get(steps));
  return interleave(b, Philox(b, blocks, seed, offset).words(), calls);
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
  const Philox philox(b, b.CreateAnd(index, ~uint64_t{3}), seed, offset);
  return philox.word_of(philox.words_in_loop(), index);
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
