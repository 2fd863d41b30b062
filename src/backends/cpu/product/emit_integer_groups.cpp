#include "backends/cpu/product/emit_integer_groups.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "backends/cpu/product/pairs.h"
#include "backends/cpu/product/product_function.h"
#include "backends/cpu/program/integer_row.h"
#include "backends/cpu/program/tuning.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using tuning::kLine;
using Values = ProductFunction::Values;

constexpr int64_t kUnrolledWords = 8;  // of a run
constexpr int64_t kWord = 4;           // bytes
constexpr uint32_t kOnes = 0x01010101;

class IntegerTileEmitter {
 public:
  IntegerTileEmitter(llvm::Module& module, const std::string& symbol, const IntegerTile& tile, const Instructions& target)
      : tile_(tile),
        panel_(tile_.panel),
        f_(module, symbol, target, panel_.vector_bits, kernel::Type::f32, 32, tile.rows, panel_.vectors),
        words_(llvm::FixedVectorType::get(f_.b.getInt32Ty(), static_cast<unsigned>(f_.lanes))) {}

  void emit() {
    for (int row = 0; row < tile_.rows; ++row) rows_.push_back(f_.at(f_.arg(0), f_.b.CreateMul(f_.stride(0), f_.i64(row))));
    Values state(f_.sums(), llvm::Constant::getNullValue(f_.vector));
    state.insert(state.end(), {f_.i64(kIntegerRowHeader), pointer(0), pointer(1), pointer(2)});
    llvm::Value* const runs = f_.b.CreateSDiv(f_.arg(4), f_.i64(panel_.run));
    state = f_.repeat(runs, std::move(state), [&](const Values& before) { return run(before); });
    for (size_t i = 0; i < f_.sums(); ++i) {
      llvm::Value* const scale = f_.load(f_.scalar, rows_[i / vectors()]);
      state[i] = f_.b.CreateFMul(state[i], f_.b.CreateVectorSplat(static_cast<unsigned>(f_.lanes), scale));
    }
    f_.store_sums(state);
    f_.b.CreateRetVoid();
  }

 private:
  // A sum, and what is added to it before it overflows: two sums of 16 bits, or four of codes. Null if there are none.
  struct Sum {
    llvm::Value *whole, *pair = nullptr, *bytes = nullptr;
  };
  // The state of a run: sums of integers, sums of codes if they are needed, the place in the rows, the pointer to words.
  struct Run {
    std::vector<Sum> sums, codes;
    llvm::Value *place, *words;
  };

  llvm::Value* pointer(int number) { return f_.word_at(f_.arg(1), number, f_.b.getPtrTy()); }
  size_t vectors() const { return static_cast<size_t>(panel_.vectors); }
  int64_t row_bytes() const { return panel_.vectors * f_.vector_bytes(); }
  llvm::Value* zero() { return llvm::Constant::getNullValue(words_); }
  llvm::Value* splat(uint32_t bits) { return llvm::ConstantInt::get(words_, bits); }
  llvm::Value* word_of_row(size_t row, llvm::Value* place) {
    llvm::Value* const word = f_.load(f_.b.getInt32Ty(), f_.at(rows_[row], place));
    return f_.b.CreateVectorSplat(static_cast<unsigned>(f_.lanes), word);
  }

  // The state: sums, the place in the rows, the pointers to words, scales and zero points.
  Values run(const Values& before) {
    const size_t at = f_.sums();
    Run run{std::vector(at, Sum{zero()}), std::vector(tile_.has_zero_points ? vectors() : 0, Sum{zero()}), before[at],
            before[at + 1]};
    add_words(run);
    Values state(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(at));
    for (size_t j = 0; j < vectors(); ++j) add_run(run, j, before[at + 2], before[at + 3], state);
    state.push_back(f_.b.CreateAdd(run.place, f_.i64(kWord)));
    state.push_back(run.words);
    state.push_back(f_.at(before[at + 2], f_.i64(bytes_of(panel_.scales, panel_.columns()))));
    state.push_back(f_.at(before[at + 3], f_.i64(panel_.has_zero_points ? row_bytes() : 0)));
    return state;
  }

  void add_words(Run& run) {
    const int64_t words = panel_.words_of_run();
    if (words <= kUnrolledWords) {
      for (int64_t word = 1; word <= words; ++word) {
        add_word(run);
        if (word % words_of_parts() == 0 || word == words) add_parts(run);
      }
      return;
    }
    Values state = whole_sums(run.sums);
    const Values codes = whole_sums(run.codes);
    state.insert(state.end(), codes.begin(), codes.end());
    state.insert(state.end(), {run.place, run.words});
    const auto unpacked = [&](const Values& values) {
      const auto first = values.begin(), codes_at = first + static_cast<std::ptrdiff_t>(run.sums.size());
      return Run{sums_of({first, codes_at}), sums_of({codes_at, values.end() - 2}), values[values.size() - 2], values.back()};
    };
    run = unpacked(f_.repeat(f_.i64(words), std::move(state), [&](const Values& before) {
      Run each = unpacked(before);
      add_word(each);
      add_parts(each);
      Values after = whole_sums(each.sums);
      const Values sums_of_codes = whole_sums(each.codes);
      after.insert(after.end(), sums_of_codes.begin(), sums_of_codes.end());
      after.insert(after.end(), {each.place, each.words});
      return after;
    }));
  }

  static Values whole_sums(const std::vector<Sum>& sums) {
    Values values;
    for (const Sum& sum : sums) values.push_back(sum.whole);
    return values;
  }
  static std::vector<Sum> sums_of(const Values& values) {
    std::vector<Sum> sums;
    for (llvm::Value* const value : values) sums.push_back({value});
    return sums;
  }

  // After which sums of 16 bits might overflow, or sums of codes be 128.
  int64_t words_of_parts() const {
    const int64_t most_code = (int64_t{1} << bits_of(panel_.dtype)) - 1, most = 2 * most_code * 128;
    return std::max<int64_t>(std::numeric_limits<int16_t>::max() / most / parts_of_word(), 1);
  }
  void add_parts(Run& run) {
    for (std::vector<Sum>* const sums : {&run.sums, &run.codes}) {
      for (Sum& sum : *sums) {
        if (sum.pair != nullptr) sum.whole = add_pair(f_, sum.whole, sum.pair);
        if (sum.bytes != nullptr) sum.whole = add_products_of_bytes(f_, sum.whole, sum.bytes, splat(kOnes), true);
        sum = {sum.whole};
      }
    }
  }

  // Of four codes in each lane.
  int64_t parts_of_word() const { return panel_.entries_of_word() / kWord; }

  // A row of words: 4 bytes of each row of src for each 4 codes.
  void add_word(Run& run) {
    for (size_t j = 0; j < vectors(); ++j) {
      const auto byte = static_cast<int64_t>(j) * f_.vector_bytes();
      llvm::Value* const place = f_.at(run.words, f_.i64(byte));
      const Values codes = codes_of(f_.load(words_, place));
      if (tile_.bytes_ahead > 0 && byte % kLine == 0) f_.prefetch_second(f_.at(place, f_.i64(tile_.bytes_ahead)));
      for (size_t part = 0; part < codes.size(); ++part) {
        llvm::Value* const at = f_.b.CreateAdd(run.place, f_.i64(static_cast<int64_t>(part) * kWord));
        for (size_t row = 0; row < rows_.size(); ++row) add(run.sums[row * vectors() + j], codes[part], word_of_row(row, at));
        if (tile_.has_zero_points) add_codes(run.codes[j], codes[part]);
      }
    }
    run.words = f_.at(run.words, f_.i64(row_bytes()));
    run.place = f_.b.CreateAdd(run.place, f_.i64(parts_of_word() * kWord));
  }

  // Four codes in each lane: the bytes of a word; or the lower half of each byte, then the upper one. The highest bit of signed
  // ones is inverted: of both halves at once, but with AVX-512, of which one instruction selects and inverts.
  Values codes_of(llvm::Value* word) {
    const auto middle = static_cast<uint32_t>(middle_of_codes(panel_.dtype)) * kOnes;
    const auto inverted = [&](llvm::Value* codes, uint32_t bits) {
      return middle == 0 ? codes : f_.b.CreateXor(codes, splat(bits));
    };
    if (parts_of_word() == 1) return {inverted(word, middle)};
    const bool inverts_halves = f_.instructions.multiplies_bytes;
    if (!inverts_halves) word = inverted(word, middle | middle << 4);
    Values halves;
    for (llvm::Value* const half : {word, f_.b.CreateLShr(word, 4)}) {
      llvm::Value* const codes = f_.b.CreateAnd(half, splat(0x0F0F0F0F));
      halves.push_back(inverts_halves ? inverted(codes, middle) : codes);
    }
    return halves;
  }

  bool has_small_codes() const { return bits_of(panel_.dtype) < 8; }

  // In sums of 16 bits if the target has these.
  void add(Sum& sum, llvm::Value* codes, llvm::Value* entries) {
    llvm::Value* const before = sum.pair == nullptr ? zero() : sum.pair;
    if (llvm::Value* const pair = has_small_codes() ? add_pairs_of_bytes(f_, before, codes, entries) : nullptr)
      sum.pair = pair;
    else
      sum.whole = add_products_of_bytes(f_, sum.whole, codes, entries, has_small_codes());
  }
  void add_codes(Sum& sum, llvm::Value* codes) {
    if (!has_small_codes())
      sum.whole = add_products_of_bytes(f_, sum.whole, codes, splat(kOnes), false);
    else if (sum.bytes == nullptr)
      sum.bytes = codes;
    else
      sum.bytes = f_.b.CreateBitCast(f_.b.CreateAdd(as_bytes(sum.bytes), as_bytes(codes)), words_);
  }
  llvm::Value* as_bytes(llvm::Value* words) {
    auto* const bytes = llvm::FixedVectorType::get(f_.b.getInt8Ty(), static_cast<unsigned>(f_.vector_bytes()));
    return f_.b.CreateBitCast(words, bytes);
  }

  // Scales the sums of vector `j` and adds them.
  void add_run(const Run& run, size_t j, llvm::Value* scales, llvm::Value* zero_points, Values& sums) {
    llvm::Value* const scale = vector_at(scales, panel_.scales, j);
    llvm::Value* middle = nullptr;  // the zero point of the codes; without one, corrections contain it
    if (panel_.has_zero_points) {
      middle = f_.b.CreateFPToSI(vector_at(zero_points, DataType::f32, j), words_);
      middle = f_.b.CreateAdd(middle, splat(static_cast<uint32_t>(middle_of_codes(panel_.dtype))));
    }
    llvm::Value* const codes = tile_.has_zero_points ? f_.b.CreateSub(run.codes[j].whole, splat(codes_of_padding())) : nullptr;
    for (size_t row = 0; row < rows_.size(); ++row) {
      llvm::Value* correction = word_of_row(row, run.place);
      if (middle != nullptr) correction = f_.b.CreateMul(correction, middle);
      llvm::Value* whole = f_.b.CreateSub(run.sums[row * vectors() + j].whole, correction);
      if (tile_.has_zero_points) whole = f_.b.CreateSub(whole, f_.b.CreateMul(word_of_row(row, f_.i64(kWord)), codes));
      llvm::Value*& sum = sums[row * vectors() + j];
      sum = f_.b.CreateIntrinsic(llvm::Intrinsic::fma, {f_.vector}, {f_.b.CreateSIToFP(whole, f_.vector), scale, sum});
    }
  }

  // The sum of the codes after the run in its last word, which are weights of 0.
  uint32_t codes_of_padding() const {
    const int64_t entries = panel_.words_of_run() * panel_.entries_of_word() - panel_.run;
    return static_cast<uint32_t>(entries * middle_of_codes(panel_.dtype));
  }

  llvm::Value* vector_at(llvm::Value* from, DataType dtype, size_t j) {
    return f_.load_converted(dtype, f_.vector, f_.at(from, f_.i64(bytes_of(dtype, static_cast<int64_t>(j) * f_.lanes))));
  }

  const IntegerTile tile_;
  const QuantizedPanel& panel_;
  TileFunction f_;
  llvm::Type* const words_;
  Values rows_;
};

}  // namespace

void emit_integer_tile(llvm::Module& module, const std::string& symbol, const IntegerTile& tile, const Instructions& target) {
  IntegerTileEmitter(module, symbol, tile, target).emit();
}

std::string describe(const IntegerTile& tile) {
  const QuantizedPanel& panel = tile.panel;
  return join("integer tile of ", tile.rows, " rows and ", panel.vectors, " vectors of ", panel.vector_bits, " bits, ",
              name_of(panel.dtype), " in runs of ", panel.run, ", scales ", name_of(panel.scales),
              panel.has_zero_points ? ", zero points" : "", tile.has_zero_points ? ", zero points of rows" : "",
              ", prefetches ", tile.bytes_ahead, " bytes ahead");
}

}  // namespace lamina::cpu
