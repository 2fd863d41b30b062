#include "backends/cpu/schedule/cost_model.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "backends/cpu/schedule/cost_parts.h"
#include "backends/cpu/schedule/loop_policy.h"
#include "backends/cpu/schedule/sharing.h"
#include "backends/cpu/schedule/streaming.h"
#include "backends/cpu/schedule/tiles.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

using kernel::Arg;
using kernel::Kernel;
using kernel::Node;
using kernel::NodeKind;

namespace {

constexpr double kNeededAhead = static_cast<double>(tuning::kNeededAhead);
// The bytes of a call over those of the last level from which on half of them, or all, are in memory again at the next call.
// The cache loses them little by little, from half of its size to three halves; with a few steps most numbers of rows share
// their code.
constexpr double kHalfIsLost = 0.75, kAllAreLost = 1.25;
// Cache lines that move between cores each time that threads wait for each other.
constexpr double kLinesOfWait = 8;
// Rows of a loop beyond which loading shared data once saves nothing: a core loads enough per cycle for these. Beside functions
// it always does.
constexpr double kMostSharing = 2;
// The fraction of a walk's start and end that remains if a row is one chunk, which takes no loop. Rows of a batch also take
// their vectors to memory and back.
constexpr double kWithoutLoop = 0.25;
// The fraction of a line's wait that remains if the next rows are prefetched: most of it in the last walk, together with its
// stores. A walk that computes a function, or in vectors of less than a line, takes long enough for both.
constexpr double kWaitForNext = 0.2;
// The fraction of a line's wait that each further row of a tile adds (short rows add less): memory is idle while these rows
// are walked again.
constexpr double kPerRow = 0.1;
// The same with vectors of less than a line, whose walks take longer.
constexpr double kPerNarrowRow = 0.4;
// With these, the fraction of the time of streaming that rows add which share a loop: they store parts of lines in turns.
constexpr double kInTurns = 0.15;
// What a line costs that such rows write in parts, in turns, in lines from the second level.
constexpr double kSplitInTurns = 5;

// Approximate number of operations on a vector of elements.
int operations_of(const Node& n) {
  switch (n.kind) {
    case NodeKind::moments:
    case NodeKind::center: return 3;
    case NodeKind::load:
    case NodeKind::load_entry:
    case NodeKind::store: return 0;
    case NodeKind::sum_entries: return 2 * std::max(static_cast<int>(n.value), 1);
    default: return 1;
  }
}

// A value per row: nanoseconds per vector of rows. The ends of reductions have their own cost.
double of_row_value(const Node& n, const Costs& costs) {
  switch (n.kind) {
    case NodeKind::moments:
    case NodeKind::segment_sum:
    case NodeKind::reduce: return 0;
    case NodeKind::load:
    case NodeKind::store: return costs.read[0];
    default: return cost_of(n) == kernel::CostClass::function ? costs.function : costs.operation;
  }
}

// The sum of these for all rows' own values. The others are computed once per call.
double of_row_values(const Kernel& kernel, const Costs& costs) {
  std::vector<bool> varies;
  double sum = 0;
  for (const Node& n : kernel.nodes) {
    const auto operands = std::span(n.operands).first(static_cast<size_t>(operand_count(n)));
    varies.push_back(
        reads_arg(n) || n.kind == NodeKind::index || n.kind == NodeKind::store ||
        std::any_of(operands.begin(), operands.end(), [&](kernel::NodeIndex i) { return varies[static_cast<size_t>(i)]; }));
    if (varies.back() && !n.per_element) sum += of_row_value(n, costs);
  }
  return sum;
}

// The fraction of reads that miss a cache if `bytes` bytes are read before a line is read again.
double missing(double bytes, double cache) { return std::clamp(2 * bytes / std::max(cache, 1.0) - 1.5, 0.0, 1.0); }

// Whether a walk needs several vectors for a line.
bool has_narrow_vectors(const Machine& machine) { return !tuning::is_line(vector_bits(machine)); }

// Whether a working set does not fit a cache. Calls walk over all of their memory in the same order, so a cache that is too
// small has evicted each line before its next use.
bool overflows(double bytes, double cache) { return bytes > tuning::kRoomOfCache * cache; }

// The cost of a line if each level caches the part that fits of `bytes` bytes between two reads.
double at_level(const std::array<double, 4>& costs, const std::array<double, 3>& caches, const std::array<double, 3>& bytes) {
  double cost = costs[0], beyond = 1;
  for (size_t level = 0; level < caches.size(); ++level) {
    beyond *= missing(bytes[level], caches[level]);
    cost += beyond * (costs[level + 1] - costs[level]);
  }
  return cost;
}

}  // namespace

// The cost of the walks over a row: the time of the walks, in which the shorter of arithmetic and access is mostly hidden;
// all arithmetic and access; and memory latency that is not hidden.
struct CostModel::Walking {
  double time = 0, busy = 0, exposed = 0;
};

// The sums over a walk of a row: nanoseconds, the number of prefetched lines, and the number of conversions per vector.
struct CostModel::Work {
  double access = 0, exposed = 0, asked = 0, conversions = 0;
};

CostModel::CostModel(const Kernel& kernel, const Machine& machine)
    : kernel_(kernel),
      machine_(machine),
      bytes_(footprint(kernel)),
      reduces_whole_(reduces_whole_rows(kernel)),
      of_row_values_(of_row_values(kernel, machine.costs)),
      first_(static_cast<double>(machine.caches.first)),
      second_(static_cast<double>(machine.caches.second)),
      last_level_(static_cast<double>(machine.caches.last)),
      rows_(static_cast<double>(kernel.row_count())),
      size_(static_cast<double>(kernel.row_size())),
      moved_(static_cast<double>(moved_bytes(kernel))) {
  // Schedules differ in what they keep: row_of decides whether the functions of earlier walks are kept. Second walks are rare.
  const auto is_function = [](const Node&, kernel::CostClass cost) { return cost == kernel::CostClass::function ? 1 : 0; };
  const kernel::LoopPlan plan(
      kernel, {.moments_by_block = true, .live_size = is_function, .live_space = static_cast<int64_t>(kernel.nodes.size())});
  for (int phase = 0; phase < plan.count(); ++phase) {
    Walk walk = walk_of(plan, phase);
    if (!walk.loads.empty() || walk.stores) walks_.push_back(std::move(walk));
  }
  Schedule plain;
  plain.vector_bits = vector_bits(machine);
  is_worth_threads_ = rows_ * along_row(plain) > 2 * machine.costs.wait;  // two threads would be faster
  if (is_worth_threads_) threads_ = std::max(machine.cores, 1);
}

CostModel::Walk CostModel::walk_of(const kernel::LoopPlan& plan, int phase) const {
  Walk walk;
  for (const kernel::NodeIndex i : plan.roots(phase)) {
    const Node& n = kernel_.node(i);
    walk.operations += operations_of(n);
    walk.reductions += n.kind == NodeKind::moments ? 2 : reduces_rows(n) ? 1 : 0;
    walk.sums += n.kind == NodeKind::column_sum ? 1 : 0;
    if (n.kind != NodeKind::store) continue;
    walk.stores = true;
    walk.gathers += is_apart(n) ? 1 : 0;
    if (bits_of(kernel_.arg(n.arg).dtype) < 32) ++walk.conversions;
  }
  for (const kernel::NodeIndex i : plan.nodes(phase)) {
    const Node& n = kernel_.node(i);
    if (cost_of(n) >= kernel::CostClass::function && n.kind != NodeKind::sum_entries) {
      ++walk.functions;
      walk.functions_of_before += plan.is_read_back(i, phase) ? 1 : 0;
      walk.functions_for_later += plan.live_since(i) == phase ? 1 : 0;
    } else {
      walk.operations += operations_of(n);
    }
    if (!reads_arg(n) || contains(walk.loads, n.arg) || !(varies_along_row(kernel_, kernel_.arg(n.arg)) || is_apart(n)))
      continue;
    walk.loads.push_back(n.arg);
    const auto reads = [&](const Walk& other) { return contains(other.loads, n.arg); };
    const bool is_kept = is_one_run(kernel_) && std::any_of(walks_.begin(), walks_.end(), reads);
    walk.gathers += is_apart(n) && !is_kept ? 1 : 0;
  }
  return walk;
}

// Whether the elements of a vector along the row are not contiguous in memory.
bool CostModel::is_apart(const Node& access) const {
  const bool is_by_index = access.kind == NodeKind::load_entry || access.kind == NodeKind::sum_entries;
  if (is_by_index && kernel_.node(access.operands[0]).per_element) return true;
  const int64_t step = kernel_.arg(access.arg).strides.back();
  return step != 0 && step != 1;
}

// Whether rows have separate elements in `arg`. With a single row this holds for all args.
bool CostModel::is_own(const Arg& arg) const {
  return !arg.column && varies_along_row(kernel_, arg) && (varies_by_row(kernel_, arg) || rows_ == 1);
}

// Counts the lines that `s` moves between the caches and the level of the tensors.
void CostModel::count_traffic(const Schedule& s, Row& row) const {
  const Costs& costs = machine_.costs;
  double held = moved_;
  for (size_t a = 0; a < kernel_.args.size(); ++a) {
    const Arg& arg = kernel_.args[a];
    if (!is_own(arg)) continue;
    int64_t elements = 1;  // of a row
    for (size_t d = static_cast<size_t>(kernel_.outer_rank); d < arg.strides.size(); ++d)
      elements *= arg.strides[d] == 0 ? 1 : kernel_.extents[d];
    const auto bytes = static_cast<double>(bytes_of(arg.dtype, elements));
    const bool is_streamed = contains(s.streamed, static_cast<int>(a));
    (arg.output ? is_streamed ? row.streamed : row.written : row.read) += bytes / kLineBytes;
    if (!is_streamed && splits_lines_in_turns(kernel_, arg, s)) row.split += bytes / kLineBytes;
    if (!is_streamed) continue;
    held -= bytes * rows_;
    row.sent += bytes / kLineBytes * stores_of_parts(kernel_, arg, s, machine_) * costs.write.back();
    if (has_narrow_vectors(machine_) && s.rows_together > 1) row.sent += kInTurns * bytes / kLineBytes * costs.stream;
  }
  const std::array<double, 2> own{first_ * threads_, second_ * threads_};
  row.level = static_cast<size_t>(std::count_if(own.begin(), own.end(), [&](double c) { return overflows(held, c); }));
  row.is_in_own_caches = row.level < own.size();
  if (is_worth_threads_) row.level = 2;  // another thread may have used them last
  const double part = held / std::max(last_level_, own.back());
  if (row.level == 2) row.from_memory = part < kHalfIsLost ? 0 : part < kAllAreLost ? 0.5 : 1;
  const auto of_line = [&](const std::array<double, 4>& of_level) {
    return of_level[row.level] + row.from_memory * (of_level[3] - of_level[row.level]);
  };
  row.received = row.read * of_line(costs.read);
  row.sent += row.written * of_line(costs.write) + row.streamed * costs.stream;
}

CostModel::Row CostModel::row_of(const Schedule& s) const {
  Row row;
  count_traffic(s, row);
  row.rows = s.transposed ? s.rows_per_group : s.rows_per_tile;
  const double part = s.split ? 1.0 / threads_ : 1;
  row.bytes = row.read * kLineBytes * part;
  row.shared_bytes = rows_ == 1 ? 0 : static_cast<double>(bytes_.shared) * part;
  const double space = static_cast<double>(live_space(s)), budget = space / row.rows,
               of_live_arg = size_ * (kernel_.computes_in_f64() ? 8 : 4);
  if (s.keeps_conversions && may_keep_conversions(kernel_, s, bytes_))
    row.live_args = static_cast<int>(std::min(budget, static_cast<double>(bytes_.converted)) / std::max(of_live_arg, 1.0));
  row.live_bytes = row.live_args * of_live_arg;
  double functions = 0;
  for (const Walk& walk : walks_) functions += walk.functions_for_later * of_live_arg;
  const double taken = functions * space / static_cast<double>(tuning::kLiveBytesOfFunctions);
  row.keeps_functions = functions > 0 && !s.split && row.live_bytes + taken <= budget;
  if (row.keeps_functions) row.live_bytes += functions;
  const double written_before = row.written * kLineBytes * (row.rows - 1) / 2;  // by the other rows of the tile, on average
  row.tile_bytes = row.rows * (row.bytes + row.live_bytes) + row.shared_bytes + written_before;
  row.prefetches = s.prefetches_rows && may_prefetch_rows(kernel_, s);
  row.first_holds_next = row.tile_bytes + row.rows * row.bytes <= tuning::kRoomOfCache * first_;
  if (row.prefetches && s.prefetches_to_first) row.next_in_first = (s.prefetches_late ? 0.5 : 1) * row.rows * row.bytes;
  row.next_in_first += static_cast<double>(s.prefetched_within_row.size()) * static_cast<double>(s.ahead_in_row);
  return row;
}

// The cost of a line that is read again after `bytes` bytes. The next rows also pass through the first level, and data from
// memory pass through the last one, and both evict lines.
double CostModel::read_again(double bytes, const Row& row) const {
  std::array<double, 4> costs = machine_.costs.read;
  costs[2] += row.from_memory * (costs[3] - costs[2]) / 2;
  return at_level(costs, {first_, second_, std::max(last_level_ / threads_, second_)},
                  {bytes + row.next_in_first, bytes, bytes});
}

// The cost of a line of live values that is written. If these exceed the first level, it is fetched before.
double CostModel::written_live(const Row& row) const {
  const Costs& costs = machine_.costs;
  return row.tile_bytes > first_ ? costs.read[1] + costs.write[1] : costs.write[0];
}

// The cost of a line that rows share. In strips only the first row of a tile reads it from a distant cache, unless the strip
// exceeds the first level or the next rows evict it.
double CostModel::shared_line(const Schedule& s, const Row& row, bool in_strips) const {
  if (!in_strips) return read_again(row.bytes + row.live_bytes + row.shared_bytes + row.written * kLineBytes, row);
  const bool is_pushed_out = row.prefetches && s.prefetches_to_first && !s.prefetches_late && !row.first_holds_next;
  const double part = static_cast<double>(s.strip) / size_;
  const bool is_near =
      !is_pushed_out && part * (row.shared_bytes + row.bytes + row.written * kLineBytes) <= tuning::kRoomOfCache * first_;
  return (read_again(row.tile_bytes, row) + (s.rows_per_tile - 1) * machine_.costs.read[is_near ? 0 : 1]) / s.rows_per_tile;
}

// The first walk that reads `arg`: the level of its lines depends on how far ahead they were prefetched. Memory is also idle
// after a tile of several rows, and several rows that are read together are as many streams.
void CostModel::read_first(const Walk& walk, int arg, const Schedule& s, const Row& row, Work& work) const {
  const auto bytes = static_cast<double>(bytes_of(kernel_.arg(arg).dtype, kernel_.row_size())), lines = bytes / kLineBytes;
  const bool within = contains(s.prefetched_within_row, arg);
  const double tiles_ahead = row.prefetches ? s.prefetches_late ? 0.5 : 1 : 0;
  // Prefetching only within rows does nothing during the tile's other walks.
  const double within_row = static_cast<double>(s.ahead_in_row) * kNeededAhead / std::max(kNeededAhead, row.rows * bytes);
  const double ahead = std::max(tiles_ahead * row.rows * bytes, within ? within_row : 0);
  const bool first_prefetches = row.prefetches && s.prefetches_late;  // as much as the last walk
  const double per_row = has_narrow_vectors(machine_) ? kPerNarrowRow : kPerRow;
  const double of_tile = first_prefetches ? 0 : per_row * (row.rows - 1) * std::min(1.0, bytes / kNeededAhead);
  const bool in_first = within || (row.prefetches && s.prefetches_to_first && row.first_holds_next);
  const double waiting = std::max(row.tile_bytes + tiles_ahead * row.rows * row.bytes, 2 * first_);
  // The hardware prefetcher loads one stream into the first level. Late prefetches of the kernel are there too.
  const double streams = lines > 0 ? row.read / lines : 1,
               near = s.prefetches_late && s.prefetches_to_first && row.prefetches ? 0.5 * (1 - 1 / streams) : 0;
  work.access +=
      lines * (in_first ? machine_.costs.read[0] : near * machine_.costs.read[0] + (1 - near) * read_again(waiting, row));
  const double late = std::max(0.0, 1 - ahead / kNeededAhead) + of_tile + (rows_together(walk, s) > 1 ? 0.5 : 0);
  const double of_next = within || walks_.size() < 2 || has_functions() || has_narrow_vectors(machine_) ? 0 : kWaitForNext;
  work.exposed += row.from_memory * lines * machine_.costs.miss_latency * (late + of_next + waiting_stores(s, row, within));
}

bool CostModel::has_functions() const {
  return std::any_of(walks_.begin(), walks_.end(), [](const Walk& walk) { return walk.functions > 0; });
}

// Stores through the caches wait for the lines that they write to. If the last walk prefetches the next rows as well, memory
// has most of its work then, and is idle during the walks before. Returns the fraction of a line's wait that this adds to each
// line read.
double CostModel::waiting_stores(const Schedule& s, const Row& row, bool within) const {
  if (within || !row.prefetches || walks_.size() < 2 || row.read == 0) return 0;
  const double before = has_functions()     ? 0
                        : s.prefetches_late ? 0.5
                                            : static_cast<double>(walks_.size() - 1) / tuning::kSharesOfNextRow;
  return (1 - std::min(before, 1.0)) * std::min(row.written / row.read, 1.0);
}

void CostModel::read_own(size_t place, int a, const Schedule& s, const Row& row, Work& work) const {
  const Costs& costs = machine_.costs;
  const Walk& walk = walks_[place];
  const Arg& arg = kernel_.arg(a);
  const auto bytes = static_cast<double>(bytes_of(arg.dtype, kernel_.row_size())), lines = bytes / kLineBytes;
  const auto is_to_convert = [&](const Arg& other) { return bits_of(other.dtype) < 32 && !other.output && is_own(other); };
  const auto converted_before = std::count_if(kernel_.args.begin(), kernel_.args.begin() + a, is_to_convert);
  const bool is_narrow = bits_of(arg.dtype) < 32, is_live = is_narrow && converted_before < row.live_args;
  const double live_lines = lines * 32 / bits_of(arg.dtype);
  const auto reads = [&](const Walk& other) { return contains(other.loads, a); };
  const bool is_first = std::none_of(walks_.begin(), walks_.begin() + static_cast<std::ptrdiff_t>(place), reads);
  if (is_live && !is_first) {
    work.access += live_lines * read_again(row.tile_bytes, row);
    return;
  }
  if (is_narrow) ++work.conversions;
  if (is_live) work.access += live_lines * written_live(row);
  if (std::fmod(bytes, kLineBytes) != 0) work.access += lines * costs.read[0];  // vectors cross line boundaries
  const bool within = contains(s.prefetched_within_row, a);
  work.asked += (within ? std::ceil(lines) + (std::fmod(bytes, kLineBytes) != 0 ? 1 : 0) : 0) +
                (row.prefetches ? lines / static_cast<double>(walks_.size()) : 0);
  if (is_first) return read_first(walk, a, s, row, work);
  // Data that another thread has walked are in that thread's caches.
  const double line = std::max(read_again(row.tile_bytes, row), s.split && reduces_whole_ ? costs.read[2] : 0);
  work.access += lines * line;
  const double afar = (line - costs.read[1]) / std::max(costs.read[3] - costs.read[1], costs.read[0]);
  // The strips of other rows evict the data that a strip prefetches.
  const bool is_prefetched = within && (s.strip == 0 || place + 1 < walks_.size());
  if (!is_prefetched) work.exposed += lines * costs.miss_latency * std::clamp(afar, 0.0, 1.0);
}

// The average number of rows per loop of the last walk: what these share is loaded once, and their column sums are also stored
// once.
double CostModel::rows_together(const Walk& walk, const Schedule& s) const {
  const int loops = (s.rows_per_tile + s.rows_together - 1) / s.rows_together;
  return &walk == &walks_.back() ? static_cast<double>(s.rows_per_tile) / loops : 1;
}

void CostModel::add_walk(size_t place, const Schedule& s, const Row& row, Walking& walking) const {
  const Costs& costs = machine_.costs;
  const Walk& walk = walks_[place];
  const bool is_last = place + 1 == walks_.size(), in_strips = s.strip > 0 && is_last;
  const double vectors = std::ceil(size_ / lane_count(kernel_, s.vector_bits));
  Work work;
  work.conversions = walk.conversions;
  for (const int a : walk.loads) {
    const Arg& arg = kernel_.arg(a);
    if (is_own(arg)) {
      read_own(place, a, s, row, work);
      continue;
    }
    work.access += static_cast<double>(bytes_of(arg.dtype, kernel_.row_size())) / kLineBytes * shared_line(s, row, in_strips) /
                   (walk.functions > 0 ? 1 : std::min(rows_together(walk, s), kMostSharing));
    if (bits_of(arg.dtype) < 32) ++work.conversions;
  }
  const double sum = shared_line(s, row, in_strips);  // is written to the level from which it was read
  work.access += walk.sums * vectors * (sum + std::max(costs.write[0], sum - costs.read[0])) / rows_together(walk, s);
  work.access += walk.gathers * vectors * of_gathered_vector(costs, lane_count(kernel_, s.vector_bits));
  double functions = walk.functions;
  if (row.keeps_functions) {
    functions -= walk.functions_of_before;
    work.access += walk.functions_of_before * vectors * read_again(row.tile_bytes, row);
    work.access += walk.functions_for_later * vectors * written_live(row);
  }
  const double of_vector = walk.operations * costs.operation + work.conversions * costs.conversion + functions * costs.function;
  double arithmetic = vectors * of_vector;
  if (is_last && s.follows_lines) arithmetic += 2 * (costs.branch_mispredict + of_vector);
  if (is_last && s.realigns) arithmetic += vectors * costs.operation;
  if (is_last) work.access += row.split * kSplitInTurns * costs.read[1];
  if (in_strips) arithmetic += costs.branch_mispredict * std::ceil(size_ / static_cast<double>(s.strip));
  const double access = work.access + work.asked * costs.read[0];
  walking.time += both(arithmetic, access);
  walking.busy += arithmetic + access;
  walking.exposed += work.exposed;
}

// Work on a row stops until a reduction is complete. If rows are one run each, and not lanes of a batch, a core cannot overlap
// the next row, so the wait is twice as long; but it can if a row is one chunk, which takes no loop and has fewer lanes to
// fold. The reduction of a chunk then waits for its functions, too.
double CostModel::ends_of_row(const Schedule& s) const {
  double reductions = 0;
  for (const Walk& walk : walks_) reductions += walk.reductions + (is_one_chunk() && walk.reductions > 0 ? walk.functions : 0);
  const double seen = batches_rows(kernel_) || !is_one_run(kernel_) ? 1 : is_one_chunk() ? 0.5 : 2;
  return machine_.costs.fold * reductions * seen_of_ends(kernel_, s.rows_per_tile) * seen;
}

// The values of rows of one element are values per row, which a loop over rows computes.
double CostModel::walk_count() const { return static_cast<double>(std::max<size_t>(walks_.size(), 1)); }

// The fraction of a row's lines that are in memory and that nothing asks for before the row's first walk. Memory then sends
// nothing while the row is walked again. A walk in whole lines is so short that this does not show.
double CostModel::asked_in_turn(const Schedule& s, const Row& row) const {
  if (walks_.size() < 2 || row.read == 0 || !has_narrow_vectors(machine_)) return 0;
  double lines = 0;
  for (size_t a = 0; a < kernel_.args.size(); ++a) {
    const Arg& arg = kernel_.args[a];
    const bool is_ahead = row.prefetches && !contains(s.prefetched_within_row, static_cast<int>(a));
    if (is_own(arg) && !arg.output && !is_ahead)
      lines += static_cast<double>(bytes_of(arg.dtype, kernel_.row_size())) / kLineBytes;
  }
  return row.from_memory * std::min(lines / row.read, 1.0);
}

double CostModel::along_row(const Schedule& s) const {
  const Row row = row_of(s);
  Walking first, later;
  for (size_t place = 0; place < walks_.size(); ++place) add_walk(place, s, row, place == 0 ? first : later);
  // Rows that a core's caches have are fast enough without prefetches. So are those in the last level, unless the first level
  // holds what is prefetched until its use.
  const bool rows_in_time = row.prefetches && (row.from_memory > 0 || (!row.is_in_own_caches && row.first_holds_next));
  const bool is_prefetched = rows_in_time || (!s.prefetched_within_row.empty() && row.from_memory > 0);
  const double seen = is_prefetched ? kSeenIfPrefetched : kSeen;
  const bool loops = !is_one_chunk() || batches_rows(kernel_);
  const double of_walks = walk_count() * machine_.costs.walk * (loops ? 1 : kWithoutLoop);
  const double between = ends_of_row(s) + of_walks + of_row_values_ / (batches_rows(kernel_) ? s.rows_per_tile : 1);
  const auto beside = [&](const Walking& walking, double transfer) {
    return std::max(walking.time + seen * transfer, transfer + seen * walking.busy);
  };
  for (Walking* const walking : {&first, &later}) {
    walking->time += between / 2;
    walking->busy += between / 2;
  }
  const Walking all = {first.time + later.time, first.busy + later.busy, first.exposed + later.exposed};
  const double in_turn = asked_in_turn(s, row);
  return (1 - in_turn) * beside(all, row.received + row.sent) +
         in_turn * (beside(first, row.received) + beside(later, row.sent)) + all.exposed;
}

double CostModel::nanoseconds_of_row(const Schedule& s) const { return s.transposed ? across_row(s) : along_row(s); }

double CostModel::microseconds(const Schedule& s) const {
  const RowSharing sharing = row_sharing(kernel_, machine_.caches);
  const bool is_split = s.split && threads_ > 1;
  const double wait = machine_.costs.wait;
  const double share = rows_ == 0 ? 0 : is_split ? sharing.share_of_parts(threads_) : sharing.share_of_whole_rows(threads_);
  double nanoseconds = nanoseconds_of_row(s) * rows_ * share + (threads_ > 1 ? wait : 0);
  if (is_split) {
    const auto steps = static_cast<double>(kernel_.phase_count() * (reduces_whole_ ? 1 : 2));
    nanoseconds += std::ceil(rows_ / static_cast<double>(sharing.rows_between_barriers(threads_))) * steps * wait;
    nanoseconds += rows_ * falsely_shared_lines() * wait / kLinesOfWait;
  }
  return nanoseconds / 1000;
}

// Lines that two threads write, for a row that threads share: if a thread's part ends within a line, both its ends are such
// lines.
double CostModel::falsely_shared_lines() const {
  double lines = 0;
  for (const Arg& arg : kernel_.args) {
    const bool fills_lines = bytes_of(arg.dtype, kernel_.row_size()) % tuning::kLine == 0;
    if (arg.output && is_own(arg) && !fills_lines) lines += 2;
  }
  return lines;
}

}  // namespace lamina::cpu
