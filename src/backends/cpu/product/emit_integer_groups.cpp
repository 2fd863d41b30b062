#include "backends/cpu/product/emit_integer_groups.h"

#include "backends/cpu/product/pairs.h"
#include "backends/cpu/product/product_function.h"
#include "backends/cpu/program/integer_row.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using Values = ProductFunction::Values;

constexpr int kLine = 64;              // bytes
constexpr int64_t kUnrolledWords = 8;  // of a run
constexpr int64_t kWord = 4;           // bytes

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
  // The state of a run: sums of integers, sums of codes if they are needed, the place in the rows, the pointer to words.
  struct Run {
    Values sums, codes;
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
    Run run{Values(at, zero()), Values(tile_.has_zero_points ? vectors() : 0, zero()), before[at], before[at + 1]};
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
      for (int64_t word = 0; word < words; ++word) add_word(run);
      return;
    }
    Values state = run.sums;
    state.insert(state.end(), run.codes.begin(), run.codes.end());
    state.insert(state.end(), {run.place, run.words});
    const auto unpacked = [&](const Values& values) {
      const auto first = values.begin(), codes = first + static_cast<std::ptrdiff_t>(run.sums.size());
      return Run{Values(first, codes), Values(codes, values.end() - 2), values[values.size() - 2], values.back()};
    };
    run = unpacked(f_.repeat(f_.i64(words), std::move(state), [&](const Values& before) {
      Run each = unpacked(before);
      add_word(each);
      Values after = each.sums;
      after.insert(after.end(), each.codes.begin(), each.codes.end());
      after.insert(after.end(), {each.place, each.words});
      return after;
    }));
  }

  // A row of words: 4 bytes of each row of src for each 4 codes.
  void add_word(Run& run) {
    const int64_t parts = panel_.entries_of_word() / kWord;
    for (size_t j = 0; j < vectors(); ++j) {
      const auto byte = static_cast<int64_t>(j) * f_.vector_bytes();
      llvm::Value* const place = f_.at(run.words, f_.i64(byte));
      llvm::Value* const word = f_.load(words_, place);
      if (tile_.bytes_ahead > 0 && byte % kLine == 0) f_.prefetch(f_.at(place, f_.i64(tile_.bytes_ahead)));
      for (int64_t part = 0; part < parts; ++part) {
        llvm::Value* const codes = codes_of(word, part);
        llvm::Value* const at = f_.b.CreateAdd(run.place, f_.i64(part * kWord));
        for (size_t row = 0; row < rows_.size(); ++row) {
          llvm::Value*& sum = run.sums[row * vectors() + j];
          sum = added(sum, codes, word_of_row(row, at));
        }
        if (tile_.has_zero_points) run.codes[j] = added(run.codes[j], codes, splat(0x01010101));
      }
    }
    run.words = f_.at(run.words, f_.i64(row_bytes()));
    run.place = f_.b.CreateAdd(run.place, f_.i64(parts * kWord));
  }

  // Four codes in each lane: the bytes of a word; or the lower half of each byte, then the upper one.
  llvm::Value* codes_of(llvm::Value* word, int64_t part) {
    if (panel_.entries_of_word() > kWord) {
      if (part > 0) word = f_.b.CreateLShr(word, 4);
      word = f_.b.CreateAnd(word, splat(0x0F0F0F0F));
    }
    const auto middle = static_cast<uint32_t>(middle_of_codes(panel_.dtype));
    return middle == 0 ? word : f_.b.CreateXor(word, splat(middle * 0x01010101));
  }

  llvm::Value* added(llvm::Value* sum, llvm::Value* codes, llvm::Value* entries) {
    return add_products_of_bytes(f_, sum, codes, entries, bits_of(panel_.dtype) < 8);
  }

  // Scales the sums of vector `j` and adds them.
  void add_run(const Run& run, size_t j, llvm::Value* scales, llvm::Value* zero_points, Values& sums) {
    llvm::Value* const scale = vector_at(scales, panel_.scales, j);
    llvm::Value* middle = nullptr;  // the zero point of the codes; without one, corrections contain it
    if (panel_.has_zero_points) {
      middle = f_.b.CreateFPToSI(vector_at(zero_points, DataType::f32, j), words_);
      middle = f_.b.CreateAdd(middle, splat(static_cast<uint32_t>(middle_of_codes(panel_.dtype))));
    }
    llvm::Value* const codes = tile_.has_zero_points ? f_.b.CreateSub(run.codes[j], splat(codes_of_padding())) : nullptr;
    for (size_t row = 0; row < rows_.size(); ++row) {
      llvm::Value* correction = word_of_row(row, run.place);
      if (middle != nullptr) correction = f_.b.CreateMul(correction, middle);
      llvm::Value* whole = f_.b.CreateSub(run.sums[row * vectors() + j], correction);
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
