#include "backends/cpu/product/emit_product.h"

#include "backends/cpu/product/integer_pairs.h"
#include "backends/cpu/product/product_function.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using Values = ProductFunction::Values;

constexpr int kLine = 64;          // bytes
constexpr int kRowsOfAddress = 3;  // of src with one pointer: itself, and with one and two strides added

class TileEmitter {
 public:
  TileEmitter(llvm::Module& module, const std::string& symbol, const ProductTile& tile, const Instructions& target)
      : tile_(tile),
        f_(module, symbol, target, tile.vector_bits, tile.type, lane_bits_of(tile.type), tile.rows, tile.vectors) {}

  void emit() {
    llvm::Value* const src_row = f_.stride(0);
    src_k_ = f_.stride(1), weights_k_ = f_.stride(2);
    for (int i = 0; i < kRowsOfAddress; ++i) offsets_.push_back(f_.b.CreateMul(src_row, f_.i64(i)));
    Values state = f_.first_sums();
    prefetch_sums(f_.at(f_.arg(2), f_.stride(5)), f_.stride(3));
    for (int row = 0; row < tile_.rows; row += kRowsOfAddress)
      state.push_back(f_.at(f_.arg(0), f_.b.CreateMul(src_row, f_.i64(row))));
    state.push_back(f_.arg(1));
    f_.store_sums(f_.repeat(f_.arg(4), std::move(state), [&](const Values& before) { return step(before); }));
    f_.b.CreateRetVoid();
  }

 private:
  void prefetch_sums(llvm::Value* dst, llvm::Value* dst_row) {
    const int64_t row_bytes = tile_.vectors * f_.vector_bytes();
    for (int row = 0; row < tile_.rows; ++row) {
      llvm::Value* const sums = f_.at(dst, f_.b.CreateMul(dst_row, f_.i64(row)));
      for (int64_t byte = 0; byte < row_bytes; byte += kLine) f_.prefetch(f_.at(sums, f_.i64(byte)), true);
    }
  }

  // One entry of k. The state: sums, pointers to every third row of src, the pointer to the row of weights.
  Values step(const Values& before) {
    Values after = before;
    const auto first_pointer = static_cast<size_t>(tile_.rows * tile_.vectors);
    llvm::Value* const weights = before.back();
    const int64_t vector_bytes = f_.lanes * element_bytes(tile_.weights), panel_bytes = tile_.vectors * vector_bytes;
    Values row_of_weights;
    for (int j = 0; j < tile_.vectors; ++j) row_of_weights.push_back(weights_at(f_.at(weights, f_.i64(j * vector_bytes))));
    for (int64_t byte = 0; tile_.prefetches && byte < panel_bytes; byte += kLine)
      f_.prefetch(f_.at(weights, f_.i64(panel_bytes + byte)));
    for (int row = 0; row < tile_.rows; ++row) {
      llvm::Value* const pointer = before[first_pointer + static_cast<size_t>(row / kRowsOfAddress)];
      llvm::Value* const element = f_.load(f_.scalar, f_.at(pointer, offsets_[static_cast<size_t>(row % kRowsOfAddress)]));
      llvm::Value* const factor = f_.b.CreateVectorSplat(static_cast<unsigned>(f_.lanes), element);
      for (int j = 0; j < tile_.vectors; ++j) {
        llvm::Value*& sum = after[static_cast<size_t>(row * tile_.vectors + j)];
        sum = added(sum, factor, row_of_weights[static_cast<size_t>(j)]);
      }
    }
    for (size_t i = first_pointer; i + 1 < after.size(); ++i) after[i] = f_.at(before[i], src_k_);
    after.back() = f_.at(weights, weights_k_);
    return after;
  }

  llvm::Value* weights_at(llvm::Value* pointer) {
    if (!is_byte_integer(tile_.weights)) return f_.load_converted(tile_.weights, f_.vector, pointer);
    return words_of_pairs(f_, tile_.weights, tile_.zero_point, load_pairs(f_, f_.vector, pointer));
  }
  llvm::Value* added(llvm::Value* sum, llvm::Value* factor, llvm::Value* weights) {
    if (tile_.type == kernel::Type::s32) return add_products_of_pairs(f_, sum, factor, weights);
    return f_.b.CreateIntrinsic(llvm::Intrinsic::fma, {f_.vector}, {factor, weights, sum});
  }

  const ProductTile tile_;
  TileFunction f_;
  Values offsets_;
  llvm::Value *src_k_ = nullptr, *weights_k_ = nullptr;
};

}  // namespace

void emit_product_tile(llvm::Module& module, const std::string& symbol, const ProductTile& tile, const Instructions& target) {
  TileEmitter(module, symbol, tile, target).emit();
}

std::string describe(const ProductTile& tile) {
  return join("product tile of ", tile.rows, " rows and ", tile.vectors, " vectors of ", tile.vector_bits, " bits, ",
              kernel::name_of(tile.type), ", weights ", name_of(tile.weights),
              tile.zero_point == 0 ? "" : join(" from ", tile.zero_point), tile.prefetches ? ", prefetches" : "");
}

}  // namespace lamina::cpu
