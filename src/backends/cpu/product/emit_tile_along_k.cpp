// A register tile whose weights are contiguous along k and stay where they are. Columns are lanes, so blocks of as many columns
// as a vector has lanes are transposed in registers: a word of each column at a time, which holds one entry of k, or two of 16
// bits.
#include <algorithm>

#include "backends/cpu/product/emit_product.h"
#include "backends/cpu/product/pairs.h"
#include "backends/cpu/product/product_function.h"
#include "backends/cpu/program/tuning.h"
#include "backends/cpu/vector/transpose.h"

namespace lamina::cpu {

namespace {

using Values = ProductFunction::Values;

using tuning::kLine;

class TileAlongKEmitter {
 public:
  TileAlongKEmitter(llvm::Module& module, const std::string& symbol, const ProductTile& tile, const Instructions& target)
      : tile_(tile),
        f_(module, symbol, target, tile.vector_bits, tile.type, lane_bits_of(tile.type), tile.rows, 1),
        entry_bytes_(bytes_of(tile.weights, 1)),
        entries_(f_.vector_bytes() / entry_bytes_),
        entries_of_word_(entries_ / f_.lanes),
        block_bytes_(f_.lanes * f_.vector_bytes()),
        blocks_of_column_(std::max<int64_t>(tile.bytes_ahead / block_bytes_, 1)) {}

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
  // The state: sums, the pointer to src, and that to the first column of weights.
  Values blocks(Values state) {
    llvm::Value* const all = f_.b.CreateUDiv(f_.arg(4), f_.i64(entries_));
    if (tile_.bytes_ahead == 0)
      return f_.repeat(all, std::move(state), [&](const Values& before) { return block(before, {}); });
    llvm::Value* const of_group = f_.i64(blocks_of_column_ * f_.lanes);
    llvm::Value *const count = f_.b.CreateUDiv(all, of_group), *const rest = f_.b.CreateURem(all, of_group);
    llvm::Value* const bytes = f_.b.CreateMul(count, f_.i64(blocks_of_column_ * block_bytes_));
    llvm::Value* const to_columns = f_.b.CreateSub(f_.b.CreateMul(column_, f_.i64(f_.lanes)), bytes);
    state = groups(count, f_.b.CreateICmpSGT(rest, f_.i64(0)), to_columns, std::move(state));
    // Each prefetches its line of the next columns, from their beginning.
    return f_.repeat(rest, std::move(state), [&](const Values& before) {
      Values lines;
      llvm::Value* line = f_.at(before[f_.sums() + 1], to_columns);
      for (int lane = 0; lane < f_.lanes; ++lane, line = f_.at(line, column_)) lines.push_back(line);
      return block(before, lines);
    });
  }

  // A group is `bytes_ahead` of each column. While it is used, the next one is prefetched, column by column: what follows along
  // k, or the next columns, which begin `to_columns` behind the last group.
  Values groups(llvm::Value* count, llvm::Value* has_rest, llvm::Value* to_columns, Values state) {
    llvm::Value* const along_k = f_.i64(blocks_of_column_ * block_bytes_);
    llvm::Value* const after_last = f_.b.CreateSelect(has_rest, along_k, f_.b.CreateAdd(to_columns, along_k));
    state.push_back(count);
    state = f_.repeat(count, std::move(state), [&](const Values& before) {
      llvm::Value* const left = before.back();
      llvm::Value* const next = f_.b.CreateSelect(f_.b.CreateICmpSGT(left, f_.i64(1)), along_k, after_last);
      Values after(before.begin(), before.end() - 1);
      after.push_back(f_.at(after.back(), next));
      after = f_.repeat(f_.i64(f_.lanes), std::move(after), [&](const Values& column) {
        Values done = f_.repeat(f_.i64(blocks_of_column_), column, [&](const Values& part) { return block_of_group(part); });
        done.back() = f_.at(column.back(), column_);
        return done;
      });
      after.back() = f_.b.CreateSub(left, f_.i64(1));
      return after;
    });
    state.pop_back();
    return state;
  }

  // The last value is the pointer to what it prefetches: as many bytes as it reads.
  Values block_of_group(const Values& before) {
    Values lines;
    for (int64_t byte = 0; byte < block_bytes_; byte += kLine) lines.push_back(f_.at(before.back(), f_.i64(byte)));
    Values after = block(Values(before.begin(), before.end() - 1), lines);
    after.push_back(f_.at(before.back(), f_.i64(block_bytes_)));
    return after;
  }

  // Prefetches `lines`, at most one for each column.
  Values block(const Values& before, const Values& lines) {
    Values state = before, words;
    llvm::Value *&src = state[f_.sums()], *&weights = state[f_.sums() + 1], *column = weights;
    for (int lane = 0; lane < f_.lanes; ++lane) {
      words.push_back(f_.load(f_.vector, column));
      if (static_cast<size_t>(lane) < lines.size())
        f_.prefetch_weights(lines[static_cast<size_t>(lane)], tile_.prefetches_to_first);
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
  const int64_t block_bytes_, blocks_of_column_;           // the second: which prefetch a column of the next group
  Values src_rows_;                                        // bytes from the first row
  llvm::Value *src_k_ = nullptr, *column_ = nullptr;
};

}  // namespace

void emit_tile_along_k(llvm::Module& module, const std::string& symbol, const ProductTile& tile, const Instructions& target) {
  TileAlongKEmitter(module, symbol, tile, target).emit();
}

}  // namespace lamina::cpu
