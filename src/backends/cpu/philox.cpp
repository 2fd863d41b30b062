#include "backends/cpu/philox.h"

#include <array>

namespace lamina::cpu {

namespace {

// All words are held in 64-bit lanes with a clear upper half, so that a product of two is one multiplication.
class Words {
 public:
  Words(llvm::IRBuilder<>& b, llvm::Type* type) : b_(b), type_(type) {}
  llvm::Value* constant(uint64_t value) { return llvm::ConstantInt::get(type_, value); }
  llvm::Value* low(llvm::Value* wide) { return b_.CreateAnd(wide, constant(0xFFFFFFFFU)); }
  llvm::Value* high(llvm::Value* wide) { return b_.CreateLShr(wide, constant(32)); }

 private:
  llvm::IRBuilder<>& b_;
  llvm::Type* type_;
};

}  // namespace

llvm::Value* emit_philox_word(llvm::IRBuilder<>& b, llvm::Value* index, llvm::Value* seed, llvm::Value* offset) {
  Words words(b, index->getType());
  llvm::Value* const block = b.CreateAnd(index, words.constant(~uint64_t{3}));
  std::array<llvm::Value*, 4> counter = {words.low(offset), words.high(offset), words.low(block), words.high(block)};
  std::array<llvm::Value*, 2> key = {words.low(seed), words.high(seed)};
  for (int round = 0; round < 10; ++round) {
    llvm::Value* const first = b.CreateMul(counter[0], words.constant(0xD2511F53));
    llvm::Value* const second = b.CreateMul(counter[2], words.constant(0xCD9E8D57));
    counter = {b.CreateXor(b.CreateXor(words.high(second), counter[1]), key[0]), words.low(second),
               b.CreateXor(b.CreateXor(words.high(first), counter[3]), key[1]), words.low(first)};
    key = {words.low(b.CreateAdd(key[0], words.constant(0x9E3779B9))), words.low(b.CreateAdd(key[1], words.constant(0xBB67AE85)))};
  }
  llvm::Value* const lane = b.CreateAnd(index, words.constant(3));
  llvm::Value* word = counter[0];
  for (uint64_t i = 1; i < 4; ++i) word = b.CreateSelect(b.CreateICmpEQ(lane, words.constant(i)), counter[i], word);
  return word;
}

}  // namespace lamina::cpu
