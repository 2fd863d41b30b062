#include "backends/cpu/product/emit_tap.h"

#include <functional>
#include <utility>

#include "backends/cpu/product/product_function.h"
#include "backends/cpu/program/product_calls.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using Values = ProductFunction::Values;

class TapEmitter {
 public:
  TapEmitter(llvm::Module& module, const std::string& symbol, const TapTile& tile, const Instructions& target)
      : tile_(tile),
        f_(module, symbol, parameter_types(module.getContext(), "ppppp"), target, tile.vector_bits, tile.type,
           lane_bits_of(tile.type)) {}

  void emit() {
    llvm::Value *const lines = stride(0), *const line = stride(1);
    position_ = stride(2), pixel_ = stride(3), inner_ = stride(5);
    for (int tap = 0; tap < tile_.taps; ++tap) tap_at_.push_back(f_.b.CreateMul(stride(4), f_.i64(tap)));
    Values state;
    for (size_t i = 0; i < sum_count(); ++i) state.push_back(f_.load(f_.vector, sum_at(i)));
    state.insert(state.end(), {f_.arg(1), f_.arg(2)});
    const Values made = f_.repeat(lines, std::move(state), [&](const Values& before) {
      llvm::Value *const pixels = before[sum_count()], *const positions = before.back();
      Values rows, after(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(sum_count()));
      for (int row = 0; row < tile_.rows; ++row) rows.push_back(f_.word_at(pixels, row, f_.b.getInt64Ty()));
      after = f_.either(
          are_inside(rows), [&] { return with_rows(after, rows, positions); },
          [&] { return row_by_row(after, rows, positions); });
      after.push_back(f_.b.CreateConstGEP1_64(f_.b.getInt64Ty(), pixels, static_cast<uint64_t>(tile_.rows)));
      after.push_back(f_.at(positions, line));
      return after;
    });
    for (size_t i = 0; i < sum_count(); ++i) f_.store(made[i], sum_at(i));
    f_.b.CreateRetVoid();
  }

 private:
  // Entry `number` of TapStrides.
  llvm::Value* stride(int number) { return f_.word_at(f_.arg(4), number, f_.b.getInt64Ty()); }
  size_t sums_in_row() const { return static_cast<size_t>(tile_.taps * tile_.vectors); }
  size_t sum_count() const { return static_cast<size_t>(tile_.rows) * sums_in_row(); }
  llvm::Value* sum_at(size_t i) { return f_.at(f_.arg(3), f_.i64(static_cast<int64_t>(i) * f_.vector_bytes())); }

  llvm::Value* are_inside(const Values& rows) {
    llvm::Value* all = f_.b.getTrue();
    for (llvm::Value* const row : rows) all = f_.b.CreateAnd(all, f_.b.CreateICmpNE(row, f_.i64(kOutsideOfImage)));
    return all;
  }

  // At the border of the image.
  Values row_by_row(const Values& sums, const Values& rows, llvm::Value* positions) {
    Values all;
    for (size_t row = 0; row < rows.size(); ++row) {
      const auto first = sums.begin() + static_cast<std::ptrdiff_t>(row * sums_in_row());
      const Values of_row(first, first + static_cast<std::ptrdiff_t>(sums_in_row()));
      const Values made =
          f_.either(are_inside({rows[row]}), [&] { return with_rows(of_row, {rows[row]}, positions); }, [&] { return of_row; });
      all.insert(all.end(), made.begin(), made.end());
    }
    return all;
  }

  // Adds the products of these rows of taps and a line of positions. `rows`: distances from the image.
  Values with_rows(const Values& sums, const Values& rows, llvm::Value* positions) {
    Values state = sums;
    for (llvm::Value* const row : rows) state.push_back(f_.at(f_.arg(0), row));
    state.push_back(positions);
    for (int i = 0; i < tile_.before; ++i)
      state = with_position(state, rows.size(), [&](int tap) { return tile_.is_inside(i, tap); });
    state = f_.repeat(inner_, std::move(state),
                      [&](const Values& before) { return with_position(before, rows.size(), [](int) { return true; }); });
    for (int i = tile_.before; i < tile_.before + tile_.after; ++i)
      state = with_position(state, rows.size(), [&](int tap) { return tile_.is_inside(i, tap); });
    state.resize(sums.size());
    return state;
  }

  // The state: sums, per row the pixel that its first tap sees, the position.
  Values with_position(Values state, size_t rows, const std::function<bool(int)>& is_inside) {
    Values factors;
    for (int v = 0; v < tile_.vectors; ++v) factors.push_back(load(state.back(), v));
    for (size_t row = 0; row < rows; ++row) {
      llvm::Value*& pixel = state[rows * sums_in_row() + row];
      for (int tap = 0; tap < tile_.taps; ++tap) {
        if (!is_inside(tap)) continue;
        for (int v = 0; v < tile_.vectors; ++v) {
          llvm::Value*& sum = state[row * sums_in_row() + static_cast<size_t>(tap * tile_.vectors + v)];
          llvm::Value* const element = load(f_.at(pixel, tap_at_[static_cast<size_t>(tap)]), v);
          sum = f_.b.CreateIntrinsic(llvm::Intrinsic::fma, {f_.vector}, {element, factors[static_cast<size_t>(v)], sum});
        }
      }
      pixel = f_.at(pixel, pixel_);
    }
    state.back() = f_.at(state.back(), position_);
    return state;
  }

  llvm::Value* load(llvm::Value* pointer, int v) {
    pointer = f_.at(pointer, f_.i64(v * f_.vector_bytes()));
    const bool is_whole = tile_.last_lanes == 0 || v + 1 < tile_.vectors;
    return is_whole ? f_.load(f_.vector, pointer) : f_.load_first(tile_.last_lanes, pointer);
  }

  const TapTile tile_;
  ProductFunction f_;
  llvm::Value *position_ = nullptr, *pixel_ = nullptr, *inner_ = nullptr;
  Values tap_at_;
};

}  // namespace

void emit_tap_tile(llvm::Module& module, const std::string& symbol, const TapTile& tile, const Instructions& target) {
  TapEmitter(module, symbol, tile, target).emit();
}

std::string describe(const TapTile& tile) {
  std::string outside;
  for (int position = 0; position < tile.before + tile.after; ++position)
    for (int tap = 0; tap < tile.taps; ++tap)
      if (!tile.is_inside(position, tap)) outside += join(" ", position, ":", tap);
  return join("tap tile of ", tile.rows, " rows of ", tile.taps, " taps and ", tile.vectors, " vectors of ", tile.vector_bits,
              " bits, ", kernel::name_of(tile.type),
              tile.last_lanes == 0 ? "" : join(", ", tile.last_lanes, " lanes of the last"), ", ", tile.before,
              " positions before and ", tile.after, " after the others", outside.empty() ? "" : join(", outside", outside));
}

}  // namespace lamina::cpu
