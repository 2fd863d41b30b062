#include "backends/cpu/product/pairs.h"

#include <algorithm>
#include <vector>

namespace lamina::cpu {

namespace {

constexpr uint64_t kHalf = 16;  // bits of a word

// A scalar or vector like `like`, with `parts` elements of `type` in each of its.
llvm::Type* shaped(llvm::Type* like, llvm::Type* type, unsigned parts = 1) {
  if (const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(like))
    return llvm::FixedVectorType::get(type, vector->getNumElements() * parts);
  return parts == 1 ? type : llvm::FixedVectorType::get(type, parts);
}

}  // namespace

llvm::Value* without_zero_point(ProductFunction& f, DataType dtype, int32_t zero_point, llvm::Value* integers) {
  llvm::Type* const type = shaped(integers->getType(), f.b.getInt16Ty());
  llvm::Value* const wide = dtype == DataType::s8 ? f.b.CreateSExt(integers, type) : f.b.CreateZExt(integers, type);
  return f.b.CreateSub(wide, llvm::ConstantInt::getSigned(type, zero_point));
}

llvm::Value* load_pairs(ProductFunction& f, llvm::Type* type, llvm::Value* pointer) {
  return f.b.CreateAlignedLoad(shaped(type, f.b.getInt16Ty()), pointer, llvm::Align(1));
}

llvm::Value* pairs_of_rows(ProductFunction& f, llvm::Value* first, llvm::Value* second) {
  llvm::Type *const bytes = shaped(f.vector, f.b.getInt8Ty()), *const pairs = shaped(f.vector, f.b.getInt16Ty());
  const auto load = [&](llvm::Value* row) { return f.b.CreateZExt(f.b.CreateAlignedLoad(bytes, row, llvm::Align(1)), pairs); };
  return f.b.CreateOr(load(first), f.b.CreateShl(load(second), 8));
}

llvm::Value* words_of_pairs(ProductFunction& f, DataType dtype, int32_t zero_point, llvm::Value* pairs) {
  llvm::Value* const bytes = f.b.CreateBitCast(pairs, shaped(pairs->getType(), f.b.getInt8Ty(), 2));
  return f.b.CreateBitCast(without_zero_point(f, dtype, zero_point, bytes), shaped(pairs->getType(), f.b.getInt32Ty()));
}

// Two vectors of words at a time are from one vector of each row.
ProductFunction::Values words_of_rows(ProductFunction& f, int vectors, llvm::Value* first, llvm::Value* second) {
  ProductFunction::Values words;
  for (int j = 0; j < vectors; j += 2) {
    const int count = std::min(vectors - j, 2), elements = count * f.lanes;
    auto* const halves = llvm::FixedVectorType::get(f.b.getInt16Ty(), static_cast<unsigned>(elements));
    const auto load = [&](llvm::Value* row) {
      return f.b.CreateAlignedLoad(halves, f.at(row, f.i64(j * f.vector_bytes() / 2)), llvm::Align(2));
    };
    llvm::Value *const low = load(first), *const high = load(second);
    for (int part = 0; part < count; ++part) {
      std::vector<int> places;
      for (int i = part * f.lanes; i < (part + 1) * f.lanes; ++i) places.insert(places.end(), {i, elements + i});
      words.push_back(f.b.CreateBitCast(f.b.CreateShuffleVector(low, high, places), f.vector));
    }
  }
  return words;
}

llvm::Value* add_products_of_bf16_pairs(ProductFunction& f, llvm::Value* sum, llvm::Value* first, llvm::Value* second) {
  return f.instructions.target->hooks->add_products_of_bf16_pairs(f.b, sum, first, second);
}

llvm::Value* add_products_of_pairs(ProductFunction& f, llvm::Value* sum, llvm::Value* first, llvm::Value* second) {
  const TargetHooks* const hooks = f.instructions.target->hooks;
  if (hooks != nullptr && hooks->add_products_of_pairs != nullptr) {
    if (llvm::Value* const added = hooks->add_products_of_pairs(f.b, sum, first, second)) return added;
  }
  const auto high = [&](llvm::Value* words) { return f.b.CreateAShr(words, kHalf); };
  const auto low = [&](llvm::Value* words) { return high(f.b.CreateShl(words, kHalf)); };
  return f.b.CreateAdd(f.b.CreateAdd(sum, f.b.CreateMul(low(first), low(second))), f.b.CreateMul(high(first), high(second)));
}

llvm::Value* add_products_of_bytes(ProductFunction& f, llvm::Value* sum, llvm::Value* codes, llvm::Value* bytes,
                                   bool are_small) {
  const TargetHooks* const hooks = f.instructions.target->hooks;
  if (hooks != nullptr && hooks->add_products_of_bytes != nullptr) {
    if (llvm::Value* const added = hooks->add_products_of_bytes(f.b, f.instructions, sum, codes, bytes, are_small))
      return added;
  }
  llvm::Type *const words = codes->getType(), *const pairs = shaped(words, f.b.getInt16Ty(), 2);
  constexpr uint64_t kByte = 8;
  const auto as_words = [&](llvm::Value* values) { return f.b.CreateBitCast(values, words); };
  llvm::Value *const of_codes = f.b.CreateBitCast(codes, pairs), *const of_bytes = f.b.CreateBitCast(bytes, pairs);
  llvm::Value* const even_codes = f.b.CreateAnd(of_codes, llvm::ConstantInt::get(pairs, 0xFF));
  llvm::Value* const even_bytes = f.b.CreateAShr(f.b.CreateShl(of_bytes, kByte), kByte);
  sum = add_products_of_pairs(f, sum, as_words(even_codes), as_words(even_bytes));
  return add_products_of_pairs(f, sum, as_words(f.b.CreateLShr(of_codes, kByte)), as_words(f.b.CreateAShr(of_bytes, kByte)));
}

llvm::Value* add_pairs_of_bytes(ProductFunction& f, llvm::Value* sums, llvm::Value* codes, llvm::Value* bytes) {
  const TargetHooks* const hooks = f.instructions.target->hooks;
  if (hooks == nullptr || hooks->add_pairs_of_bytes == nullptr) return nullptr;
  return hooks->add_pairs_of_bytes(f.b, f.instructions, sums, codes, bytes);
}

llvm::Value* add_pair(ProductFunction& f, llvm::Value* sum, llvm::Value* pair) {
  return add_products_of_pairs(f, sum, pair, llvm::ConstantInt::get(pair->getType(), 0x00010001));
}

}  // namespace lamina::cpu
