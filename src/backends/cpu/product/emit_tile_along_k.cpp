// A register tile whose weights are contiguous along k and stay where they are. Columns are lanes, so blocks of as many columns
// as a vector has lanes are transposed in registers: a word of each column at a time, which holds one entry of k, or two of 16
// bits.
#include <algorithm>

#include "backends/cpu/product/emit_product.h"
#include "backends/cpu/product/pairs.h"
#include "backends/cpu/product/product_function.h"
#include "backends/cpu/vector/transpose.h"

namespace lamina::cpu {

namespace {

using Values = ProductFunction::Values;

class TileAlongKEmitter {
 public:
  TileAlongKEmitter(llvm::Module& module, const std::string& symbol, const ProductTile& tile, const Instructions& target)
      : tile_(tile),
        f_(module, symbol, target, tile.vector_bits, tile.type, lane_bits_of(tile.type), tile.rows, 1),
        entry_bytes_(bytes_of(tile.weights, 1)),
        entries_(f_.vector_bytes() / entry_bytes_),
        entries_of_word_(entries_ / f_.lanes) {}

  void emit() {
    src_k_ = f_.stride(1), column_ = f_.stride(2);
    for (int row = 0; row < tile_.rows; ++row) src_rows_.push_back(f_.b.CreateMul(f_.stride(0), f_.i64(row)));
    llvm::Value *const src_tile = f_.stride(8), *const dst_tile = f_.stride(9);
    f_.repeat(f_.stride(7), {f_.arg(0), f_.arg(2)}, [&](const Values& places) {
      f_.dst = places[1];
      Values state = f_.first_sums();
      state.insert(state.end(), {places[0], f_.arg(1)});
      f_.store_sums(rest(blocks(std::move(state))), {}, tile_.stored);
      return Values{f_.at(places[0], src_tile), f_.at(places[1], dst_tile)};
    });
    f_.b.CreateRetVoid();
  }

 private:
  // The state: sums, the pointer to src, and that to the first column of weights. The last blocks prefetch the beginning of the
  // next columns.
  Values blocks(Values state) {
    llvm::Value *const all = f_.b.CreateUDiv(f_.arg(4), f_.i64(entries_)), *const none = f_.i64(0);
    if (tile_.bytes_ahead == 0)
      return f_.repeat(all, std::move(state), [&](const Values& before) { return block(before, nullptr); });
    const int64_t ahead = std::max<int64_t>(tile_.bytes_ahead / f_.vector_bytes(), 1);
    llvm::Value* const last = f_.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, all, f_.i64(ahead));
    llvm::Value* const here = f_.i64(ahead * f_.vector_bytes());
    state = f_.repeat(f_.b.CreateSub(all, last), std::move(state), [&](const Values& before) { return block(before, here); });
    llvm::Value* const row_bytes = f_.b.CreateMul(f_.arg(4), f_.i64(entry_bytes_));
    llvm::Value* next = f_.b.CreateSub(f_.b.CreateMul(column_, f_.i64(f_.lanes)), row_bytes);
    next = f_.b.CreateAdd(next, f_.b.CreateSelect(f_.b.CreateICmpSGT(row_bytes, here), here, none));
    return f_.repeat(last, std::move(state), [&](const Values& before) { return block(before, next); });
  }

  // `ahead`: in bytes, from where it is to what it prefetches; null: nothing.
  Values block(const Values& before, llvm::Value* ahead) {
    Values state = before, words;
    llvm::Value *&src = state[f_.sums()], *&weights = state[f_.sums() + 1], *column = weights;
    for (int lane = 0; lane < f_.lanes; ++lane) {
      words.push_back(f_.load(f_.vector, column));
      if (ahead != nullptr) f_.prefetch(f_.at(column, ahead));
      column = f_.at(column, column_);
    }
    fence(f_.b, words);
    transpose(f_.b, words, true);
    for (llvm::Value* const word : words) {
      for (int64_t entry = 0; entry < entries_of_word_; ++entry) {
        add(state, src, entry_of(word, entry));
        src = f_.at(src, src_k_);
      }
    }
    weights = f_.at(weights, f_.i64(f_.vector_bytes()));
    return state;
  }

  // The last entries of k, each of which is loaded column by column.
  Values rest(Values state) {
    return f_.repeat(f_.b.CreateURem(f_.arg(4), f_.i64(entries_)), std::move(state), [&](const Values& before) {
      Values after = before;
      llvm::Value *&src = after[f_.sums()], *&weights = after[f_.sums() + 1], *column = weights;
      llvm::Value* elements = llvm::Constant::getNullValue(f_.vector);
      for (int lane = 0; lane < f_.lanes; ++lane) {
        elements = f_.b.CreateInsertElement(elements, f_.load_converted(tile_.weights, f_.scalar, column), f_.i64(lane));
        column = f_.at(column, column_);
      }
      add(after, src, elements);
      src = f_.at(src, src_k_);
      weights = f_.at(weights, f_.i64(entry_bytes_));
      return after;
    });
  }

  // Entry 0 or 1 of each word, in the type of the sums.
  llvm::Value* entry_of(llvm::Value* word, int64_t entry) {
    if (entries_of_word_ == 1) return word;
    auto* const words = llvm::FixedVectorType::get(f_.b.getInt32Ty(), static_cast<unsigned>(f_.lanes));
    auto* const halves = llvm::FixedVectorType::get(f_.b.getInt16Ty(), static_cast<unsigned>(f_.lanes));
    word = f_.b.CreateBitCast(word, words);
    if (entry > 0) word = f_.b.CreateLShr(word, uint64_t{16});
    llvm::Type* const stored =
        llvm::FixedVectorType::get(storage_type(f_.b.getContext(), tile_.weights), static_cast<unsigned>(f_.lanes));
    return emit_to_f32(f_.b, tile_.weights, f_.b.CreateBitCast(f_.b.CreateTrunc(word, halves), stored), f_.instructions);
  }

  void add(Values& sums, llvm::Value* src, llvm::Value* weights) {
    for (int row = 0; row < tile_.rows; ++row) {
      llvm::Value* const element = f_.load(f_.scalar, f_.at(src, src_rows_[static_cast<size_t>(row)]));
      llvm::Value* const factor = f_.b.CreateVectorSplat(static_cast<unsigned>(f_.lanes), element);
      llvm::Value*& sum = sums[static_cast<size_t>(row)];
      if (tile_.multiplies_pairs)
        sum = add_products_of_bf16_pairs(f_, sum, factor, weights);
      else
        sum = f_.b.CreateIntrinsic(llvm::Intrinsic::fma, {f_.vector}, {factor, weights, sum});
    }
  }

  const ProductTile tile_;
  TileFunction f_;
  const int64_t entry_bytes_, entries_, entries_of_word_;  // of weights; the second: of a column in a block
  Values src_rows_;                                        // bytes from the first row
  llvm::Value *src_k_ = nullptr, *column_ = nullptr;
};

}  // namespace

void emit_tile_along_k(llvm::Module& module, const std::string& symbol, const ProductTile& tile, const Instructions& target) {
  TileAlongKEmitter(module, symbol, tile, target).emit();
}

}  // namespace lamina::cpu
