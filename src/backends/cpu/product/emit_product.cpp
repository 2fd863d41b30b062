#include "backends/cpu/product/emit_product.h"

#include "backends/cpu/product/product_function.h"
#include "backends/cpu/vector/transpose.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using Values = ProductFunction::Values;

constexpr int kLine = 64;          // bytes
constexpr int kRowsOfAddress = 3;  // of src with one pointer: itself, and with one and two strides added

int lane_bits(kernel::Type type) { return type == kernel::Type::f64 ? 64 : 32; }

class TileEmitter {
 public:
  TileEmitter(llvm::Module& module, const std::string& symbol, const ProductTile& tile, const Instructions& target)
      : tile_(tile), f_(module, symbol, target, tile.vector_bits, tile.type, lane_bits(tile.type), tile.rows, tile.vectors) {}

  void emit() {
    llvm::Value* const src_row = f_.stride(0);
    src_k_ = f_.stride(1), weights_k_ = f_.stride(2);
    for (int i = 0; i < kRowsOfAddress; ++i) offsets_.push_back(f_.b.CreateMul(src_row, f_.i64(i)));
    Values state = f_.first_sums();
    prefetch_next_sums(f_.arg(2), f_.stride(3));
    for (int row = 0; row < tile_.rows; row += kRowsOfAddress)
      state.push_back(f_.at(f_.arg(0), f_.b.CreateMul(src_row, f_.i64(row))));
    state.push_back(f_.arg(1));
    f_.store_sums(f_.repeat(f_.arg(4), std::move(state), [&](const Values& before) { return step(before); }));
    f_.b.CreateRetVoid();
  }

 private:
  // Those of the next panel.
  void prefetch_next_sums(llvm::Value* dst, llvm::Value* dst_row) {
    const int64_t panel_bytes = tile_.vectors * f_.vector_bytes();
    for (int row = 0; row < tile_.rows; ++row) {
      llvm::Value* const next = f_.at(f_.at(dst, f_.b.CreateMul(dst_row, f_.i64(row))), f_.i64(panel_bytes));
      for (int64_t byte = 0; byte < panel_bytes; byte += kLine) f_.prefetch(f_.at(next, f_.i64(byte)), true);
    }
  }

  // One entry of k. The state: sums, pointers to every third row of src, the pointer to the row of weights.
  Values step(const Values& before) {
    Values after = before;
    const auto first_pointer = static_cast<size_t>(tile_.rows * tile_.vectors);
    llvm::Value* const weights = before.back();
    const int64_t panel_bytes = tile_.vectors * f_.vector_bytes();
    Values row_of_weights;
    for (int j = 0; j < tile_.vectors; ++j)
      row_of_weights.push_back(f_.load(f_.vector, f_.at(weights, f_.i64(j * f_.vector_bytes()))));
    for (int64_t byte = 0; tile_.prefetches && byte < panel_bytes; byte += kLine)
      f_.prefetch(f_.at(weights, f_.i64(panel_bytes + byte)));
    for (int row = 0; row < tile_.rows; ++row) {
      llvm::Value* const pointer = before[first_pointer + static_cast<size_t>(row / kRowsOfAddress)];
      llvm::Value* const element = f_.load(f_.scalar, f_.at(pointer, offsets_[static_cast<size_t>(row % kRowsOfAddress)]));
      llvm::Value* const factor = f_.b.CreateVectorSplat(static_cast<unsigned>(f_.lanes), element);
      for (int j = 0; j < tile_.vectors; ++j) {
        llvm::Value*& sum = after[static_cast<size_t>(row * tile_.vectors + j)];
        sum = f_.b.CreateIntrinsic(llvm::Intrinsic::fma, {f_.vector}, {factor, row_of_weights[static_cast<size_t>(j)], sum});
      }
    }
    for (size_t i = first_pointer; i + 1 < after.size(); ++i) after[i] = f_.at(before[i], src_k_);
    after.back() = f_.at(weights, weights_k_);
    return after;
  }

  const ProductTile tile_;
  TileFunction f_;
  Values offsets_;
  llvm::Value *src_k_ = nullptr, *weights_k_ = nullptr;
};

class CopyEmitter {
 public:
  CopyEmitter(llvm::Module& module, const std::string& symbol, const PanelCopy& copy, const Instructions& target)
      : copy_(copy),
        f_(module, symbol, parameters(module.getContext()), target, copy.vector_bits, copy.type, lane_bits(copy.type)) {}

  void emit() {
    if (copy_.along_k)
      emit_transpose();
    else
      emit_rows();
    f_.b.CreateRetVoid();
  }

 private:
  static std::vector<llvm::Type*> parameters(llvm::LLVMContext& context) {
    auto* const pointer = llvm::PointerType::getUnqual(context);
    auto* const word = llvm::Type::getInt64Ty(context);
    return {pointer, word, pointer, word};
  }
  int64_t element_bytes() const { return lane_bits(copy_.type) / 8; }

  void emit_rows() {
    const int64_t row_bytes = copy_.vectors * f_.vector_bytes();
    f_.repeat(f_.arg(3), {f_.arg(0), f_.arg(2)}, [&](const Values& state) {
      for (int64_t byte = 0; copy_.bytes_ahead > 0 && byte < row_bytes; byte += kLine)
        f_.prefetch(f_.at(state[0], f_.i64(copy_.bytes_ahead + byte)));
      for (int64_t byte = 0; byte < row_bytes; byte += f_.vector_bytes())
        f_.store(f_.load(f_.vector, f_.at(state[0], f_.i64(byte))), f_.at(state[1], f_.i64(byte)));
      return Values{f_.at(state[0], f_.arg(1)), f_.at(state[1], f_.i64(row_bytes))};
    });
  }

  void emit_transpose() {
    llvm::Value *const from = f_.arg(0), *const to = f_.arg(2), *const count = f_.arg(3);
    const int64_t columns = copy_.vectors * f_.lanes, row_bytes = columns * element_bytes();
    llvm::Value* const blocks = f_.b.CreateUDiv(count, f_.i64(f_.lanes));
    f_.repeat(f_.i64(copy_.vectors), {from, to}, [&](const Values& columns_of_vector) {
      f_.repeat(blocks, columns_of_vector, [&](const Values& place) {
        copy_block(place[0], place[1], row_bytes);
        return Values{f_.at(place[0], f_.i64(f_.vector_bytes())), f_.at(place[1], f_.i64(f_.lanes * row_bytes))};
      });
      return Values{f_.at(columns_of_vector[0], f_.b.CreateMul(f_.arg(1), f_.i64(f_.lanes))),
                    f_.at(columns_of_vector[1], f_.i64(f_.vector_bytes()))};
    });
    copy_rest(from, to, blocks, columns, row_bytes);
  }

  // As many entries of k of as many columns as a vector has lanes.
  void copy_block(llvm::Value* from, llvm::Value* to, int64_t row_bytes) {
    Values block;
    llvm::Value* column = from;
    for (int i = 0; i < f_.lanes; ++i) {
      block.push_back(f_.load(f_.vector, column));
      if (copy_.bytes_ahead > 0) f_.prefetch(f_.at(column, f_.i64(copy_.bytes_ahead)));
      column = f_.at(column, f_.arg(1));
    }
    fence(f_.b, block);
    transpose(f_.b, block, true);
    for (int i = 0; i < f_.lanes; ++i) f_.store(block[static_cast<size_t>(i)], f_.at(to, f_.i64(i * row_bytes)));
  }

  // The last entries of k, element by element.
  void copy_rest(llvm::Value* from, llvm::Value* to, llvm::Value* blocks, int64_t columns, int64_t row_bytes) {
    llvm::Value* const copied = f_.b.CreateMul(blocks, f_.i64(f_.lanes));
    llvm::Value* const rest = f_.b.CreateSub(f_.arg(3), copied);
    const Values first{f_.at(from, f_.b.CreateMul(copied, f_.i64(element_bytes()))),
                       f_.at(to, f_.b.CreateMul(copied, f_.i64(row_bytes)))};
    f_.repeat(rest, first, [&](const Values& state) {
      f_.repeat(f_.i64(columns), state, [&](const Values& place) {
        f_.store(f_.load(f_.scalar, place[0]), place[1]);
        return Values{f_.at(place[0], f_.arg(1)), f_.at(place[1], f_.i64(element_bytes()))};
      });
      return Values{f_.at(state[0], f_.i64(element_bytes())), f_.at(state[1], f_.i64(row_bytes))};
    });
  }

  const PanelCopy copy_;
  ProductFunction f_;
};

}  // namespace

void emit_product_tile(llvm::Module& module, const std::string& symbol, const ProductTile& tile, const Instructions& target) {
  TileEmitter(module, symbol, tile, target).emit();
}

std::string describe(const ProductTile& tile) {
  return join("product tile of ", tile.rows, " rows and ", tile.vectors, " vectors of ", tile.vector_bits, " bits, ",
              kernel::name_of(tile.type), tile.prefetches ? ", prefetches" : "");
}

void emit_panel_copy(llvm::Module& module, const std::string& symbol, const PanelCopy& copy, const Instructions& target) {
  CopyEmitter(module, symbol, copy, target).emit();
}

std::string describe(const PanelCopy& copy) {
  return join("panel along ", copy.along_k ? "k" : "columns", " of ", copy.vectors, " vectors of ", copy.vector_bits, " bits, ",
              kernel::name_of(copy.type), ", prefetches ", copy.bytes_ahead, " bytes ahead");
}

}  // namespace lamina::cpu
