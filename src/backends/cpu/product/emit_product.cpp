#include "backends/cpu/product/emit_product.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "backends/cpu/product/pairs.h"
#include "backends/cpu/product/product_function.h"
#include "backends/cpu/product/tuning.h"
#include "backends/cpu/program/tuning.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using Values = ProductFunction::Values;

using tuning::kLine;

constexpr int kRowsOfAddress = 3;  // of src with one pointer: itself, and with one and two strides added

class TileEmitter {
 public:
  TileEmitter(llvm::Module& module, const std::string& symbol, const ProductTile& tile, const Instructions& target)
      : tile_(tile),
        f_(module, symbol, target, tile.vector_bits, tile.type, lane_bits_of(tile.type), tile.rows, tile.vectors,
           tile.last_lanes),
        vector_bytes_(f_.lanes * element_bytes(tile.weights)),
        row_bytes_(tile.splits_panels ? vector_bytes_ : tile.vectors * vector_bytes_) {}

  void emit() {
    src_k_ = tile_.is_dense ? f_.i64(f_.vector_bytes() / f_.lanes) : f_.stride(1);
    weights_k_ = tile_.is_dense ? f_.i64(row_bytes_) : f_.stride(2);
    llvm::Value *const src_tile = f_.stride(8), *const dst_tile = f_.stride(9), *const weights_tile = f_.stride(19);
    ahead_k_ = f_.stride(12);
    Values first{f_.arg(0), f_.arg(2), f_.arg(1), f_.at(f_.arg(1), f_.stride(11))};
    if (tile_.copies_next) {
      for (const int pointer : {17, 18}) first.push_back(f_.word_at(f_.arg(5), pointer, f_.b.getPtrTy()));
    }
    f_.repeat(f_.stride(7), first, [&](const Values& places) {
      src_ = places[0], f_.dst = places[1], weights_ = places[2], ahead_ = places[3];
      copies_.assign(places.begin() + 4, places.end());
      emit_one();
      Values next{f_.at(places[0], src_tile), f_.at(places[1], dst_tile), f_.at(places[2], weights_tile), ahead_};
      next.insert(next.end(), copies_.begin(), copies_.end());
      return next;
    });
    f_.b.CreateRetVoid();
  }

 private:
  void emit_one() {
    Values state = f_.first_sums();
    prefetch_sums(f_.at(f_.dst, f_.stride(5)), f_.stride(3));
    f_.store_sums(tile_.has_pointers ? by_pointers(std::move(state)) : by_strides(std::move(state)), tile_.map, tile_.stored);
  }

  void prefetch_sums(llvm::Value* dst, llvm::Value* dst_row) {
    const int64_t row_bytes = f_.stored_bytes(tile_.stored) * tile_.vectors;
    for (int row = 0; row < tile_.rows; ++row) {
      llvm::Value* const sums = f_.at(dst, f_.b.CreateMul(dst_row, f_.i64(row)));
      for (int64_t byte = 0; byte < row_bytes; byte += kLine) f_.prefetch(f_.at(sums, f_.i64(byte)), true);
    }
  }

  // The state: sums, pointers to every third row of src, the pointer to the row of weights, that to the next weights.
  Values by_strides(Values state) {
    llvm::Value* const src_row = f_.stride(0);
    Values offsets;
    for (int i = 0; i < kRowsOfAddress; ++i) offsets.push_back(f_.b.CreateMul(src_row, f_.i64(i)));
    for (int row = 0; row < tile_.rows; row += kRowsOfAddress)
      state.push_back(f_.at(src_, f_.b.CreateMul(src_row, f_.i64(row))));
    state.push_back(weights_);
    state.push_back(ahead_);
    state = with_copies(f_.arg(4), std::move(state), [&](const Values& before, int entries) {
      llvm::Value *const weights = *(before.end() - 2), *const ahead = before.back();
      Values after = multiplied(before, entries, weights, ahead, [&](int row) {
        const size_t pointer = f_.sums() + static_cast<size_t>(row / kRowsOfAddress);
        return f_.at(before[pointer], offsets[static_cast<size_t>(row % kRowsOfAddress)]);
      });
      for (size_t i = f_.sums(); i + 2 < after.size(); ++i) after[i] = f_.at(before[i], of_entry(src_k_, entries));
      *(after.end() - 2) = f_.at(weights, of_entry(weights_k_, entries));
      if (tile_.lines_of_next > 0) after.back() = f_.at(ahead, of_entry(ahead_k_, entries));
      return after;
    });
    ahead_ = state.back();
    return state;
  }

  // Maps the state before some successive entries of k to that after them.
  using Step = std::function<Values(const Values& before, int entries)>;

  // All entries, of which a step has as many as entries_of_step.
  Values in_steps(llvm::Value* count, Values state, const Step& step) {
    const int of_step = entries_of_step(tile_);
    const auto of = [&](int entries) { return [&step, entries](const Values& before) { return step(before, entries); }; };
    if (of_step == 1) return f_.repeat(count, std::move(state), of(1));
    state = f_.repeat(f_.b.CreateUDiv(count, f_.i64(of_step)), std::move(state), of(of_step));
    return f_.repeat(f_.b.CreateURem(count, f_.i64(of_step)), std::move(state), of(1));
  }

  llvm::Value* of_entry(llvm::Value* stride, int number) { return f_.b.CreateMul(stride, f_.i64(number)); }

  // All entries of k; copies rows of the next panel between some.
  Values with_copies(llvm::Value* count, Values state, const Step& step) {
    if (!tile_.copies_next) return in_steps(count, std::move(state), step);
    llvm::Value *const rows = f_.stride(14), *const steps = f_.stride(15);
    state.insert(state.end(), copies_.begin(), copies_.end());
    state = f_.repeat(rows, std::move(state), [&](const Values& before) {
      Values after = in_steps(steps, Values(before.begin(), before.end() - 2), step);
      const Values next = copy_row(*(before.end() - 2), before.back());
      after.insert(after.end(), next.begin(), next.end());
      return after;
    });
    copies_.assign(state.end() - 2, state.end());
    state.resize(state.size() - 2);
    return in_steps(f_.b.CreateSub(count, f_.b.CreateMul(rows, steps)), std::move(state), step);
  }

  // Returns the places of the next row.
  Values copy_row(llvm::Value* from, llvm::Value* to) {
    llvm::Value* const row = f_.stride(16);
    const int64_t rows = tile_.multiplies_pairs ? 2 : 1, vector_bytes = bytes_of(tile_.copied, f_.lanes);
    llvm::Value* const second = f_.at(from, row);
    for (int64_t i = 0; i < rows; ++i) {
      llvm::Value* const ahead = f_.at(from, f_.b.CreateMul(row, f_.i64(rows * product_tuning::kRowsCopiedAhead + i)));
      for (int64_t byte = 0; byte < tile_.vectors * vector_bytes; byte += kLine) f_.prefetch_second(f_.at(ahead, f_.i64(byte)));
    }
    Values words = tile_.multiplies_pairs ? words_of_rows(f_, tile_.vectors, from, second) : Values{};
    for (int j = 0; j < tile_.vectors; ++j) {
      llvm::Value* const copied = tile_.multiplies_pairs
                                      ? words[static_cast<size_t>(j)]
                                      : f_.load_converted(tile_.copied, f_.vector, f_.at(from, f_.i64(j * vector_bytes)));
      f_.store(copied, f_.at(to, f_.i64(j * f_.vector_bytes())));
    }
    return {tile_.multiplies_pairs ? f_.at(second, row) : second, f_.at(to, f_.i64(tile_.vectors * f_.vector_bytes()))};
  }

  // The state: sums, the pointers to the row of weights and to the next weights, and that to the next pointers to rows of src.
  Values by_pointers(Values state) {
    state.push_back(weights_);
    state.push_back(ahead_);
    state.push_back(src_);
    state = f_.repeat(f_.stride(6), std::move(state), [&](const Values& before) {
      Values rows;
      for (int row = 0; row < tile_.rows; ++row) rows.push_back(f_.word_at(before.back(), row, f_.b.getPtrTy()));
      Values part(before.begin(), before.end() - 1);
      part.push_back(tile_.groups.columns == 0 ? f_.i64(0) : f_.stride(10));
      part = in_steps(f_.arg(4), std::move(part), [&](const Values& entry, int entries) {
        llvm::Value *const weights = entry[f_.sums()], *const ahead = entry[f_.sums() + 1], *const offset = entry.back();
        Values after =
            multiplied(entry, entries, weights, ahead, [&](int row) { return f_.at(rows[static_cast<size_t>(row)], offset); });
        after[f_.sums()] = f_.at(weights, of_entry(weights_k_, entries));
        if (tile_.lines_of_next > 0) after[f_.sums() + 1] = f_.at(ahead, of_entry(ahead_k_, entries));
        after.back() = f_.b.CreateAdd(offset, of_entry(src_k_, entries));
        return after;
      });
      part.back() = f_.b.CreateConstGEP1_64(f_.b.getInt64Ty(), before.back(), static_cast<uint64_t>(tile_.rows));
      return part;
    });
    ahead_ = state[f_.sums() + 1];
    return state;
  }

  // Successive entries of k. `state` begins with the sums; `src` returns the place of a row's first element.
  Values multiplied(Values state, int entries, llvm::Value* weights, llvm::Value* ahead,
                    const std::function<llvm::Value*(int row)>& src) {
    for (int entry = 0; entry < entries; ++entry) {
      if (entry * tile_.lines_of_next % entries < tile_.lines_of_next)
        f_.prefetch_second(f_.at(ahead, of_entry(ahead_k_, entry)));
      if (tile_.bytes_ahead > 0) prefetch_weights(weights, entry);
      add_products(state, f_.at(weights, of_entry(weights_k_, entry)),
                   [&](int row) { return f_.at(src(row), of_entry(src_k_, entry)); });
    }
    return state;
  }

  // Rows that are packed follow each other: the lines of all entries of a step.
  void prefetch_weights(llvm::Value* weights, int entry) {
    if (!tile_.is_dense) return prefetch_matrix(f_.at(weights, of_entry(weights_k_, entry)));
    const int64_t first = entry * row_bytes_;
    for (int64_t byte = (first + kLine - 1) / kLine * kLine; byte < first + row_bytes_; byte += kLine)
      for (int stream = 0; stream < streams(); ++stream)
        prefetch_line(f_.at(f_.at(weights, to_vector(stream)), f_.i64(tile_.bytes_ahead + byte)));
  }
  void prefetch_line(llvm::Value* line) { f_.prefetch_weights(line, tile_.prefetches_to_first); }
  // Rows of a matrix, or of a panel for more columns, do not follow each other: many streams, each of a few lines at a time.
  void prefetch_matrix(llvm::Value* row) {
    const int rows = takes_pairs_of_rows() ? 2 : 1;
    for (int i = 0; i < rows * streams(); ++i) {
      llvm::Value* const begin = f_.at(i % rows == 0 ? row : second_of_pair(row), to_vector(i / rows));
      for (int64_t byte = 0; byte < row_bytes_; byte += kLine) prefetch_line(f_.at(begin, f_.i64(tile_.bytes_ahead + byte)));
    }
  }
  int streams() const { return tile_.splits_panels ? tile_.vectors : 1; }
  bool takes_pairs_of_rows() const { return tile_.multiplies_pairs && tile_.weights == DataType::bf16; }
  llvm::Value* second_of_pair(llvm::Value* row) { return f_.at(row, f_.b.CreateSDiv(weights_k_, f_.i64(2))); }

  void add_products(Values& sums, llvm::Value* weights, const std::function<llvm::Value*(int row)>& src) {
    const Values row_of_weights = weights_at(weights);
    for (int row = 0; row < tile_.rows; ++row) {
      llvm::Value* const place = src(row);
      llvm::Value* factor = tile_.groups.columns == 0 ? splat(place) : nullptr;
      for (int j = 0; j < tile_.vectors; ++j) {
        if (tile_.groups.columns > 0) factor = factors_of_groups(place, j);
        llvm::Value*& sum = sums[static_cast<size_t>(row * tile_.vectors + j)];
        sum = added(sum, factor, row_of_weights[static_cast<size_t>(j)]);
      }
    }
  }
  llvm::Value* splat(llvm::Value* place) {
    return f_.b.CreateVectorSplat(static_cast<unsigned>(f_.lanes), f_.load(f_.scalar, place));
  }

  // Of vector `j`: in each lane the element of its group. `place`: the element of the tile's first group.
  llvm::Value* factors_of_groups(llvm::Value* place, int j) {
    const auto [columns, step] = tile_.groups;
    const int groups = f_.lanes / columns, last = tile_.last_lanes == 0 ? f_.lanes : tile_.last_lanes;
    const int stored = j + 1 < tile_.vectors ? groups : (last + columns - 1) / columns;
    const int64_t bytes = f_.vector_bytes() / f_.lanes;
    place = f_.at(place, f_.i64(j * groups * step * bytes));
    std::vector<int> group_of_lane;
    for (int lane = 0; lane < f_.lanes; ++lane) group_of_lane.push_back(lane / columns);
    llvm::Value* elements = nullptr;
    if (step == 1) {
      elements = stored == f_.lanes ? f_.load(f_.vector, place) : f_.load_first(stored, place);
    } else {
      elements = llvm::Constant::getNullValue(f_.vector);
      for (int group = 0; group < stored; ++group) {
        llvm::Value* const element = f_.load(f_.scalar, f_.at(place, f_.i64(group * step * bytes)));
        elements = f_.b.CreateInsertElement(elements, element, f_.i64(group));
      }
    }
    return columns == 1 ? elements : f_.b.CreateShuffleVector(elements, group_of_lane);
  }

  // From the first vector of a row of the panel.
  llvm::Value* to_vector(int number) {
    if (!tile_.splits_panels) return f_.i64(number * vector_bytes_);
    return f_.b.CreateMul(f_.stride(20), f_.i64(number));
  }

  // A row of the panel.
  Values weights_at(llvm::Value* row) {
    if (takes_pairs_of_rows()) return words_of_rows(f_, tile_.vectors, row, second_of_pair(row));
    Values vectors;
    for (int j = 0; j < tile_.vectors; ++j) {
      llvm::Value* const place = f_.at(row, to_vector(j));
      vectors.push_back(is_byte_integer(tile_.weights)
                            ? words_of_pairs(f_, tile_.weights, tile_.zero_point, load_pairs(f_, f_.vector, place))
                            : f_.load_converted(tile_.weights, f_.vector, place));
    }
    return vectors;
  }
  llvm::Value* added(llvm::Value* sum, llvm::Value* factor, llvm::Value* weights) {
    if (tile_.type == kernel::Type::s32) return add_products_of_pairs(f_, sum, factor, weights);
    if (tile_.multiplies_pairs) return add_products_of_bf16_pairs(f_, sum, factor, weights);
    return f_.b.CreateIntrinsic(llvm::Intrinsic::fma, {f_.vector}, {factor, weights, sum});
  }

  const ProductTile tile_;
  TileFunction f_;
  const int64_t vector_bytes_, row_bytes_;  // of a vector of a panel, and of those that are beside each other
  Values copies_;                           // the places of the next row that is copied, in the matrix and in the panel
  llvm::Value *src_ = nullptr, *weights_ = nullptr, *src_k_ = nullptr, *weights_k_ = nullptr, *ahead_ = nullptr,
              *ahead_k_ = nullptr;
};

}  // namespace

void emit_product_tile(llvm::Module& module, const std::string& symbol, const ProductTile& tile, const Instructions& target) {
  if (tile.along_k) return emit_tile_along_k(module, symbol, tile, target);
  TileEmitter(module, symbol, tile, target).emit();
}

int entries_of_step(const ProductTile& tile) {
  if (!tile.is_dense) return 1;
  const int in_step = product_tuning::kMultiplyAddsOfStep / (tile.rows * tile.vectors);
  return std::clamp(static_cast<int>(std::bit_floor(static_cast<unsigned>(std::max(in_step, 1)))), 1,
                    product_tuning::kMostEntriesOfStep);
}

std::string describe(const ProductTile& tile) {
  return join("product tile of ", tile.rows, " rows and ", tile.vectors, " vectors of ", tile.vector_bits, " bits, ",
              kernel::name_of(tile.type), ", weights ", name_of(tile.weights),
              tile.zero_point == 0 ? "" : join(" from ", tile.zero_point),
              tile.stored == DataType::f32 ? "" : join(", stores ", name_of(tile.stored)),
              tile.last_lanes == 0 ? "" : join(", ", tile.last_lanes, " lanes of the last"),
              tile.multiplies_pairs ? ", in pairs" : "", tile.along_k ? ", weights along k" : "",
              tile.bytes_ahead == 0 ? "" : join(", prefetches ", tile.bytes_ahead, " bytes ahead"),
              tile.prefetches_to_first ? " to the first level" : "",
              tile.lines_of_next == 0 ? "" : join(", prefetches ", tile.lines_of_next, " lines of the next weights"),
              tile.copies_next ? join(", copies the next weights from ", name_of(tile.copied)) : "",
              tile.has_pointers ? ", rows by pointers" : "", tile.is_dense ? ", dense" : "",
              tile.splits_panels ? ", vectors apart" : "",
              tile.groups.columns == 0 ? "" : join(", groups of ", tile.groups.columns, ", ", tile.groups.step, " apart"),
              describe(tile.map));
}

}  // namespace lamina::cpu
