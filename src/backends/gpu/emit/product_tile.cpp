#include "backends/gpu/emit/product_tile.h"

#include <algorithm>
#include <limits>

#include "backends/gpu/emit/c_types.h"
#include "backends/gpu/schedule/matrix_tile.h"
#include "interface/data_type.h"
#include "interface/status.h"
#include "kernels/parts.h"

namespace lamina::gpu {

namespace {

// Elements of local memory that a thread reads at once.
constexpr int kTogether = 4;
int together(int per_thread) { return per_thread % kTogether == 0 ? kTogether : 1; }
// From a term to the next, in elements: threads that write neighbouring terms use different banks.
int pitch(int extent, int per_thread) { return extent + together(per_thread); }

}  // namespace

ProductTile product_tile_of(const tuning::TimedProductTile& timed) {
  return {.threads_down = timed.threads_down,
          .threads_across = timed.threads_across,
          .per_thread_rows = timed.per_thread_rows,
          .per_thread_columns = timed.per_thread_columns,
          .depth = timed.depth,
          .stages = timed.stages};
}

// The tile of the least time, as of matrix instructions (matrix_tile.cpp).
ProductTile choose_tile(int64_t rows, int64_t columns, int64_t products, kernel::Type sums, int most_elements,
                        const DeviceLimits& limits) {
  ProductTile tile{.sums = sums};
  while (tile.threads_down > 1 && tile.group_size() > limits.max_group) tile.threads_down /= 2, tile.threads_across /= 2;
  const int side = tile.threads_down;
  if (columns <= side) tile.per_thread_columns = 1;
  if (rows <= side) {
    tile.per_thread_rows = 1;
    tile.per_thread_columns = std::min(tile.per_thread_columns, tuning::kMatmulColumnsOfFewRows);
    tile.depth = tuning::kMatmulDepthOfFewRows / (sums == kernel::Type::f64 ? 2 : 1);
  }
  if (sums != kernel::Type::f32 || std::min(rows, columns) <= side) return tile;
  double least = std::numeric_limits<double>::max();
  for (const tuning::TimedProductTile& timed : tuning::kProductTiles) {
    const ProductTile next = product_tile_of(timed);
    if (next.group_size() > limits.max_group || timed.elements_of_thread() > most_elements) continue;
    const int64_t tiles = kernel::parts(rows, next.rows()) * kernel::parts(columns, next.columns()) * products;
    const double time = time_of_tiles(tiles, timed.alone, timed.of_many, limits);
    if (time >= least) continue;
    least = time;
    tile = next;
  }
  return tile;
}

std::string emit_place_of_tile(Text& out, int rows, int columns, const std::string& row_count,
                               const std::string& column_count) {
  out.line("const lm_s64 across = (", column_count, " + ", columns - 1, ") / ", columns, ", down = (", row_count, " + ",
           rows - 1, ") / ", rows, ";");
  out.line("const lm_s64 first_column = LM_GROUP % across * ", columns, ", first_row = LM_GROUP / across % down * ", rows, ";");
  const auto inside = [&](const char* name, const std::string& count, const char* first, int extent) {
    out.line("const lm_ix ", name, " = (lm_ix)(", count, " - ", first, " < ", extent, " ? ", count, " - ", first, " : ", extent,
             ");");
  };
  inside("rows", row_count, "first_row", rows);
  inside("columns", column_count, "first_column", columns);
  return "(LM_GROUP / across / down)";
}

std::string ProductTileText::place(const std::string& row_count, const std::string& column_count) {
  const int rows = tile_.rows(), columns = tile_.columns();
  const auto shared = [&](const char* name, int extent, int per_thread) {
    out_.line("LM_SHARED ", c_type(tile_.sums), " ", name, "[", tile_.stages * tile_.depth * pitch(extent, per_thread),
              "] __attribute__((aligned(16)));");
  };
  shared("left", rows, tile_.per_thread_rows);
  shared("right", columns, tile_.per_thread_columns);
  out_.line("const int thread = LM_THREAD, tx = thread % ", tile_.threads_across, ", ty = thread / ", tile_.threads_across,
            ";");
  return emit_place_of_tile(out_, rows, columns, row_count, column_count);
}

// Where a stage begins in local memory, as " + PLACE".
std::string ProductTileText::at_stage(const char* stage, int extent, int per_thread) const {
  return tile_.stages == 1 ? "" : join(" + ", stage, " * ", tile_.depth * pitch(extent, per_thread));
}

// Loads of a tile are under way while the tile before is multiplied. With two tiles in local memory, a step writes one after it
// has read the other, and the barrier of the step before has ended the reads of that one.
void ProductTileText::sum(const std::string& term_count, const Factor& left, const Factor& right,
                          const std::function<void()>& advance) {
  const int sums = tile_.per_thread_rows * tile_.per_thread_columns;
  const auto items = [&](int extent) { return extent * tile_.depth / tile_.group_size(); };
  const auto load = [&](const char* name, int extent, const Factor& factor) {
    for_items(extent, factor.along_terms, [&] {
      const std::string element = factor.value();
      out_.line("next_", name, "[i] = ", element, ";");
    });
  };
  const auto store = [&](const char* name, int extent, int per_thread, const Factor& factor) {
    for_items(extent, factor.along_terms, [&] {
      out_.line(name, "[c * ", pitch(extent, per_thread), " + at", at_stage("stage", extent, per_thread), "] = next_", name,
                "[i];");
    });
  };
  out_.line(c_type(tile_.sums), " sum[", sums, "], next_left[", items(tile_.rows()), "], next_right[", items(tile_.columns()),
            "];");
  out_.line("LM_UNROLL for (int i = 0; i < ", sums, "; ++i) sum[i] = 0;");
  out_.open("for (lm_s64 done = 0; done < ", term_count, " + ", tile_.depth, "; done += ", tile_.depth, ")");
  if (tile_.stages == 2) out_.line("const int stage = (int)(done / ", tile_.depth, " % 2), before = 1 - stage;");
  out_.open("if (done < ", term_count, ")");
  out_.line("const lm_ix depth = (lm_ix)(", term_count, " - done < ", tile_.depth, " ? ", term_count, " - done : ", tile_.depth,
            ");");
  load("left", tile_.rows(), left);
  load("right", tile_.columns(), right);
  advance();
  out_.close();
  // In a tile of few rows, most threads have none.
  out_.open("if (done > 0", tile_.per_thread_rows == 1 ? " && ty < rows" : "", ")");
  multiply();
  out_.close();
  if (tile_.stages == 1) out_.line("LM_BARRIER;");
  store("left", tile_.rows(), tile_.per_thread_rows, left);
  store("right", tile_.columns(), tile_.per_thread_columns, right);
  out_.line("LM_BARRIER;");
  out_.close();
}

void ProductTileText::for_items(int extent, bool along_terms, const std::function<void()>& body) const {
  out_.open("LM_UNROLL for (int i = 0; i < ", extent * tile_.depth / tile_.group_size(), "; ++i)");
  out_.line("const int item = i * ", tile_.group_size(), " + thread;");
  const int fast = along_terms ? tile_.depth : extent;
  const std::string first = join("item % ", fast), second = join("item / ", fast);
  out_.line("const lm_ix at = ", along_terms ? second : first, ", c = ", along_terms ? first : second, ";");
  body();
  out_.close();
}

std::string ProductTileText::place_of(const char* i, const char* thread, int threads, int per_thread) {
  const int at_once = together(per_thread);
  if (at_once == 1) return join(i, " * ", threads, " + ", thread);
  return join(i, " / ", at_once, " * ", threads * at_once, " + ", thread, " * ", at_once, " + ", i, " % ", at_once);
}

// Unrolled whole, the compiler loads more terms in advance than the registers hold. A thread with one element waits for its
// loads, so that more of them are under way.
std::string ProductTileText::unrolling() const {
  const int elements = tile_.per_thread_rows * tile_.per_thread_columns;
  if (elements == 1) return "LM_UNROLL_BY_16";
  const bool is_large = elements > tuning::kMatmulPerThread * tuning::kMatmulPerThread || tile_.depth > tuning::kMatmulDepth;
  return is_large ? "LM_UNROLL_BY_4" : "LM_UNROLL";
}

void ProductTileText::multiply() {
  const int rows = tile_.per_thread_rows, columns = tile_.per_thread_columns;
  out_.open(unrolling(), " for (int c = 0; c < ", tile_.depth, "; ++c)");
  out_.line(c_type(tile_.sums), " l[", rows, "], r[", columns, "];");
  out_.line("LM_UNROLL for (int i = 0; i < ", rows, "; ++i) l[i] = left[c * ", pitch(tile_.rows(), rows), " + ",
            place_of("i", "ty", tile_.threads_down, rows), at_stage("before", tile_.rows(), rows), "];");
  out_.line("LM_UNROLL for (int j = 0; j < ", columns, "; ++j) r[j] = right[c * ", pitch(tile_.columns(), columns), " + ",
            place_of("j", "tx", tile_.threads_across, columns), at_stage("before", tile_.columns(), columns), "];");
  out_.open("LM_UNROLL for (int i = 0; i < ", rows, "; ++i)");
  out_.line("LM_UNROLL for (int j = 0; j < ", columns, "; ++j) sum[i * ", columns, " + j] = lm_fma_", suffix_of(tile_.sums),
            "(l[i], r[j], sum[i * ", columns, " + j]);");
  out_.close();
  out_.close();
}

void ProductTileText::store(const std::function<void(const std::string& sum)>& store) {
  const int rows = tile_.per_thread_rows, columns = tile_.per_thread_columns;
  out_.open("LM_UNROLL for (int i = 0; i < ", rows, "; ++i)");
  out_.open("LM_UNROLL for (int j = 0; j < ", columns, "; ++j)");
  out_.line("const lm_ix row = ", place_of("i", "ty", tile_.threads_down, rows),
            ", column = ", place_of("j", "tx", tile_.threads_across, columns), ";");
  out_.open("if (row < rows && column < columns)");
  store(join("sum[i * ", columns, " + j]"));
  out_.close();
  out_.close();
  out_.close();
}

std::string loaded(DataType dtype, kernel::Type sums, const std::string& raw) {
  const std::string value = from_storage(dtype, raw);
  return sums == kernel::Type::f64 && dtype != DataType::f64 ? cast_value(kernel::Type::f32, sums, value) : value;
}

std::string stored(DataType dtype, kernel::Type sums, const std::string& value) {
  return bits_of(dtype) == (sums == kernel::Type::f64 ? 64 : 32) ? value : to_storage(dtype, sums, value);
}

}  // namespace lamina::gpu
