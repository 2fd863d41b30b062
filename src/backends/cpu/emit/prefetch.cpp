// The prefetches of a kernel: the next rows, and the ends of rows that it writes.
#include "backends/cpu/emit/prefetch.h"

#include <algorithm>

#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;

namespace {

using tuning::kLine;

constexpr int kFirstLevel = 3, kSecondLevel = 2;  // LLVM's locality levels

}  // namespace

void Prefetch::hint(llvm::Value* address, int level, bool writes) {
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {address->getType()},
                     {address, b_.getInt32(writes), b_.getInt32(static_cast<uint32_t>(level)), b_.getInt32(1)});
}

// The lines at the ends of a streamed row are shared with its neighbours and written through the caches. A store that waits
// for its line delays the streaming stores after it.
void Prefetch::prefetch_ends(const Row& row) {
  if (!schedule_.follows_lines) return;
  // Without a reduction, a row's length is known only at run time.
  const bool has_length = kernel_.has_row_reduction() || kernel_.has_column_sum();
  for (const int a : schedule_.streamed) {
    llvm::Value* const row_begin = row.pointers[static_cast<size_t>(a)];
    const int64_t bytes = bytes_of(kernel_.args[static_cast<size_t>(a)].dtype, 1);
    llvm::Value* const first = has_length ? i64(0) : b_.CreateMul(e_.inner_begin, i64(bytes));
    llvm::Value* const past = has_length ? i64(bytes * kernel_.row_size()) : b_.CreateMul(e_.inner_end, i64(bytes));
    for (llvm::Value* const at : {first, b_.CreateSub(past, i64(1))})
      hint(b_.CreateGEP(b_.getInt8Ty(), row_begin, at), kFirstLevel, true);
  }
}

// The prefetches of the walk of `phase` for a later row with elements of `element_bytes`. All walks over a row share this
// work in the row's order, so that memory is always busy: each earlier walk prefetches a quarter, but at least one byte per
// element, and the last one, which also writes, prefetches the rest. For a large tile, that is too far ahead: there the last
// walk prefetches the first half of the next rows, and the first walk prefetches the second half of its own. If a
// transcendental function makes a walk long, the last walk has time for everything.
Prefetch::Ahead Prefetch::ahead_of(int64_t element_bytes, int phase) const {
  const std::vector<int> walks = plan_.usual_walks();
  const auto found = std::find(walks.begin(), walks.end(), phase);
  if (walks.size() < 2 || found == walks.end()) return {};
  const bool is_last = phase == walks.back();
  if (std::any_of(walks.begin(), walks.end(), [&](int p) { return plan_.has_function(plan_.nodes(p)); })) {
    return {.pace = is_last ? element_bytes : 0};
  }
  if (schedule_.prefetches_late) {
    const int64_t half = element_bytes / 2, first_half = element_bytes - half;
    if (is_last) return {.pace = first_half};
    return found == walks.begin() ? Ahead{half, first_half, true} : Ahead{};
  }
  const int64_t share = std::max<int64_t>(element_bytes / tuning::kSharesOfNextRow, 1),
                before = std::min((found - walks.begin()) * share, element_bytes);
  return {.pace = is_last ? element_bytes - before : std::min(share, element_bytes - before), .before = before};
}

// The distance in bytes from a row to the first prefetch of its walk, minus `pace` bytes for each element before the walk's
// start. A thread's part of a split row starts further on.
llvm::Value* Prefetch::bytes_ahead(int64_t row_bytes, int64_t element_bytes, const Ahead& asked) {
  if (!schedule_.split)
    return i64((asked.of_own_row ? 0 : row_bytes * schedule_.rows_per_tile) +
               asked.before * kernel_.row_size() / kLine * kLine);
  llvm::Value* const part = b_.CreateMul(b_.CreateSub(e_.inner_end, e_.inner_begin), i64(asked.before));
  llvm::Value* const begin =
      b_.CreateAdd(b_.CreateMul(e_.inner_begin, i64(element_bytes - asked.pace)), b_.CreateAnd(part, i64(-kLine)));
  return asked.of_own_row ? begin : b_.CreateAdd(b_.CreateMul(e_.rows_ahead, i64(row_bytes)), begin);
}

// Prefetches the data of later walks. The next rows can be fetched while the phases of the current ones are computed. A row
// too long for that is read from memory in every phase, and the hardware prefetcher stops at each page. Prefetches are only
// hints: the address may be invalid if rows are not dense, or past the end.
void Prefetch::prefetch_along(const std::vector<Row*>& rows, const NodeList& nodes, const std::vector<Lanes>& chunk,
                              size_t first, size_t count, int phase) {
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& n = kernel_.nodes[i];
    if (n.kind != NodeKind::load) continue;
    const kernel::Arg& arg = kernel_.arg(n.arg);
    const bool varies = schedule_.prefetches_rows && varies_by_row(kernel_, arg);
    const bool is_read = std::find(nodes.begin(), nodes.end(), static_cast<NodeIndex>(i)) != nodes.end();
    const int64_t row_bytes = bytes_of(arg.dtype, kernel_.row_size());
    const auto& within = schedule_.prefetched_within_row;
    const bool is_long = std::find(within.begin(), within.end(), n.arg) != within.end();
    if (arg.strides.back() != 1 || bits_of(arg.dtype) < 8 || e_.inner_rank() > 1 || !(is_long ? is_read : varies)) continue;
    const int64_t element_bytes = bytes_of(arg.dtype, 1);
    const Ahead asked = ahead_of(element_bytes, phase);
    const int64_t pace = is_long ? element_bytes : asked.pace;
    llvm::Value* const ahead = is_long ? i64(schedule_.ahead_in_row) : bytes_ahead(row_bytes, element_bytes, asked);
    const int level = !is_long && schedule_.prefetches_to_first ? kFirstLevel : kSecondLevel;
    // Only lines that start within the part of these vectors.
    const int64_t begin = (static_cast<int64_t>(first) * e_.width * pace + kLine - 1) / kLine * kLine;
    const int64_t end = static_cast<int64_t>(first + count) * e_.width * pace;
    for (const Row* row : rows) {
      llvm::Value* const here =
          b_.CreateGEP(b_.getInt8Ty(), row->segment[static_cast<size_t>(n.arg)], b_.CreateMul(chunk.front().offset, i64(pace)));
      for (int64_t at = begin; at < end; at += kLine) {
        hint(b_.CreateGEP(b_.getInt8Ty(), here, b_.CreateAdd(ahead, i64(at))), level);
      }
    }
  }
}

// Each earlier walk over a row prefetches a quarter and the last one the rest, as along rows.
Prefetch::Share Prefetch::share_of(int64_t walk, int64_t walks) {
  const int64_t whole = std::max(walks, tuning::kSharesOfNextRow);
  return {walk, walk + 1 == walks ? whole : walk + 1, whole};
}

// The same across rows: each walk over a group prefetches its share of a later group into the second-level cache, because
// the first has space for only one group. A share is one part of contiguous data, or a part of each piece.
void Prefetch::prefetch_across(const Row& group, const std::vector<Lanes>& positions, size_t run, int phase) {
  const std::vector<int> walks = plan_.usual_walks();
  const auto found = std::find(walks.begin(), walks.end(), phase);
  if (group.frame.group_ahead.empty() || e_.inner_rank() > 1 || walks.size() < 2 || found == walks.end()) return;
  const Share share = share_of(static_cast<int64_t>(found - walks.begin()), static_cast<int64_t>(walks.size()));
  std::vector<bool> done(kernel_.args.size(), false);
  for (const Node& n : kernel_.nodes) {
    if (n.kind != NodeKind::load || !n.per_element || done[static_cast<size_t>(n.arg)]) continue;
    done[static_cast<size_t>(n.arg)] = true;
    const kernel::Arg& arg = kernel_.arg(n.arg);
    if (!varies_by_row(kernel_, arg) || arg.strides.back() == 0 ||
        bytes_of(arg.dtype, kernel_.row_size() * e_.group) > tuning::kMaxGroupAhead)
      continue;
    if (transpose_.transposes(n.arg))
      prefetch_rows(group, n.arg, positions, share.of(e_.group));
    else if (schedule_.lane_steps[static_cast<size_t>(n.arg)] == LaneStep::one)
      prefetch_positions(group, n.arg, positions, run, share);
  }
}

// Prefetches some rows of a later group, for an arg whose elements are contiguous along a row.
void Prefetch::prefetch_rows(const Row& group, int arg, const std::vector<Lanes>& positions, const Range& rows) {
  llvm::Value* const along = b_.CreateMul(positions.front().offset, i64(bytes_of(kernel_.arg(arg).dtype, 1)));
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    hint(b_.CreateGEP(
             b_.getInt8Ty(),
             transpose_.row_address(group.frame, group.frame.group_ahead[static_cast<size_t>(arg)], arg, static_cast<int>(r)),
             along),
         kSecondLevel);
  }
}

void Prefetch::prefetch_positions(const Row& group, int arg, const std::vector<Lanes>& positions, size_t run,
                                  const Share& share) {
  const kernel::Arg& a = kernel_.arg(arg);
  llvm::Value* const next = group.frame.group_ahead[static_cast<size_t>(arg)];
  const int64_t bytes = bytes_of(a.dtype, e_.group), pitch = bytes_of(a.dtype, a.strides.back());
  const auto lines = [&](llvm::Value* first, const Range& bytes_from) {
    for (int64_t at = bytes_from.begin; at < bytes_from.end; at += kLine)
      hint(b_.CreateGEP(b_.getInt8Ty(), first, i64(at)), kSecondLevel);
  };
  if (pitch != bytes) {
    const Range part = share.of((bytes + kLine - 1) / kLine);
    for (const Lanes& at : positions)
      lines(b_.CreateGEP(b_.getInt8Ty(), next, b_.CreateMul(at.offset, i64(pitch))), {part.begin * kLine, part.end * kLine});
    return;
  }
  const int64_t begin = share.of(kernel_.row_size() * bytes).begin / kLine * kLine;
  for (size_t first = 0; first < positions.size(); first += run) {
    const auto count = static_cast<int64_t>(std::min(run, positions.size() - first));
    llvm::Value* const offset =
        b_.CreateUDiv(b_.CreateMul(positions[first].offset, i64(bytes * (share.end - share.begin))), i64(share.whole));
    lines(b_.CreateGEP(b_.getInt8Ty(), next, b_.CreateAdd(offset, i64(begin))),
          {0, count * bytes * (share.end - share.begin) / share.whole});
  }
}

}  // namespace lamina::cpu
