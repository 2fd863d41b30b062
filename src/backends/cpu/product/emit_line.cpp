#include "backends/cpu/product/emit_line.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/product/emit_result_map.h"
#include "backends/cpu/product/product_function.h"
#include "backends/cpu/program/tuning.h"
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
    channels_ = tile_.is_dense() ? stride(10) : f_.i64(tile_.channels);
    llvm::Value *const lines = stride(0), *const src_tile = stride(6), *const dst_tile = stride(7), *const blocks = stride(8);
    ahead_term_ = stride(12), pixels_term_ = stride(13);
    f_.repeat(stride(5), {f_.arg(1), f_.arg(3), f_.at(f_.arg(2), stride(11))}, [&](const Values& tile) {
      const Values end = f_.repeat(blocks, {tile[0], f_.arg(2), tile[1], f_.i64(0), tile[2]}, [&](const Values& block) {
        llvm::Value *const weights = block[1], *const dst = block[2], *const bias = block[3];
        prefetch_sums(f_.at(dst, dst_tile));
        const State made = sums(lines, block[0], weights, block[4]);
        store(made, dst, bias);
        llvm::Value* const bytes = f_.i64(tile_.vectors * f_.vector_bytes());
        return Values{tile_.is_depthwise() ? f_.b.CreateAdd(block[0], bytes_of_channels(tile_.vectors)) : block[0],
                      f_.at(weights, bytes), f_.at(dst, bytes), f_.b.CreateAdd(bias, bytes), made.ahead};
      });
      return Values{f_.b.CreateAdd(tile[0], src_tile), f_.at(tile[1], dst_tile), end[4]};
    });
    f_.b.CreateRetVoid();
  }

 private:
  // The values that loops pass on.
  struct State {
    Values sums;
    llvm::Value *weights, *ahead;        // of the next term, and of the next panel
    llvm::Value* next_pixels = nullptr;  // of the next tile; null behind a line, and in one of zeros
    Values pixels = {};                  // each kPixelsOfAddress-th one; empty behind a line, and in one of zeros

    bool is_in_line() const { return next_pixels != nullptr; }
    Values all() const {
      Values values = sums;
      values.insert(values.end(), {weights, ahead});
      if (is_in_line()) values.push_back(next_pixels);
      values.insert(values.end(), pixels.begin(), pixels.end());
      return values;
    }
    // A state with the same number of values, from those of all().
    State with(const Values& values) const {
      auto next = values.begin() + static_cast<std::ptrdiff_t>(sums.size());
      State state{Values(values.begin(), next), *next, *(next + 1)};
      next += 2;
      if (is_in_line()) state.next_pixels = *next++;
      state.pixels.assign(next, next + static_cast<std::ptrdiff_t>(pixels.size()));
      return state;
    }
  };

  // Entry `number` of LineStrides.
  llvm::Value* stride(int number) { return f_.word_at(f_.arg(5), number, f_.b.getInt64Ty()); }

  State sums(llvm::Value* lines, llvm::Value* offset, llvm::Value* weights, llvm::Value* ahead) {
    const State first{Values(static_cast<size_t>(tile_.pixels * tile_.vectors), zero_), weights, ahead};
    Values passed = first.all();
    passed.push_back(f_.arg(0));  // the pointer to the pointer of the line
    return first.with(f_.repeat(lines, std::move(passed), [&](const Values& before) {
      llvm::Value* const line = f_.word_at(before.back(), 0, f_.b.getPtrTy());
      const State state = first.with(before);
      Values after = f_.either(
          f_.b.CreateICmpNE(line, llvm::ConstantPointerNull::get(f_.b.getPtrTy())),
          [&] { return with_line(state, f_.at(line, offset)).all(); },
          [&] { return (tile_.is_dense() ? without_line(state) : with_line(state, nullptr)).all(); });
      after.push_back(f_.b.CreateConstGEP1_64(f_.b.getInt64Ty(), before.back(), 1));
      return after;
    }));
  }

  // Of the next tile, so that its stores do not wait for lines of the cache.
  void prefetch_sums(llvm::Value* dst) {
    for (int pixel = 0; pixel < tile_.pixels; ++pixel)
      for (int64_t byte = 0; byte < tile_.vectors * f_.vector_bytes(); byte += tuning::kLine)
        f_.prefetch(f_.at(f_.at(dst, f_.b.CreateMul(dst_pixel_, f_.i64(pixel))), f_.i64(byte)), true);
  }

  State without_line(State state) {
    state.weights = f_.at(state.weights, f_.b.CreateMul(weights_, f_.b.CreateMul(channels_, f_.i64(tile_.terms))));
    return state;
  }

  // Adds the products of a line. `src`: null for a line of zeros.
  State with_line(State state, llvm::Value* src) {
    if (tile_.pixel_terms > 0) return with_pixels_once(std::move(state), src);
    if (src != nullptr) {
      state.next_pixels = f_.at(src, stride(6));
      for (int pixel = 0; pixel < tile_.pixels; pixel += kPixelsOfAddress)
        state.pixels.push_back(f_.at(src, f_.b.CreateMul(pixel_, f_.i64(pixel))));
    }
    for (int term = 0; term < tile_.terms; ++term) {
      const Values of_term = state.pixels;
      state = with_channels(std::move(state), term);
      std::transform(of_term.begin(), of_term.end(), state.pixels.begin(),
                     [&](llvm::Value* pointer) { return f_.at(pointer, term_); });
    }
    state.next_pixels = nullptr;
    state.pixels.clear();
    return state;
  }

  // Loads each pixel of src once for all terms that multiply it, and each weight once for all pixels. The sums of a pixel of
  // dst are in the order of terms here too.
  State with_pixels_once(State state, llvm::Value* src) {
    std::vector<Values> weights(static_cast<size_t>(tile_.terms));
    const int places = (tile_.pixels - 1) * tile_.pixel_terms + tile_.terms;
    for (int place = 0; place < places; ++place) {
      if (src != nullptr && place > 0 && place % kPixelsOfAddress == 0)
        src = f_.at(src, f_.b.CreateMul(term_, f_.i64(kPixelsOfAddress)));
      Values elements;
      for (int pixel = 0; pixel < tile_.pixels; ++pixel) {
        const int term = place - pixel * tile_.pixel_terms;
        if (term < 0 || term >= tile_.terms) continue;
        Values& of_term = weights[static_cast<size_t>(term)];
        if (of_term.empty()) of_term = weights_at(f_.at(state.weights, f_.b.CreateMul(weights_, f_.i64(term))));
        const bool is_zero = src == nullptr || !tile_.is_inside(pixel, term);
        if (!is_zero && elements.empty())
          elements = elements_at(f_.at(src, f_.b.CreateMul(term_, f_.i64(place % kPixelsOfAddress))));
        add(state, pixel, is_zero ? Values(of_term.size(), zero_) : elements, of_term);
      }
    }
    state.weights = f_.at(state.weights, f_.b.CreateMul(weights_, f_.i64(tile_.terms)));
    return state;
  }

  State with_channels(State state, int term) {
    if (tile_.is_depthwise()) return with_channel(std::move(state), term);
    // A loop keeps LLVM from loading the shared elements of all channels at once, for which there are no registers.
    const Values all = state.all();
    return state.with(
        f_.repeat(channels_, all, [&](const Values& before) { return with_channel(state.with(before), term).all(); }));
  }
  State with_channel(State state, int term) {
    if (tile_.is_dense()) {
      f_.prefetch_second(state.ahead);
      state.ahead = f_.at(state.ahead, ahead_term_);
      f_.prefetch(state.next_pixels);
      state.next_pixels = f_.at(state.next_pixels, pixels_term_);
    }
    const Values weights = weights_at(state.weights);
    for (int pixel = 0; pixel < tile_.pixels; ++pixel) {
      const bool is_zero = !state.is_in_line() || !tile_.is_inside(pixel, term);
      if (is_zero && tile_.is_dense()) continue;
      if (is_zero) {
        add(state, pixel, Values(weights.size(), zero_), weights);
      } else {
        llvm::Value* const at = place_of(state, pixel);
        add(state, pixel, tile_.is_depthwise() ? elements_at(at) : Values(weights.size(), splat(at)), weights);
      }
    }
    for (llvm::Value*& pointer : state.pixels) pointer = f_.at(pointer, channel_);
    state.weights = f_.at(state.weights, weights_);
    return state;
  }

  // A product to each sum of the pixel.
  void add(State& state, int pixel, const Values& elements, const Values& weights) {
    for (size_t v = 0; v < weights.size(); ++v) {
      llvm::Value*& sum = state.sums[static_cast<size_t>(pixel * tile_.vectors) + v];
      sum = f_.b.CreateIntrinsic(llvm::Intrinsic::fma, {f_.vector}, {elements[v], weights[v], sum});
    }
  }

  // Of a term, for each vector.
  Values weights_at(llvm::Value* row) {
    Values weights;
    for (int v = 0; v < tile_.vectors; ++v) weights.push_back(f_.load(f_.vector, f_.at(row, vector_bytes(v))));
    return weights;
  }
  llvm::Value* splat(llvm::Value* place) {
    return f_.b.CreateVectorSplat(static_cast<unsigned>(f_.lanes), f_.load(f_.scalar, place));
  }

  // Of src, for each vector of columns.
  Values elements_at(llvm::Value* pointer) {
    Values elements;
    for (int v = 0; v < tile_.vectors; ++v) elements.push_back(elements_at(pointer, v));
    return elements;
  }
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

  llvm::Value* place_of(const State& state, int pixel) {
    llvm::Value* const pointer = state.pixels[static_cast<size_t>(pixel / kPixelsOfAddress)];
    return pixel % kPixelsOfAddress == 0 ? pointer : f_.at(pointer, f_.b.CreateMul(pixel_, f_.i64(pixel % kPixelsOfAddress)));
  }

  // `bias`: an offset.
  void store(const State& state, llvm::Value* dst, llvm::Value* bias) {
    const Values results = f_.either(
        f_.b.CreateICmpNE(f_.arg(4), llvm::ConstantPointerNull::get(f_.b.getPtrTy())),
        [&] {
          Values added;
          for (int v = 0; v < tile_.vectors; ++v) added.push_back(load(f_.at(f_.arg(4), bias), v));
          Values sums = state.sums;
          for (size_t i = 0; i < sums.size(); ++i)
            sums[i] = f_.b.CreateFAdd(sums[i], added[i % static_cast<size_t>(tile_.vectors)]);
          return sums;
        },
        [&] { return state.sums; });
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
              tile.is_depthwise() ? ""
              : tile.is_dense()   ? " dense"
                                  : " shared",
              " channels", tile.columns_of_channel == 1 ? "" : join(" of ", tile.columns_of_channel, " columns"), " and ",
              tile.vectors, " vectors of ", tile.vector_bits, " bits, ", kernel::name_of(tile.type),
              tile.last_lanes == 0 ? "" : join(", ", tile.last_lanes, " lanes of the last"),
              tile.pixel_terms == 0 ? "" : join(", a pixel each ", tile.pixel_terms, " terms"),
              outside.empty() ? "" : join(", outside", outside), describe(tile.map));
}

}  // namespace lamina::cpu
