#include "backends/cpu/schedule/schedule.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "interface/status.h"

namespace lamina::cpu {

namespace {

using kernel::Arg;
using kernel::Kernel;
using kernel::Node;
using kernel::NodeKind;

constexpr int64_t kLine = 64, kNonTemporalBytes = int64_t{4} << 20;

// Several short rows go through a phase before any goes through the next, which hides the latency of a reduction; measured:
// from 4 KiB a row on one stream of memory is faster, though with column sums two rows would fetch and store these half as
// often. More of them, and a power of two, where they are lanes of a vector.
int rows_per_tile(const Kernel& kernel) {
  constexpr int64_t kTileBytes = int64_t{8} << 10, kLongRowWithSums = 3584, kMostRows = 4, kMostRowsOfBatch = 8;
  if (kernel.phase_count() == 1) return kernel.has_column_sum() ? 2 : 1;
  const int64_t row_bytes = std::max<int64_t>(kernel.row_size() * 4, 1);
  if (batches_rows(kernel))
    return static_cast<int>(
        std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(kTileBytes / row_bytes, 4, kMostRowsOfBatch))));
  if (kernel.has_column_sum() && row_bytes > kLongRowWithSums) return 1;
  return static_cast<int>(std::clamp<int64_t>(kTileBytes / row_bytes, 1, kMostRows));
}

bool has_nibbles(const Kernel& kernel) {
  return std::any_of(kernel.args.begin(), kernel.args.end(), [](const Arg& arg) { return bits_of(arg.dtype) < 8; });
}

// A value per row costs nothing beside the row.
bool varies_along_row(const Kernel& kernel, const Arg& arg) {
  return std::any_of(arg.strides.begin() + kernel.outer_rank, arg.strides.end(), [](int64_t step) { return step != 0; });
}

int lane_count(const Kernel& kernel, int vector_bits) { return vector_bits / (kernel.computes_in_f64() ? 64 : 32); }

// ---- tiles and strips

bool computes_functions(const Kernel& kernel, int phases) {
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(),
                     [&](const Node& n) { return n.per_element && computes_function(n) && n.phase < phases; });
}

constexpr int64_t kShortestSplitRow = 16384;  // a thread's part of it is worth a wait for the others after each walk
constexpr int kStrip = 1024, kMostRowsOfStrip = 4;

// What rows have in common (gamma, beta, column sums) stays in the first-level cache for all rows of a tile if they take the
// last phase in strips of columns; the tile itself waits in the second-level cache, the next one beside it. A value along the
// row that is dear to compute is kept for that phase in the first-level cache, where a few long rows have no room.
bool can_take_strips(const Kernel& kernel) {
  const bool one_run = kernel.extents.size() == static_cast<size_t>(kernel.outer_rank) + 1;
  return one_run && kernel.row_size() * (kernel.computes_in_f64() ? 2 : 1) > 2 * kStrip &&
         !computes_functions(kernel, kernel.phase_count() - 1);
}

// Strips are measured to be worth their turns with column sums and where each row's walk would begin at another element,
bool sums_or_follows_lines(const Schedule& schedule, const Kernel& kernel, const Footprint& bytes) {
  return kernel.has_column_sum() || (schedule.follows_lines && bytes.shared > 0);
}

// and where what rows share overflows the first-level cache and is most of what a row's walk reads. (A stream of lines goes on
// from row to row.)
bool reads_shared_mostly(const Schedule& schedule, const Kernel& kernel, const Footprint& bytes, const Caches& caches) {
  const bool overflows = bytes.shared >= std::max(2 * bytes.read, caches.first);
  return overflows && !schedule.realigns && !computes_functions(kernel, kernel.phase_count());
}

void choose_strips(Schedule& schedule, const Kernel& kernel, const Footprint& bytes, const Caches& caches) {
  if (!can_take_strips(kernel)) return;
  if (!sums_or_follows_lines(schedule, kernel, bytes) && !reads_shared_mostly(schedule, kernel, bytes, caches)) return;
  constexpr int64_t kShare = 8;  // of the second-level cache, for a tile
  schedule.rows_per_tile =
      static_cast<int>(std::clamp<int64_t>(caches.second / kShare / std::max<int64_t>(bytes.read, 1), 1, kMostRowsOfStrip));
  if (schedule.rows_per_tile > 1) schedule.strip = kStrip;
}

// ---- where the rows to come wait

// What was asked for a tile ahead waits in the second-level cache until its turn. Measured: from so large a tile on asking
// nearer pays (docs/decisions/0007).
bool overflows_wait(int64_t tile_bytes, const Caches& caches) { return tile_bytes >= caches.second / 16; }

// Measured: of large tiles, several inputs gain by being fetched into the first-level cache, a single one mostly loses.
bool reads_several_streams(const Kernel& kernel) {
  return std::count_if(kernel.args.begin(), kernel.args.end(), [&](const Arg& arg) {
           return !arg.output && varies_by_row(kernel, arg) && varies_along_row(kernel, arg);
         }) > 1;
}

// ---- what the two orders of lanes cost

// Cycles, roughly, as measured with rows of 5 to 128 elements. For a vector's worth of elements: of neighbouring ones, of a
// transposition in registers, of a gather or scatter; of a transposition for a column sum. Then for a row: for each square of
// which it has columns, be they few or many; for lanes that are folded, of moments and of other reductions.
constexpr double kSideBySide = 2, kCrosswise = 12, kOneByOne = 24, kColumn = 5, kSquare = 6, kMoments = 37, kReduction = 20;

bool is_crosswise(int64_t step, int64_t other_step) { return step != 1 && other_step == 1; }

double access_cost(int64_t step, int64_t other_step) {
  return step == 1 ? kSideBySide : is_crosswise(step, other_step) ? kCrosswise : kOneByOne;
}

double vectors_of_row(const Kernel& kernel) { return static_cast<double>((kernel.row_size() + 15) / 16); }

// Of one row.
double cost_along_rows(const Kernel& kernel) {
  double cost = 0;
  for (const Arg& arg : kernel.args)
    cost += varies_along_row(kernel, arg) ? access_cost(arg.strides.back(), arg.strides.back()) : 0;
  cost *= vectors_of_row(kernel);
  for (const Node& n : kernel.nodes)
    cost += n.kind == NodeKind::moments ? kMoments : n.kind == NodeKind::reduce ? kReduction : 0;
  return cost;
}

double cost_across_rows(const Kernel& kernel, size_t lane_dim, int lanes) {
  double of_vector = 0, of_square = 0;
  for (const Arg& arg : kernel.args) {
    const int64_t step = arg.strides[lane_dim];
    if (arg.column) of_vector += kColumn;
    if (arg.column || step == 0 || !varies_along_row(kernel, arg)) continue;
    of_vector += access_cost(step, arg.strides.back());
    if (is_crosswise(step, arg.strides.back())) of_square += kSquare;
  }
  const int64_t rows = kernel.extents[lane_dim], groups = (rows + lanes - 1) / lanes;
  const double filled = static_cast<double>(rows) / static_cast<double>(groups * lanes);
  return (static_cast<double>(kernel.row_size()) / 16 * of_vector + vectors_of_row(kernel) * of_square) / filled;
}

bool suits_lanes(const Kernel& kernel, size_t dim) {
  constexpr int64_t kFewest = 4;
  const bool races = std::any_of(kernel.args.begin(), kernel.args.end(),
                                 [&](const Arg& arg) { return arg.output && !arg.column && arg.strides[dim] == 0; });
  return kernel.extents[dim] >= kFewest && !races;
}

bool goes_across_rows(const Kernel& kernel, size_t dim, int vector_bits) {
  return suits_lanes(kernel, dim) && cost_across_rows(kernel, dim, lane_count(kernel, vector_bits)) < cost_along_rows(kernel);
}

// Where the positions of a row lie apart, several vectors of rows make runs of several lines of memory. Not with squares or
// gathers, which are made for one vector.
int vectors_abreast(const Kernel& kernel, int lanes) {
  const size_t lane_dim = static_cast<size_t>(kernel.outer_rank) - 1;
  bool positions_lie_apart = false;
  for (const Arg& arg : kernel.args) {
    if (arg.column) return 1;
    if (!varies_along_row(kernel, arg) || arg.strides[lane_dim] == 0) continue;
    if (arg.strides[lane_dim] != 1) return 1;
    positions_lie_apart = positions_lie_apart || arg.strides.back() > lanes;
  }
  for (const int count : {4, 2}) {
    if (positions_lie_apart && kernel.extents[lane_dim] % (lanes * count) == 0) return count;
  }
  return 1;
}

bool may_be_transposed(const Kernel& kernel) {
  return kernel.outer_rank > 0 && !has_nibbles(kernel) && kernel.row_count() * kernel.row_size() > 0;
}

void move_last(Dims& dims, size_t from, size_t to) {
  const auto begin = dims.begin();
  std::rotate(begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(from) + 1,
              begin + static_cast<std::ptrdiff_t>(to) + 1);
}

// ---- streaming

bool is_contiguous(const Kernel& kernel, const Arg& arg) {
  int64_t expected = 1;
  for (size_t d = kernel.extents.size(); d-- > static_cast<size_t>(kernel.outer_rank);) {
    if (arg.strides[d] != expected) return false;
    expected *= kernel.extents[d];
  }
  return true;
}

bool fills_lines(const Arg& arg, size_t dim) { return bytes_of(arg.dtype, arg.strides[dim]) % kLine == 0; }

// The element outputs that can be written past the caches: contiguous along the inner dims, and with the outer strides of the
// first one, so that where a row of the first is at a multiple of 64 bytes, so are they, if their tensors begin alike. The
// first has the smallest elements.
std::vector<int> streamed_along_rows(const Kernel& kernel) {
  std::vector<int> args;
  for (size_t a = 0; a < kernel.args.size(); ++a) {
    const Arg& arg = kernel.args[a];
    if (arg.output && !arg.column && arg.strides.back() == 1 && is_contiguous(kernel, arg)) args.push_back(static_cast<int>(a));
  }
  const auto arg_of = [&](int a) -> const Arg& { return kernel.args[static_cast<size_t>(a)]; };
  std::stable_sort(args.begin(), args.end(), [&](int a, int b) { return bits_of(arg_of(a).dtype) < bits_of(arg_of(b).dtype); });
  std::erase_if(args, [&, first = args.empty() ? 0 : args.front()](int a) {
    return !std::equal(arg_of(a).strides.begin(), arg_of(a).strides.begin() + kernel.outer_rank, arg_of(first).strides.begin());
  });
  return args;
}

// Whole lines at a time, or what follows each other in one: neighbouring rows at one position, or, where a square is
// transposed, neighbouring positions of one row.
std::vector<int> streamed_across_rows(const Kernel& kernel, int lanes) {
  const size_t inner = kernel.extents.size() - 1, lane_dim = static_cast<size_t>(kernel.outer_rank) - 1;
  std::vector<int> args;
  for (size_t a = 0; a < kernel.args.size(); ++a) {
    const Arg& arg = kernel.args[a];
    if (!arg.output || arg.column) continue;
    const bool fills_line = bytes_of(arg.dtype, lanes) % kLine == 0;
    const bool across =
        arg.strides[lane_dim] == 1 && kernel.extents[lane_dim] % lanes == 0 && (fills_line || arg.strides[inner] == lanes);
    bool lines = across || (arg.strides[inner] == 1 && fills_line);
    for (size_t d = 0; d <= inner; ++d) {
      const bool within_line = d == (across ? lane_dim : inner) || (across && d == inner && !fills_line);
      lines = lines && (within_line || fills_lines(arg, d));
    }
    if (lines) args.push_back(static_cast<int>(a));
  }
  return args;
}

bool rows_share_lines(const Kernel& kernel, const std::vector<int>& streamed) {
  const Arg& arg = kernel.args[static_cast<size_t>(streamed.front())];
  for (size_t d = 0; d + 1 < arg.strides.size(); ++d) {
    if (!fills_lines(arg, d)) return false;
  }
  return true;
}

// Rows that end where the next one begins, of the type that is computed in: 16-bit elements, of which a vector fills half a
// line, gain nothing. Column sums are worth more in rows side by side.
bool leaves_as_stream(const Kernel& kernel, const Schedule& schedule) {
  const bool has_one_outer_dim = kernel.outer_rank == 1 && kernel.extents.size() == 2, wide = kernel.computes_in_f64();
  const bool fits_vector = kernel.row_size() <= lane_count(kernel, schedule.vector_bits);
  if (!has_one_outer_dim || schedule.vector_bits != 512 || !kernel.has_row_reduction() || kernel.has_column_sum() ||
      fits_vector)
    return false;
  const kernel::Type type = wide ? kernel::Type::f64 : kernel::Type::f32;
  const auto has_type = [&](const Node& n) { return n.kind != NodeKind::store || !n.per_element || n.type == type; };
  return std::all_of(kernel.nodes.begin(), kernel.nodes.end(), has_type) &&
         std::all_of(schedule.streamed.begin(), schedule.streamed.end(), [&](int a) {
           const Arg& arg = kernel.args[static_cast<size_t>(a)];
           return arg.dtype == (wide ? DataType::f64 : DataType::f32) && arg.strides.front() == kernel.row_size();
         });
}

// Too few, or none, to gain what the masked ends of a walk along lines cost.
bool has_few_lines(const Kernel& kernel, const std::vector<int>& streamed) {
  constexpr int64_t kFewestLines = 4;
  return bytes_of(kernel.args[static_cast<size_t>(streamed.front())].dtype, kernel.row_size()) < kFewestLines * kLine;
}

// Never with args of four bits: a walk that follows an output's lines begins at any element, theirs at an even one.
std::vector<int> choose_streamed(const Kernel& kernel, const Schedule& schedule) {
  if (has_nibbles(kernel)) return {};
  std::vector<int> args =
      schedule.transposed ? streamed_across_rows(kernel, schedule.rows_abreast) : streamed_along_rows(kernel);
  int64_t bytes = 0;
  for (const int a : args) bytes += bytes_of(kernel.args[static_cast<size_t>(a)].dtype, kernel.row_count() * kernel.row_size());
  return bytes >= kNonTemporalBytes ? args : std::vector<int>{};
}

}  // namespace

std::string describe(const Schedule& schedule) {
  std::string text =
      join(schedule.vector_bits, " bits, tile ", schedule.rows_per_tile, schedule.split ? ", split" : "", ", streamed");
  if (schedule.strip > 0) text += join(", strips of ", schedule.strip);
  if (!schedule.asks_first_cache) text += ", from second cache";
  if (schedule.asks_late) text += ", asks late";
  if (!schedule.keeps_conversions) text += ", converts again";
  for (const int arg : schedule.streamed) text += join(" a", arg);
  if (schedule.follows_lines) text += " along lines";
  if (schedule.realigns) text += " realigned";
  if (schedule.transposed) text += join(", transposed by ", schedule.rows_abreast, schedule.whole_groups ? ", whole" : "");
  for (const LaneStep step : schedule.lane_steps) text += step == LaneStep::none ? " 0" : step == LaneStep::one ? " 1" : " *";
  return text;
}

bool varies_by_row(const Kernel& kernel, const Arg& arg) {
  return std::any_of(arg.strides.begin(), arg.strides.begin() + kernel.outer_rank, [](int64_t step) { return step != 0; });
}

Footprint footprint(const Kernel& kernel) {
  const int64_t size = kernel.row_size(), compute_bytes = kernel.computes_in_f64() ? 8 : 4;
  Footprint bytes;
  for (const Arg& arg : kernel.args) {
    const bool by_row = varies_by_row(kernel, arg);
    if (arg.column)
      bytes.shared += size * compute_bytes;
    else if (arg.output || !varies_along_row(kernel, arg))
      continue;
    else if (!by_row)
      bytes.shared += bytes_of(arg.dtype, size);
    else
      bytes.read += bytes_of(arg.dtype, size);
    if (by_row && !arg.output && bits_of(arg.dtype) < 32) bytes.kept += size * compute_bytes;
  }
  return bytes;
}

bool computes_function(const Node& n) { return n.kind == NodeKind::map && kernel::is_function(n.op); }

kernel::Kernel with_rows_arranged(kernel::Kernel kernel, int vector_bits) {
  if (!may_be_transposed(kernel) || kernel.has_column_sum()) return kernel;
  const auto outer = static_cast<size_t>(kernel.outer_rank);
  size_t best = outer;
  for (size_t d = 0; d < outer; ++d) {
    if (!goes_across_rows(kernel, d, vector_bits)) continue;
    const int lanes = lane_count(kernel, vector_bits);
    if (best == outer || cost_across_rows(kernel, d, lanes) <= cost_across_rows(kernel, best, lanes)) best = d;
  }
  if (best == outer) return kernel;
  move_last(kernel.extents, best, outer - 1);
  for (Arg& arg : kernel.args) move_last(arg.strides, best, outer - 1);
  for (Node& node : kernel.nodes) {
    if (node.kind == NodeKind::index) move_last(node.coefficients, best, outer - 1);
  }
  return kernel;
}

Schedule choose_schedule(const Kernel& kernel, int vector_bits, bool past_caches, const Caches& caches) {
  Schedule schedule;
  schedule.vector_bits = vector_bits;
  schedule.rows_per_tile = rows_per_tile(kernel);
  const auto lane_dim = static_cast<size_t>(kernel.outer_rank) - 1;
  if (may_be_transposed(kernel) && goes_across_rows(kernel, lane_dim, vector_bits)) {
    schedule.transposed = true;
    schedule.rows_per_tile = 1;
    const bool half_fills = kernel.extents[lane_dim] % lane_count(kernel, vector_bits / 2) == 0 &&
                            kernel.extents[lane_dim] % lane_count(kernel, vector_bits) != 0;
    if (half_fills && vector_bits > 256) schedule.vector_bits = vector_bits / 2;
    const int lanes = lane_count(kernel, schedule.vector_bits);
    schedule.rows_abreast = lanes * vectors_abreast(kernel, lanes);
    schedule.whole_groups = kernel.extents[lane_dim] % schedule.rows_abreast == 0;
    for (const Arg& arg : kernel.args) {
      const int64_t step = arg.strides[lane_dim];
      schedule.lane_steps.push_back(step == 0 ? LaneStep::none : step == 1 ? LaneStep::one : LaneStep::other);
    }
  }
  if (past_caches) schedule.streamed = choose_streamed(kernel, schedule);
  schedule.follows_lines = !schedule.streamed.empty() && !schedule.transposed && !rows_share_lines(kernel, schedule.streamed);
  if (schedule.follows_lines && leaves_as_stream(kernel, schedule)) {
    schedule.follows_lines = false;
    schedule.realigns = true;
  }
  if (schedule.follows_lines && has_few_lines(kernel, schedule.streamed)) {
    schedule.follows_lines = false;
    schedule.streamed.clear();
  }
  const Footprint bytes = footprint(kernel);
  if (!schedule.transposed) {
    // Rows whose walks begin at different elements take no loop together; short rows of 16 bits gain by a tile all the same.
    if (schedule.follows_lines && kernel.has_column_sum() && kernel.has_row_reduction() && bytes.kept == 0)
      schedule.rows_per_tile = 1;
    choose_strips(schedule, kernel, bytes, caches);
  }
  const int64_t of_tile = schedule.rows_per_tile * (bytes.read + bytes.kept) + bytes.shared;
  schedule.keeps_conversions = of_tile <= caches.first;
  const bool fits_first = of_tile + schedule.rows_per_tile * bytes.read <= caches.first / 5 * 4;
  schedule.asks_late = !schedule.transposed && overflows_wait(schedule.rows_per_tile * bytes.read, caches);
  schedule.asks_first_cache = fits_first || (schedule.asks_late && reads_several_streams(kernel));
  return schedule;
}

bool batches_rows(const Kernel& kernel) {
  constexpr int64_t kLongestRow = 512;
  const bool one_run = kernel.extents.size() == static_cast<size_t>(kernel.outer_rank) + 1;
  const auto is_moments = [](const Node& n) { return n.kind == NodeKind::moments; };
  return one_run && kernel.row_size() <= kLongestRow && std::any_of(kernel.nodes.begin(), kernel.nodes.end(), is_moments);
}

Schedule split_schedule(Schedule schedule, const Kernel& kernel) {
  schedule.split = true;
  schedule.follows_lines = schedule.follows_lines || schedule.realigns;
  schedule.realigns = false;
  schedule.asks_late = true;  // a group of rows is more than a tile
  schedule.asks_first_cache = reads_several_streams(kernel);
  const bool in_strips = can_take_strips(kernel) && sums_or_follows_lines(schedule, kernel, footprint(kernel));
  schedule.rows_per_tile = in_strips ? kMostRowsOfStrip : 1;
  schedule.strip = in_strips ? kStrip : 0;
  return schedule;
}

// So many that each thread has some work between two barriers, if they fit the second-level caches of all threads, the rows to
// come beside them, with a quarter to spare. Measured: more of them gain nothing.
int64_t rows_of_group(const Footprint& bytes, int64_t row_size, int threads, const Caches& caches) {
  constexpr int64_t kElementsOfThread = int64_t{64} << 10;
  const int64_t room = caches.second / 4 * 3 * threads - bytes.shared;
  const int64_t fitting = room / (2 * std::max<int64_t>(bytes.read, 1));
  return std::clamp<int64_t>(std::min(fitting, kElementsOfThread * threads / row_size), 1, kColumnBlockRows);
}

bool overflows_cache(const Footprint& bytes, const Caches& caches) {
  return bytes.shared > bytes.read && 2 * bytes.read + bytes.shared > caches.second / 5 * 3;
}

bool reduces_whole_rows(const Kernel& kernel) {
  const auto is_known_late = [last = kernel.phase_count() - 1](const Node& n) {
    return (n.kind == NodeKind::reduce || n.kind == NodeKind::moments) && n.phase > last;
  };
  return kernel.row_size() < kShortestSplitRow && kernel.has_column_sum() &&
         std::none_of(kernel.nodes.begin(), kernel.nodes.end(), is_known_late);
}

bool can_split(const Kernel& kernel, const Caches& caches) {
  constexpr int64_t kShortestRow = 2048, kMostUnits = 32;
  const bool one_run = kernel.extents.size() == static_cast<size_t>(kernel.outer_rank) + 1;
  const int64_t units = kernel.has_column_sum() ? kernel.row_count() / kColumnBlockRows : kernel.row_count();
  const bool reduces = kernel.has_row_reduction() || kernel.has_column_sum();
  if (!one_run || !reduces || has_nibbles(kernel)) return false;
  if (kernel.row_size() < kShortestSplitRow)
    return units <= kMostUnits && kernel.row_size() >= kShortestRow && reduces_whole_rows(kernel);
  return units <= kMostUnits || overflows_cache(footprint(kernel), caches);
}

bool shares_bytes(const Arg& arg) {
  if (bits_of(arg.dtype) >= 8) return false;
  const auto is_odd = [](int64_t stride) { return stride % 2 != 0; };
  return arg.strides.back() != 1 || std::any_of(arg.strides.begin(), arg.strides.end() - 1, is_odd);
}

}  // namespace lamina::cpu
