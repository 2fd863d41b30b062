#include "backends/cpu/product/emit_line.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/product/emit_result_map.h"
#include "backends/cpu/product/product_function.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using Values = ProductFunction::Values;

constexpr int kPixelsOfAddress = 3;  // of src with one pointer: itself, and with one and two strides added

class LineEmitter {
 public:
  LineEmitter(llvm::Module& module, const std::string& symbol, const LineTile& tile, const Instructions& target)
      : tile_(tile),
        f_(module, symbol, parameter_types(module.getContext(), "pwpppp"), target, tile.vector_bits, tile.type,
           lane_bits_of(tile.type)),
        zero_(llvm::Constant::getNullValue(f_.vector)) {}

  void emit() {
    pixel_ = stride(1), term_ = stride(2), weights_ = stride(3), dst_pixel_ = stride(4), channel_ = stride(9);
    channels_ = tile_.is_dense ? stride(10) : f_.i64(tile_.channels);
    llvm::Value *const lines = stride(0), *const src_tile = stride(6), *const dst_tile = stride(7), *const blocks = stride(8);
    ahead_term_ = stride(12), pixels_term_ = stride(13);
    f_.repeat(stride(5), {f_.arg(1), f_.arg(3), f_.at(f_.arg(2), stride(11))}, [&](const Values& tile) {
      const Values end = f_.repeat(blocks, {tile[0], f_.arg(2), tile[1], f_.i64(0), tile[2]}, [&](const Values& block) {
        llvm::Value *const weights = block[1], *const dst = block[2], *const bias = block[3];
        prefetch_sums(f_.at(dst, dst_tile));
        const Values made = sums(lines, block[0], weights, block[4]);
        store(made, dst, bias);
        llvm::Value* const bytes = f_.i64(tile_.vectors * f_.vector_bytes());
        return Values{tile_.is_shared ? block[0] : f_.b.CreateAdd(block[0], bytes_of_channels(tile_.vectors)),
                      f_.at(weights, bytes), f_.at(dst, bytes), f_.b.CreateAdd(bias, bytes), made[sum_count() + 1]};
      });
      return Values{f_.b.CreateAdd(tile[0], src_tile), f_.at(tile[1], dst_tile), end[4]};
    });
    f_.b.CreateRetVoid();
  }

 private:
  // Entry `number` of LineStrides.
  llvm::Value* stride(int number) { return f_.word_at(f_.arg(5), number, f_.b.getInt64Ty()); }
  size_t sum_count() const { return static_cast<size_t>(tile_.pixels * tile_.vectors); }

  size_t pointers() const { return sum_count() + 2; }  // of a state, behind those to the weights and to the next weights

  size_t first_pixel() const { return pointers() + 1; }

  // The state: sums, the pointers to the weights and to the next weights, that to the pointer of the line.
  Values sums(llvm::Value* lines, llvm::Value* offset, llvm::Value* weights, llvm::Value* ahead) {
    Values state(sum_count(), zero_);
    state.insert(state.end(), {weights, ahead, f_.arg(0)});
    return f_.repeat(lines, std::move(state), [&](const Values& before) {
      llvm::Value* const line = f_.word_at(before.back(), 0, f_.b.getPtrTy());
      const Values of_line(before.begin(), before.end() - 1);
      Values after = f_.either(
          f_.b.CreateICmpNE(line, llvm::ConstantPointerNull::get(f_.b.getPtrTy())),
          [&] { return with_line(of_line, f_.at(line, offset)); },
          [&] { return tile_.is_dense ? without_line(of_line) : with_line(of_line, nullptr); });
      after.push_back(f_.b.CreateConstGEP1_64(f_.b.getInt64Ty(), before.back(), 1));
      return after;
    });
  }

  // Of the next tile, so that its stores do not wait for lines of the cache.
  void prefetch_sums(llvm::Value* dst) {
    constexpr int64_t kLine = 64;
    for (int pixel = 0; pixel < tile_.pixels; ++pixel)
      for (int64_t byte = 0; byte < tile_.vectors * f_.vector_bytes(); byte += kLine)
        f_.prefetch(f_.at(f_.at(dst, f_.b.CreateMul(dst_pixel_, f_.i64(pixel))), f_.i64(byte)), true);
  }

  Values without_line(Values state) {
    llvm::Value*& weights = state[sum_count()];
    weights = f_.at(weights, f_.b.CreateMul(weights_, f_.b.CreateMul(channels_, f_.i64(tile_.terms))));
    return state;
  }

  // Adds the products of a line. `src`: null for a line of zeros. Returns the state without pointers to pixels.
  Values with_line(Values state, llvm::Value* src) {
    if (src != nullptr) state.push_back(f_.at(src, stride(6)));
    for (int pixel = 0; src != nullptr && pixel < tile_.pixels; pixel += kPixelsOfAddress)
      state.push_back(f_.at(src, f_.b.CreateMul(pixel_, f_.i64(pixel))));
    for (int term = 0; term < tile_.terms; ++term) {
      const auto first = static_cast<std::ptrdiff_t>(std::min(first_pixel(), state.size()));
      const Values of_term(state.begin() + first, state.end());
      state = with_channels(std::move(state), term);
      std::transform(of_term.begin(), of_term.end(), state.begin() + first,
                     [&](llvm::Value* pointer) { return f_.at(pointer, term_); });
    }
    state.resize(pointers());
    return state;
  }

  // The state: sums, the pointers to the weights and to the next weights, those to the pixels of the next tile and to pixels.
  Values with_channels(Values state, int term) {
    const auto body = [&](const Values& before) { return with_channel(before, term); };
    // A loop keeps LLVM from loading the shared elements of all channels at once, for which there are no registers.
    return tile_.is_shared ? f_.repeat(channels_, std::move(state), body) : body(state);
  }
  Values with_channel(Values state, int term) {
    llvm::Value*& weights = state[sum_count()];
    const bool is_line_of_zeros = state.size() == pointers();
    if (tile_.is_dense) {
      llvm::Value*& ahead = state[sum_count() + 1];
      f_.prefetch_second(ahead);
      ahead = f_.at(ahead, ahead_term_);
      llvm::Value*& next = state[pointers()];
      f_.prefetch(next);
      next = f_.at(next, pixels_term_);
    }
    Values factors;
    for (int v = 0; v < tile_.vectors; ++v) factors.push_back(f_.load(f_.vector, f_.at(weights, vector_bytes(v))));
    for (int pixel = 0; pixel < tile_.pixels; ++pixel) {
      const bool is_zero = is_line_of_zeros || !tile_.is_inside(pixel, term);
      if (is_zero && tile_.is_dense) continue;
      llvm::Value* const at = is_zero ? nullptr : place_of(state, pixel);
      llvm::Value* const shared = is_zero ? zero_ : tile_.is_shared ? splat(at) : nullptr;
      for (int v = 0; v < tile_.vectors; ++v) {
        llvm::Value*& sum = state[static_cast<size_t>(pixel * tile_.vectors + v)];
        llvm::Value* const element = shared != nullptr ? shared : elements_at(at, v);
        sum = f_.b.CreateIntrinsic(llvm::Intrinsic::fma, {f_.vector}, {element, factors[static_cast<size_t>(v)], sum});
      }
    }
    for (size_t i = first_pixel(); i < state.size(); ++i) state[i] = f_.at(state[i], channel_);
    weights = f_.at(weights, weights_);
    return state;
  }
  llvm::Value* splat(llvm::Value* place) {
    return f_.b.CreateVectorSplat(static_cast<unsigned>(f_.lanes), f_.load(f_.scalar, place));
  }

  // Of src, for the columns of vector `v`.
  llvm::Value* elements_at(llvm::Value* pointer, int v) {
    const int columns = tile_.columns_of_channel;
    if (columns == 1) return load(pointer, v);
    llvm::Value* const elements =
        f_.load_first((is_whole(v) ? f_.lanes : tile_.last_lanes) / columns, f_.at(pointer, bytes_of_channels(v)));
    std::vector<int> channel_of_lane;
    for (int lane = 0; lane < f_.lanes; ++lane) channel_of_lane.push_back(lane / columns);
    return f_.b.CreateShuffleVector(elements, channel_of_lane);
  }
  llvm::Value* bytes_of_channels(int vectors) { return f_.i64(vectors * f_.vector_bytes() / tile_.columns_of_channel); }

  llvm::Value* place_of(const Values& state, int pixel) {
    llvm::Value* const pointer = state[first_pixel() + static_cast<size_t>(pixel / kPixelsOfAddress)];
    return pixel % kPixelsOfAddress == 0 ? pointer : f_.at(pointer, f_.b.CreateMul(pixel_, f_.i64(pixel % kPixelsOfAddress)));
  }

  // `bias`: an offset.
  void store(const Values& state, llvm::Value* dst, llvm::Value* bias) {
    const Values results = f_.either(
        f_.b.CreateICmpNE(f_.arg(4), llvm::ConstantPointerNull::get(f_.b.getPtrTy())),
        [&] {
          Values added;
          for (int v = 0; v < tile_.vectors; ++v) added.push_back(load(f_.at(f_.arg(4), bias), v));
          Values sums(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(sum_count()));
          for (size_t i = 0; i < sums.size(); ++i)
            sums[i] = f_.b.CreateFAdd(sums[i], added[i % static_cast<size_t>(tile_.vectors)]);
          return sums;
        },
        [&] { return Values(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(sum_count())); });
    for (size_t i = 0; i < results.size(); ++i) {
      const auto pixel = static_cast<int64_t>(i) / tile_.vectors;
      const auto v = static_cast<int>(i % static_cast<size_t>(tile_.vectors));
      llvm::Value* const at = f_.at(f_.at(dst, f_.b.CreateMul(dst_pixel_, f_.i64(pixel))), vector_bytes(v));
      llvm::Value* const result = emit_result_map(f_.b, tile_.map, results[i]);
      if (is_whole(v))
        f_.store(result, at);
      else
        f_.store_first(tile_.last_lanes, result, at);
    }
  }

  bool is_whole(int v) const { return tile_.last_lanes == 0 || v + 1 < tile_.vectors; }
  llvm::Value* vector_bytes(int vectors) { return f_.i64(vectors * f_.vector_bytes()); }
  llvm::Value* load(llvm::Value* pointer, int v) {
    pointer = f_.at(pointer, vector_bytes(v));
    return is_whole(v) ? f_.load(f_.vector, pointer) : f_.load_first(tile_.last_lanes, pointer);
  }

  const LineTile tile_;
  ProductFunction f_;
  llvm::Value* const zero_;
  llvm::Value *pixel_ = nullptr, *term_ = nullptr, *weights_ = nullptr, *dst_pixel_ = nullptr, *channel_ = nullptr,
              *channels_ = nullptr, *ahead_term_ = nullptr, *pixels_term_ = nullptr;
};

}  // namespace

void emit_line_tile(llvm::Module& module, const std::string& symbol, const LineTile& tile, const Instructions& target) {
  LineEmitter(module, symbol, tile, target).emit();
}

std::string describe(const LineTile& tile) {
  std::string outside;
  for (int pixel = 0; pixel < tile.pixels; ++pixel)
    for (int term = 0; term < tile.terms; ++term)
      if (!tile.is_inside(pixel, term)) outside += join(" ", pixel, ":", term);
  return join("line tile of ", tile.pixels, " pixels, ", tile.terms, " terms, ", tile.channels,
              tile.is_dense    ? " dense"
              : tile.is_shared ? " shared"
                               : "",
              " channels", tile.columns_of_channel == 1 ? "" : join(" of ", tile.columns_of_channel, " columns"), " and ",
              tile.vectors, " vectors of ", tile.vector_bits, " bits, ", kernel::name_of(tile.type),
              tile.last_lanes == 0 ? "" : join(", ", tile.last_lanes, " lanes of the last"),
              outside.empty() ? "" : join(", outside", outside), describe(tile.map));
}

}  // namespace lamina::cpu
