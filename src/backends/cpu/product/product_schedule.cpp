#include "backends/cpu/product/product_schedule.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "backends/cpu/product/tuning.h"
#include "backends/cpu/program/cache_sets.h"
#include "backends/cpu/program/product_program.h"
#include "backends/cpu/program/tuning.h"
#include "backends/schedule/schedule_text.h"
#include "kernels/parts.h"

namespace lamina::cpu {

namespace {

using kernel::Contraction;
using kernel::parts;

using tuning::kLine;

int64_t bytes_of_sum(const Contraction& c) { return c.sum_type() == kernel::Type::f64 ? 8 : 4; }

// Of at most this many blocks, in whole units except for the last one.
int64_t block_of(int64_t extent, int64_t blocks, int64_t unit) { return parts(parts(extent, blocks), unit) * unit; }

// Likewise, of blocks with at most `most` entries.
int64_t even_block(int64_t extent, int64_t most, int64_t unit) {
  return block_of(extent, most >= extent ? 1 : parts(extent, std::max(most / unit * unit, unit)), unit);
}

std::vector<int> vectors_of(const Machine& machine) {
  std::vector<int> counts;
  for (int count = 1; count <= machine.instructions->registers / product_tuning::kShareOfRegisters; ++count)
    counts.push_back(count);
  return counts;
}

bool is_widest(const Machine& machine, const ProductSchedule& s) { return s.vectors == vectors_of(machine).back(); }

// Registers hold the sums, one row of a panel, and one element of src.
int most_rows(const Machine& machine, int vectors) { return (machine.instructions->registers - 1 - vectors) / vectors; }

std::vector<int> rows_of(const ProductContext& context, const ProductSchedule& s) {
  std::vector<int> counts;
  const int64_t most =
      std::min<int64_t>(most_rows(context.machine, s.vectors), std::max<int64_t>(context.contraction.matrices.m, 1));
  for (int count = static_cast<int>(most); count >= 1; count /= 2) counts.push_back(count);
  return counts;
}

// Register tiles read src in the type of the sums, or pairs that are words already.
bool converts_rows(const Contraction& c) {
  if (c.multiplies_pairs) return c.matrices.src.column_stride != 1 || c.matrices.k % 2 != 0;
  return bytes_of(c.matrices.src.dtype, 1) != bytes_of_sum(c);
}

// Whether copies of rows take their elements one by one, which is slow: weights are copied by vectors.
bool gathers_rows(const Contraction& c, const ProductSchedule& s) { return s.copies_rows && c.matrices.src.column_stride != 1; }

// Whether more rows of src begin at the same sets of the first-level cache than these have places.
bool rows_collide(const Contraction& c, const Machine& machine, const ProductSchedule& s) {
  const int64_t stride = bytes_of(c.matrices.src.dtype, c.matrices.src.row_stride);
  return stride != 0 && c.matrices.src.column_stride == 1 &&
         parts(s.rows, different_beginnings(stride)) > machine.caches.first / kBytesOfWay;
}

std::vector<bool> row_copies(const Contraction& c) {
  return converts_rows(c) ? candidates::only(true) : candidates::may_be(true);
}

// Register tiles convert the weights of few rows, which are used once or twice.
bool converts_in_tiles(const Contraction& c, const ProductSchedule& s) {
  return !c.multiplies_pairs && bytes_of(c.matrices.weights.dtype, 1) != bytes_of_sum(c) &&
         c.matrices.m <= s.rows * product_tuning::kTilesThatConvert;
}

bool is_along_k(const Contraction& c) { return c.matrices.weights.row_stride == 1 && c.matrices.weights.column_stride != 1; }

// Of a tile that transposes weights: registers hold the sums, a block of weights, and one element of src.
int64_t most_rows_along_k(const Contraction& c, const Machine& machine, const ProductSchedule& s) {
  return machine.instructions->registers - 2 - s.vector_bits / (8 * bytes_of_sum(c));
}

// The two rows of a pair of integers are joined by a copy, and the last entry of an odd k gets another one.
bool may_read_in_place(const Contraction& c, const Machine& machine, const ProductSchedule& s) {
  if (c.integers || (c.multiplies_pairs && c.matrices.k % 2 != 0)) return false;
  return c.matrices.weights.column_stride == 1 ||
         (is_along_k(c) && s.vectors == 1 && s.rows <= most_rows_along_k(c, machine, s));
}

// Rows of a panel that are contiguous in the matrix are copied one by one.
bool may_copy_next(const Contraction& c, const ProductSchedule& s) {
  return s.copies_panels && s.panels_first && !c.integers && c.matrices.weights.column_stride == 1;
}

bool may_split_panels(const ProductSchedule& s) { return s.vectors > 1 && !s.prefetches_next; }

// Of k, for which a tile's rows fit the first-level cache. The panels of weights stream through it.
int64_t entries_in_cache(const Contraction& c, const Machine& machine, const ProductSchedule& s) {
  return std::max<int64_t>(machine.caches.first / (s.rows * bytes_of_sum(c)), 1);
}

// Of k, for which a copied panel stays in the second-level cache.
int64_t entries_of_panel(const Contraction& c, const Machine& machine, const ProductSchedule& s) {
  const int64_t bytes = machine.caches.second / product_tuning::kShareOfSecondCache;
  return std::max<int64_t>(bytes / (panel_columns(c, s) * bytes_of_sum(c)), 1);
}

// Whether several tiles of rows read weights in place, each along the rows of the weights before the next one (decision 0074).
bool tiles_read_rows(const Contraction& c, const ProductSchedule& s) {
  return c.matrices.m > s.rows && !s.copies_panels && !s.panels_first;
}

// Whether rows of weights are adjacent in memory, so that short ones are few pages.
bool are_adjacent(const Contraction& c) { return c.matrices.weights.row_stride == c.matrices.n; }
bool has_short_rows(const Contraction& c, const ProductSchedule& s) {
  return are_adjacent(c) && bytes_of(c.matrices.weights.dtype, c.matrices.n) <= product_tuning::kShortRow &&
         !tuning::is_line(s.vector_bits);
}

// Whether the last-level cache may have the weights from one call to the next.
bool stay_in_cache(const Contraction& c, const Machine& machine) {
  const int64_t bytes = bytes_of(c.matrices.weights.dtype, c.matrices.k * c.matrices.n);
  return bytes * product_tuning::kShareOfWeights <= machine.caches.last;
}

// Of k, for weights that are read in place: one stream a row. Rows that are adjacent in memory are one stream, of which a half
// of the first-level cache is read before the next columns follow, or more where rows are short.
int64_t entries_of_streams(const Contraction& c, const Machine& machine, const ProductSchedule& s) {
  const bool reads_lines = s.prefetches && tuning::is_line(s.vector_bits) && !is_widest(machine, s);
  const int64_t streams = reads_lines             ? product_tuning::kStreamsOfLines
                          : tiles_read_rows(c, s) ? product_tuning::kStreamsOfTiles
                                                  : product_tuning::kStreams;
  if (tuning::is_line(s.vector_bits) && !s.prefetches && stay_in_cache(c, machine))
    return std::max(std::min(product_tuning::kRowsInCache, entries_of_panel(c, machine, s)), streams);
  if (!are_adjacent(c)) return streams;
  const int64_t block =
      has_short_rows(c, s) ? machine.caches.second / product_tuning::kShareOfSecondCache : machine.caches.first / 2;
  return std::max(block / bytes_of(c.matrices.weights.dtype, c.matrices.n), streams);
}

// Sums that are added to dst cannot be carried over through it.
std::vector<int64_t> k_blocks(const ProductContext& context, const ProductSchedule& s) {
  const Contraction& c = context.contraction;
  std::vector<int64_t> blocks{c.elements_of_k()};
  if (c.adds) return blocks;
  for (const int64_t most : {entries_in_cache(c, context.machine, s), entries_of_panel(c, context.machine, s),
                             entries_of_streams(c, context.machine, s), product_tuning::kStreams}) {
    if (most < blocks.back()) blocks.push_back(even_block(c.elements_of_k(), most, 1));
  }
  return blocks;
}

std::vector<int64_t> blocks_of(int64_t extent, int64_t unit) {
  std::vector<int64_t> blocks{extent};
  for (const int64_t most : {extent / 2, unit}) {
    if (const int64_t block = even_block(extent, most, unit); block < blocks.back()) blocks.push_back(block);
  }
  return blocks;
}

constexpr ScheduleField<ProductSchedule, ProductContext> kFields[] = {
#define LAMINA_FIELD(type, name, usual, ...) LAMINA_LEGAL_FIELD(ProductSchedule, ProductContext, type, name, __VA_ARGS__)
#include "backends/cpu/product/product_fields.def"
};

// The time for an entry of k and a row of dst, in multiplications of vectors, with panels of this width. The last panel is
// narrower; tiles with few sums wait for them, and those of one vector for their loads: one for each element of src.
double time_of_row(const Machine& machine, int vectors, int64_t dst_vectors) {
  const double rows = most_rows(machine, vectors);
  const auto time_of_panel = [&](int64_t width) {
    const auto vectors_of_row = static_cast<double>(width);
    return std::max({rows * vectors_of_row, rows + vectors_of_row, product_tuning::kSumsInFlight}) / rows;
  };
  const int64_t rest = dst_vectors % vectors;
  return static_cast<double>(dst_vectors / vectors) * time_of_panel(vectors) + (rest > 0 ? time_of_panel(rest) : 0);
}

// The loads for an entry of k and a row of dst, likewise.
double loads_of_row(const Machine& machine, int vectors, int64_t dst_vectors) {
  const double rows = most_rows(machine, vectors);
  const auto loads_of_panel = [&](int64_t width) { return (rows + static_cast<double>(width)) / rows; };
  const int64_t rest = dst_vectors % vectors;
  return static_cast<double>(dst_vectors / vectors) * loads_of_panel(vectors) + (rest > 0 ? loads_of_panel(rest) : 0);
}

// The least time, then the fewest loads, among tiles that are no wider than dst.
int vectors_of_tile(const Machine& machine, int64_t dst_vectors) {
  int best = 1;
  std::pair<double, double> least{std::numeric_limits<double>::infinity(), 0};
  for (const int vectors : vectors_of(machine)) {
    const std::pair cost(time_of_row(machine, vectors, dst_vectors), loads_of_row(machine, vectors, dst_vectors));
    if (vectors > dst_vectors || cost >= least) continue;
    best = vectors;
    least = cost;
  }
  return best;
}

int64_t vectors_of_dst(const Contraction& c, int vector_bits) {
  return parts(c.matrices.n, vector_bits / (8 * bytes_of_sum(c)));
}

// The number of its vectors, for the rows of the schedule.
int widest_tile(const Contraction& c, const Machine& machine, const ProductSchedule& s) {
  int widest = 1;
  for (const int vectors : vectors_of(machine)) {
    if (vectors <= vectors_of_dst(c, s.vector_bits) && most_rows(machine, vectors) >= s.rows) widest = vectors;
  }
  return widest;
}

// Whether hardware prefetchers follow one tile of widest panels as fast as they can: not from memory with vectors of a line.
bool is_read_in_order(const Contraction& c, const Machine& machine, const ProductSchedule& s) {
  return is_widest(machine, s) && (!tuning::is_line(s.vector_bits) || stay_in_cache(c, machine));
}

bool is_one_tile(const Contraction& c, const Machine& machine) {
  return c.matrices.m <= most_rows(machine, product_tuning::kLeastVectors);
}

// Each tile of rows reads a packed panel again, so two tiles are better than three.
void choose_tile(const Contraction& c, const Machine& machine, const ProductUse& use, ProductSchedule& s) {
  const bool are_two_tiles =
      use.packs_ahead && !is_one_tile(c, machine) && c.matrices.m <= 2 * most_rows(machine, product_tuning::kLeastVectors + 1);
  const auto rows_for = [&](int vectors) {
    return static_cast<int>(
        std::min<int64_t>(most_rows(machine, vectors), are_two_tiles ? parts(c.matrices.m, 2) : c.matrices.m));
  };
  s.rows = rows_for(product_tuning::kLeastVectors);
  s.vectors = use.vectors > 0                            ? use.vectors
              : is_one_tile(c, machine) || are_two_tiles ? widest_tile(c, machine, s)
                                                         : vectors_of_tile(machine, vectors_of_dst(c, s.vector_bits));
  s.rows = rows_for(s.vectors);
  s.copies_rows |= rows_collide(c, machine, s);
}

// The weights are read once, in the order in which they are in memory, as far as prefetchers follow.
void choose_streaming(const Contraction& c, const Machine& machine, const ProductUse& use, ProductSchedule& s) {
  s.vectors = static_cast<int>(std::min<int64_t>(product_tuning::kLeastVectors, vectors_of_dst(c, s.vector_bits)));
  s.rows = static_cast<int>(even_block(c.matrices.m, most_rows(machine, product_tuning::kLeastVectors), 1));
  s.row_block = c.matrices.m;
  s.copies_rows |= rows_collide(c, machine, s);
  s.copies_panels = is_along_k(c) || !may_read_in_place(c, machine, s);
  if (!s.copies_panels) s.vectors = widest_tile(c, machine, s);
  // Else a block of k is read along its rows, by wide panels as fast as whole rows.
  s.panels_first = s.copies_panels || (!is_one_tile(c, machine) && (use.makes_rows || c.adds));
  s.prefetches = s.copies_panels || (!has_short_rows(c, s) && (!is_one_tile(c, machine) || !is_read_in_order(c, machine, s)));
  const int64_t columns = panel_columns(c, s);
  s.column_block = s.copies_panels ? columns : block_of(c.matrices.n, use.threads, columns);
  const int64_t most = s.copies_panels ? entries_of_panel(c, machine, s) : entries_of_streams(c, machine, s);
  s.k_block = c.adds ? c.elements_of_k() : even_block(c.elements_of_k(), most, 1);
}

// Weights that are read in place with short blocks of k: whether loading and storing the sums of all rows for each block takes
// longer than a copy of the weights, which loads and stores each of the block's rows. A copy reads memory panel by panel, which
// is slow: weights larger than a part of the last-level cache, which is larger for more rows, are read along their rows. With
// vectors of a line, blocks of k are long enough for any size (decision 0078).
bool carries_cost_more(const Contraction& c, const Machine& machine, const ProductSchedule& s) {
  if (s.copies_panels || s.k_block >= c.elements_of_k()) return false;
  if (!tiles_read_rows(c, s) || tuning::is_line(s.vector_bits)) return c.matrices.m >= s.k_block;
  const int64_t bytes = bytes_of(c.matrices.weights.dtype, c.matrices.k * c.matrices.n);
  return machine.caches.last == 0 || bytes * product_tuning::kRowsInLastCache < c.matrices.m * machine.caches.last;
}

// One tile of rows whose weights are transposed in registers, where they are contiguous along k.
bool choose_transposing(const Contraction& c, const Machine& machine, int threads, ProductSchedule& s) {
  ProductSchedule one_tile = s;
  one_tile.vectors = 1;
  one_tile.rows = static_cast<int>(std::min<int64_t>(c.matrices.m, std::numeric_limits<int>::max()));
  if (!is_along_k(c) || !may_read_in_place(c, machine, one_tile)) return false;
  s = one_tile;
  s.row_block = c.matrices.m;
  s.copies_rows |= rows_collide(c, machine, s);
  s.copies_panels = false;
  s.prefetches = true;
  s.k_block = c.elements_of_k();
  s.column_block = block_of(c.matrices.n, threads * product_tuning::kUnitsPerThread, panel_columns(c, s));
  return true;
}

// Whether the larger factor is read as it is, and the results can be written by squares.
bool may_write_squares(const Contraction& c) {
  const kernel::MatmulStack& of = c.matrices;
  return of.m > of.n && !c.integers && !c.adds && of.src.column_stride == 1 && is_along_k(c) && of.dst.row_stride == 1 &&
         of.dst.column_stride != 1 && bytes_of_sum(c) == 4;
}

// A number of units that gives each thread as many, whose sums stay in the second-level cache.
int64_t units_of_squares(const Contraction& c, const Machine& machine, int threads) {
  const int64_t row_bytes = c.matrices.n * bytes_of_sum(c),
                in_cache = machine.caches.second / product_tuning::kShareForSums / row_bytes;
  const int64_t most = std::clamp<int64_t>(in_cache, 1, product_tuning::kRowsOfSquares);
  const int64_t units = parts(c.matrices.m, most);
  return c.matrices.products() < threads ? parts(units, threads) * threads : units;
}

// The time of a product in multiplications of vectors, without the copies of its factors.
double time_of_sums(const Contraction& c, const Machine& machine, int64_t dst_vectors) {
  const double time = time_of_row(machine, vectors_of_tile(machine, dst_vectors), dst_vectors);
  return static_cast<double>(c.matrices.m * c.elements_of_k()) * time;
}

// With panels of weights along k that are copied once.
double time_by_panels(const Contraction& c, const Machine& machine) {
  const int64_t dst_vectors = vectors_of_dst(c, vector_bits(machine));
  const int64_t copied = dst_vectors * c.elements_of_k();
  return time_of_sums(c, machine, dst_vectors) + product_tuning::kTimeOfSquares * static_cast<double>(copied);
}

// With units of all columns, which copy their weights each, and write their results by squares.
double time_by_squares(const Contraction& c, const Machine& machine, int threads) {
  const int64_t dst_vectors = vectors_of_dst(c, vector_bits(machine));
  const int64_t copied = dst_vectors * (c.elements_of_k() * units_of_squares(c, machine, threads) + c.matrices.m);
  return time_of_sums(c, machine, dst_vectors) + product_tuning::kTimeOfSquares * static_cast<double>(copied);
}

// The rows stay where they are, and each is used for all columns before the next ones.
bool choose_squares(const Contraction& c, const Machine& machine, int threads, ProductSchedule& s) {
  if (!may_write_squares(c)) return false;
  s.vectors = vectors_of_tile(machine, vectors_of_dst(c, s.vector_bits));
  s.rows = static_cast<int>(std::min<int64_t>(most_rows(machine, s.vectors), c.matrices.m));
  s.panels_first = false;
  s.prefetches = true;
  s.column_block = even_block(c.matrices.n, c.matrices.n, panel_columns(c, s));
  s.row_block = block_of(c.matrices.m, units_of_squares(c, machine, threads), s.rows);
  const int64_t panels_bytes = s.column_block * bytes_of_sum(c);
  const int64_t in_cache = machine.caches.second / product_tuning::kShareForPanels / panels_bytes;
  s.k_block = even_block(c.elements_of_k(), std::min(entries_in_cache(c, machine, s), std::max<int64_t>(in_cache, 1)), 1);
  return true;
}

// Whether a unit has all rows of its columns, so that weights are read, and copied, once: where units are cut in equal shares
// (ProductDispatch::may_cut_units). Packed weights that are the smaller factor are read again for each block of rows, which
// then stays in a cache.
bool units_have_all_rows(const Contraction& c, const ProductUse& use, const ProductSchedule& s) {
  if (c.matrices.products() > 1 || (use.makes_rows && use.part == 0)) return false;
  if (use.packs_ahead)
    return c.matrices.m <= c.matrices.n &&
           (!s.copies_panels || bytes_of(c.matrices.weights.dtype, c.entries()) == bytes_of_sum(c));
  return s.copies_panels && !s.copies_rows && c.matrices.m >= kRowsOfCutPanel;
}

// Threads share rows first, of which a unit has kRowsOfUnit at least, or columns first. Where units are cut in equal shares,
// one unit has all rows of its columns, so that weights are read, and copied, once.
void share(const Contraction& c, const ProductUse& use, bool rows_first, ProductSchedule& s) {
  const int threads = use.threads;
  if (threads == 1) return;
  const int64_t units = threads * product_tuning::kUnitsPerThread, products = c.matrices.products();
  const int64_t of_rows = products * (rows_first ? std::max<int64_t>(c.matrices.m / product_tuning::kRowsOfUnit, 1) : 1);
  s.column_block = block_of(c.matrices.n, parts(units, of_rows), panel_columns(c, s));
  if (!rows_first && units_have_all_rows(c, use, s)) return;
  const int64_t of_columns = products * parts(c.matrices.n, s.column_block);
  s.row_block = block_of(c.matrices.m, parts(units, of_columns), s.rows);
}

// The rows of a unit stay in `bytes` of a cache while all panels are multiplied by them.
void keep_rows_in(int64_t bytes, const Contraction& c, int64_t row_bytes, ProductSchedule& s) {
  s.row_block = std::min(s.row_block, even_block(c.matrices.m, bytes / row_bytes, s.rows));
}
void keep_rows(const Contraction& c, const Machine& machine, int64_t row_bytes, ProductSchedule& s) {
  keep_rows_in(machine.caches.second / product_tuning::kShareOfSecondCache, c, row_bytes, s);
}

// With a short k, a panel has little work for a row: the rows of src and dst would be waited for. Packed weights allow few rows
// at a time, because their panels are not copied for them again.
bool keeps_rows(const Contraction& c, const Machine& machine, const ProductUse& use) {
  const int64_t row_bytes = c.elements_of_k() * bytes_of_sum(c);
  return use.packs_ahead &&
         row_bytes * product_tuning::kLeastRowsKept <= machine.caches.second / product_tuning::kShareOfSecondCache;
}

// A panel of weights stays in the second-level cache while all rows of a unit are multiplied by it, a tile of rows in the
// first; or some rows stay for all panels.
void choose_blocks(const Contraction& c, const Machine& machine, const ProductUse& use, ProductSchedule& s) {
  s.prefetches = true;
  s.k_block = c.adds ? c.elements_of_k() : even_block(c.elements_of_k(), entries_in_cache(c, machine, s), 1);
  s.column_block = c.matrices.n;
  s.row_block = c.matrices.m;
  const bool keeps = keeps_rows(c, machine, use);
  share(c, use, (keeps && c.matrices.m > c.matrices.n) || gathers_rows(c, s), s);
  const int64_t row_bytes = c.elements_of_k() * bytes_of_sum(c);
  if (keeps) return keep_rows(c, machine, row_bytes, s);
  if (machine.caches.last == 0) return;
  const int64_t in_cache = machine.caches.last / product_tuning::kShareOfLastCache;
  keep_rows_in(std::max(in_cache, product_tuning::kRowsOfUnit * row_bytes), c, row_bytes, s);
}

// For windows of several taps, most of a row's entries are also those of its neighbours.
void choose_made_rows(const Contraction& c, const Machine& machine, const ProductUse& use, ProductSchedule& s) {
  share(c, use, true, s);  // rows that are made cost too much for few columns
  s.copies_rows = use.part == 0;
  if (s.copies_rows) return keep_rows(c, machine, s.k_block * bytes_of_sum(c), s);
  s.k_block = even_block(c.elements_of_k() / use.part, std::max<int64_t>(s.k_block / use.part, 1), 1) * use.part;
  keep_rows(c, machine, 2 * use.part * bytes_of_sum(c) + s.k_block / use.part * int64_t{sizeof(void*)}, s);
}

// Of one tile of rows, which reads packed weights once: whether it reads several streams of addresses. A prefetcher starts
// again at each page of a stream. Vectors that are whole lines are read as fast from one stream (decision 0073).
bool reads_streams(const ProductUse& use, const ProductSchedule& s) {
  return use.packs_ahead && !use.makes_rows && s.vectors > 1 && !tuning::is_line(s.vector_bits);
}

// While a panel of packed weights is used, the next one is read into the second-level cache, which has space for both. A tile
// prefetches a line for each entry of k, so the tiles of a unit prefetch a panel if they are as many as the lines of its rows.
void choose_prefetches(const Contraction& c, const Machine& machine, const ProductUse& use, ProductSchedule& s) {
  const int64_t element_bytes = bytes_of(c.matrices.weights.dtype, c.entries());
  const bool is_converted = s.copies_panels && element_bytes != bytes_of_sum(c);
  const int64_t tiles = parts(std::min(s.row_block, c.matrices.m), s.rows);
  s.prefetches_next = use.packs_ahead && !is_converted && tiles >= parts(panel_columns(c, s) * element_bytes, kLine);
  if (!s.prefetches_next || c.adds) return;
  const int64_t most = std::min(s.k_block, entries_of_panel(c, machine, s));
  const int64_t part = use.makes_rows ? std::max<int64_t>(use.part, 1) : 1;
  s.k_block = even_block(c.elements_of_k() / part, std::max<int64_t>(most / part, 1), 1) * part;
}

// While a panel is used, the next one is copied: the second-level cache has space for both. Conversions would take too much of
// the time of multiplications.
void choose_copies(const Contraction& c, const Machine& machine, ProductSchedule& s) {
  s.copies_next = c.matrices.m > s.rows && c.matrices.m <= product_tuning::kMostRowsCopyNext &&
                  (c.multiplies_pairs || bytes_of(c.matrices.weights.dtype, 1) == bytes_of_sum(c));
  if (!s.copies_next || c.adds) return;
  s.k_block = even_block(c.elements_of_k(), std::min(s.k_block, entries_of_panel(c, machine, s)), 1);
}

}  // namespace

std::string describe(const ProductSchedule& schedule) { return schedule_text::describe(schedule); }

int64_t lanes_of(const Machine& machine, DataType dtype) { return vector_bits(machine) / bits_of(dtype); }

bool is_worth_threads(double multiply_adds, const Machine& machine) {
  return multiply_adds * machine.costs.operation > 2 * machine.costs.wait;
}

bool multiplies_pairs(DataType src, DataType weights, const Machine& machine) {
  return src == DataType::bf16 && weights == DataType::bf16 && machine.instructions.multiplies_bf16_pairs;
}

int64_t panel_columns(const Contraction& contraction, const ProductSchedule& schedule) {
  return schedule.vectors * schedule.vector_bits / (8 * bytes_of_sum(contraction));
}

LegalProduct<ProductSchedule, ProductContext> legal_product_schedules(const Contraction& contraction, const Machine& machine) {
  return {{contraction, machine}, kFields};
}

bool is_better_transposed(const Contraction& c, const Machine& machine, const ProductUse& use) {
  if (c.integers) return false;
  if (c.matrices.n < std::min(lanes_of(machine, kernel::data_type_of(c.sum_type())), c.matrices.m)) return true;
  const Contraction swapped = kernel::transposed(c);
  return !use.packs_ahead && !use.makes_rows && c.matrices.m > product_tuning::kFewRows && may_write_squares(swapped) &&
         time_by_squares(swapped, machine, use.threads) < time_by_panels(c, machine);
}

ProductSchedule choose_product_schedule(const Contraction& c, const Machine& machine, const ProductUse& use) {
  ProductSchedule s;
  s.vector_bits = vector_bits(machine);
  s.copies_rows = converts_rows(c);
  if (!use.packs_ahead && !use.makes_rows && choose_transposing(c, machine, use.threads, s)) return s;
  if (!use.packs_ahead && c.matrices.m <= product_tuning::kFewRows) {
    ProductSchedule streams = s;
    choose_streaming(c, machine, use, streams);
    if (use.makes_rows) choose_made_rows(c, machine, use, streams);
    if (!carries_cost_more(c, machine, streams)) return streams;
  }
  if (!use.packs_ahead && !use.makes_rows && choose_squares(c, machine, use.threads, s)) return s;
  choose_tile(c, machine, use, s);
  s.copies_panels = !(use.packs_ahead && (converts_in_tiles(c, s) || use.splits_panels));  // split panels are not copied
  choose_blocks(c, machine, use, s);
  if (use.makes_rows) choose_made_rows(c, machine, use, s);
  s.splits_panels = use.vectors > 0 ? use.splits_panels : is_one_tile(c, machine) && reads_streams(use, s);
  if (!s.splits_panels) choose_prefetches(c, machine, use, s);
  s.prefetches_to_first = use.packs_ahead && s.rows > product_tuning::kRowsThatWaitForMemory;
  if (!use.packs_ahead && !use.makes_rows && may_copy_next(c, s)) choose_copies(c, machine, s);
  return s;
}

}  // namespace lamina::cpu
