// How an integer becomes a float without a conversion: its bits are inserted in the mantissa of a power of two, whose last
// place they are multiples of, and the power is subtracted. Both are exact. Signed integers are read as unsigned ones that are
// larger by half of the range: the highest bit is inverted, and the half is subtracted with the power.
#include "backends/cpu/product/emit_dequantized.h"

#include <bit>

#include "backends/cpu/product/product_function.h"
#include "backends/cpu/program/tuning.h"
#include "backends/cpu/vector/convert.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using tuning::kLine;
using Values = ProductFunction::Values;

constexpr int kBitsOfMantissa = 23;  // without the leading one
constexpr int kBitsInPlace = 16;     // of a word: they are inserted where they are; the others are shifted down first

class DequantizedTileEmitter {
 public:
  DequantizedTileEmitter(llvm::Module& module, const std::string& symbol, const DequantizedTile& tile,
                         const Instructions& target)
      : tile_(tile),
        panel_(tile_.panel),
        target_(target),
        f_(module, symbol, target, panel_.vector_bits, kernel::Type::f32, 32, tile.rows, panel_.vectors),
        words_(llvm::FixedVectorType::get(f_.b.getInt32Ty(), static_cast<unsigned>(f_.lanes))) {}

  void emit() {
    Values state = tile_.rows == 0 ? Values{} : f_.first_sums();
    state.insert(state.end(), {tile_.rows == 0 ? f_.arg(2) : f_.arg(0), pointer(0), pointer(1), pointer(2)});
    for (int row = 0; row < tile_.rows; ++row) src_rows_.push_back(f_.b.CreateMul(f_.stride(0), f_.i64(row)));
    llvm::Value* const runs = f_.b.CreateSDiv(f_.arg(4), f_.i64(panel_.run));
    state = f_.repeat(runs, std::move(state), [&](const Values& before) { return run(before); });
    if (tile_.rows > 0) f_.store_sums(state);
    f_.b.CreateRetVoid();
  }

 private:
  llvm::Value* pointer(int number) { return f_.word_at(f_.arg(1), number, f_.b.getPtrTy()); }
  int64_t row_bytes() const { return panel_.vectors * f_.vector_bytes(); }

  // The state: sums, the pointer to src or to the dequantised weights, and those to words, scales and zero points.
  Values run(const Values& before) {
    llvm::Value *const scales = before[f_.sums() + 2], *const zero_points = before[f_.sums() + 3];
    scales_ = row_of_groups(scales, panel_.scales);
    zero_points_ = panel_.has_zero_points ? row_of_groups(zero_points, DataType::f32) : Values{};
    const int64_t entries = panel_.entries_of_word(), whole = panel_.run / entries, rest = panel_.run % entries;
    Values state(before.begin(), before.end() - 2);
    if (whole > 0) state = f_.repeat(f_.i64(whole), std::move(state), [&](const Values& each) { return word(each, entries); });
    if (rest > 0) state = word(state, rest);
    state.push_back(f_.at(scales, f_.i64(bytes_of(panel_.scales, panel_.columns()))));
    state.push_back(f_.at(zero_points, f_.i64(panel_.has_zero_points ? row_bytes() : 0)));
    return state;
  }

  Values row_of_groups(llvm::Value* from, DataType dtype) {
    auto* const type = llvm::FixedVectorType::get(storage_type(f_.b.getContext(), dtype), static_cast<unsigned>(f_.lanes));
    Values row;
    for (int j = 0; j < panel_.vectors; ++j) {
      llvm::Value* const place = f_.at(from, f_.i64(bytes_of(dtype, int64_t{j} * f_.lanes)));
      row.push_back(emit_to_f32(f_.b, dtype, f_.b.CreateAlignedLoad(type, place, llvm::Align(2)), target_));
    }
    return row;
  }

  // The first `entries` entries of a row of words.
  Values word(const Values& before, int64_t entries) {
    Values after = before;
    llvm::Value *&data = after[f_.sums()], *&words = after[f_.sums() + 1];
    Values whole, part;
    for (int j = 0; j < panel_.vectors; ++j) {
      llvm::Value* const place = f_.at(words, f_.i64(j * f_.vector_bytes()));
      whole.push_back(f_.load(words_, place));
      if (tile_.bytes_ahead > 0 && j * f_.vector_bytes() % kLine == 0) f_.prefetch(f_.at(place, f_.i64(tile_.bytes_ahead)));
    }
    for (int64_t i = 0; i < entries; ++i) {
      const auto bit = static_cast<int>(i * bits_of(panel_.dtype));
      if (bit == 0) part = whole;
      Values weights;
      for (size_t j = 0; j < whole.size(); ++j) {
        if (bit > 0 && bit % kBitsInPlace == 0) part[j] = f_.b.CreateLShr(whole[j], static_cast<uint64_t>(bit));
        weights.push_back(weight(part[j], bit % kBitsInPlace, j));
      }
      use(weights, data, i, after);
    }
    data = f_.at(data, f_.i64(entries * (tile_.rows == 0 ? row_bytes() : int64_t{sizeof(float)})));
    words = f_.at(words, f_.i64(row_bytes()));
    return after;
  }

  // That of the bits from `bit` on in each lane.
  llvm::Value* weight(llvm::Value* word, int bit, size_t vector) {
    const int bits = static_cast<int>(bits_of(panel_.dtype));
    const float power = static_cast<float>(1 << (kBitsOfMantissa - bit));
    const uint32_t half = is_signed_integer(panel_.dtype) ? uint32_t{1} << (bits - 1) : 0;
    const uint32_t mask = ((uint32_t{1} << bits) - 1) << bit, inserted = std::bit_cast<uint32_t>(power) ^ (half << bit);
    llvm::Value* const mantissa = f_.b.CreateXor(f_.b.CreateAnd(word, splat(mask)), splat(inserted));
    llvm::Value* const subtracted = llvm::ConstantFP::get(f_.vector, static_cast<double>(power) + static_cast<double>(half));
    llvm::Value* value = f_.b.CreateFSub(f_.b.CreateBitCast(mantissa, f_.vector), subtracted);
    if (panel_.has_zero_points) value = f_.b.CreateFSub(value, zero_points_[vector]);
    value = f_.b.CreateFMul(value, scales_[vector]);
    if (panel_.rounds_to == DataType::f32) return value;
    return emit_to_f32(f_.b, panel_.rounds_to, emit_from_f32(f_.b, panel_.rounds_to, value, target_), target_);
  }
  llvm::Value* splat(uint32_t bits) { return llvm::ConstantInt::get(words_, bits); }

  // Multiplies the weights of an entry of k and adds, or stores them.
  void use(const Values& weights, llvm::Value* data, int64_t entry, Values& sums_after) {
    for (size_t j = 0; tile_.rows == 0 && j < weights.size(); ++j)
      f_.store(weights[j], f_.at(data, f_.i64(entry * row_bytes() + static_cast<int64_t>(j) * f_.vector_bytes())));
    for (size_t row = 0; row < src_rows_.size(); ++row) {
      llvm::Value* const place = f_.at(f_.at(data, src_rows_[row]), f_.i64(entry * int64_t{sizeof(float)}));
      llvm::Value* const factor = f_.b.CreateVectorSplat(static_cast<unsigned>(f_.lanes), f_.load(f_.scalar, place));
      for (size_t j = 0; j < weights.size(); ++j) {
        llvm::Value*& sum = sums_after[row * weights.size() + j];
        sum = f_.b.CreateIntrinsic(llvm::Intrinsic::fma, {f_.vector}, {factor, weights[j], sum});
      }
    }
  }

  const DequantizedTile tile_;
  const QuantizedPanel& panel_;
  const Instructions& target_;
  TileFunction f_;
  llvm::Type* const words_;
  Values src_rows_, scales_, zero_points_;
};

class WordCopyEmitter {
 public:
  WordCopyEmitter(llvm::Module& module, const std::string& symbol, const WordCopy& copy, const Instructions& target)
      : copy_(copy),
        bits_(static_cast<int>(bits_of(copy.dtype))),
        f_(module, symbol, parameter_types(module.getContext(), "pwpw"), target, copy.vector_bits, kernel::Type::f32, 32) {}

  void emit() {
    const int64_t row_bytes = copy_.vectors * f_.vector_bytes();
    f_.repeat(f_.arg(3), {f_.arg(0), f_.arg(2)}, [&](const Values& state) {
      llvm::Value* row = state[0];
      Values words(static_cast<size_t>(copy_.vectors), nullptr);
      for (int bit = 0; bit < 32; bit += bits_) {
        for (int j = 0; j < copy_.vectors; ++j) {
          llvm::Value* const part = f_.b.CreateShl(codes(row, j), static_cast<uint64_t>(bit));
          llvm::Value*& word = words[static_cast<size_t>(j)];
          word = word == nullptr ? part : f_.b.CreateOr(word, part);
        }
        row = f_.at(row, f_.arg(1));
      }
      for (int j = 0; j < copy_.vectors; ++j)
        f_.store(words[static_cast<size_t>(j)], f_.at(state[1], f_.i64(j * f_.vector_bytes())));
      return Values{row, f_.at(state[1], f_.i64(row_bytes))};
    });
    f_.b.CreateRetVoid();
  }

 private:
  // The integers of vector j of a row, one per lane.
  llvm::Value* codes(llvm::Value* row, int j) {
    const int per_byte = 8 / bits_, bytes = f_.lanes / per_byte;
    auto* const type = llvm::FixedVectorType::get(f_.b.getInt8Ty(), static_cast<unsigned>(bytes));
    llvm::Value* raw = f_.b.CreateAlignedLoad(type, f_.at(row, f_.i64(int64_t{j} * bytes)), llvm::Align(1));
    auto* const wide = llvm::FixedVectorType::get(f_.b.getInt32Ty(), static_cast<unsigned>(f_.lanes));
    if (per_byte == 1) return f_.b.CreateZExt(raw, wide);
    std::vector<int> twice;
    std::vector<uint32_t> shifts;
    for (int lane = 0; lane < f_.lanes; ++lane) {
      twice.push_back(lane / per_byte);
      shifts.push_back(static_cast<uint32_t>(lane % per_byte * bits_));
    }
    raw = f_.b.CreateZExt(f_.b.CreateShuffleVector(raw, twice), wide);
    raw = f_.b.CreateLShr(raw, llvm::ConstantDataVector::get(f_.b.getContext(), shifts));
    return f_.b.CreateAnd(raw, llvm::ConstantInt::get(wide, (uint64_t{1} << bits_) - 1));
  }

  const WordCopy copy_;
  const int bits_;
  ProductFunction f_;
};

}  // namespace

void emit_dequantized_tile(llvm::Module& module, const std::string& symbol, const DequantizedTile& tile,
                           const Instructions& target) {
  DequantizedTileEmitter(module, symbol, tile, target).emit();
}

std::string describe(const DequantizedTile& tile) {
  const QuantizedPanel& panel = tile.panel;
  return join("dequantised tile of ", tile.rows, " rows and ", panel.vectors, " vectors of ", panel.vector_bits, " bits, ",
              name_of(panel.dtype), " in runs of ", panel.run, ", scales ", name_of(panel.scales),
              panel.has_zero_points ? ", zero points" : "", ", rounded to ", name_of(panel.rounds_to), ", prefetches ",
              tile.bytes_ahead, " bytes ahead");
}

void emit_word_copy(llvm::Module& module, const std::string& symbol, const WordCopy& copy, const Instructions& target) {
  WordCopyEmitter(module, symbol, copy, target).emit();
}

std::string describe(const WordCopy& copy) {
  return join("words of ", name_of(copy.dtype), " from rows, ", copy.vectors, " vectors of ", copy.vector_bits, " bits");
}

}  // namespace lamina::cpu
