// What a kernel asks memory for before it reads it: the rows to come, and the ends of rows that it writes.
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

constexpr int kFirstLevel = 3, kSecondLevel = 2;  // as LLVM counts them

}  // namespace

void Prefetch::hint(llvm::Value* address, int level, bool writes) {
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {address->getType()},
                     {address, b_.getInt32(writes), b_.getInt32(static_cast<uint32_t>(level)), b_.getInt32(1)});
}

// The lines at the ends of a streamed row are shared with its neighbours and written through the caches. A store that waits for
// its line holds up the streaming stores behind it.
void Prefetch::prefetch_ends(const Row& row) {
  if (!schedule_.follows_lines) return;
  // Without a reduction a row's length is known at run time only.
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

// What the walk of `phase` asks for of a row to come, `element_bytes` wide. All walks over a row share it, in the row's order,
// so that memory never rests: the earlier ones ask for a quarter each, but for a byte an element at least, and the last, which
// also writes, for what is left. For a large tile that is too far ahead: there the last walk asks for the first half of the
// next rows, and the first walk for the second half of its own. Where a transcendental function makes a walk long the last has
// time for all.
Prefetch::Ahead Prefetch::ahead_of(int64_t element_bytes, int phase) const {
  const std::vector<int> walks = phases_.usual_walks();
  const auto found = std::find(walks.begin(), walks.end(), phase);
  if (walks.size() < 2 || found == walks.end()) return {};
  const bool is_last = phase == walks.back();
  if (std::any_of(walks.begin(), walks.end(),
                  [&](int p) { return phases_.has_function(phases_.nodes_for(phases_.roots_of(p), p)); })) {
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

// Bytes from a row to what its walk asks for first, less `pace` bytes for each element before the walk's own. A thread's part
// of a split row begins further on.
llvm::Value* Prefetch::bytes_ahead(int64_t row_bytes, int64_t element_bytes, const Ahead& asked) {
  if (!schedule_.split)
    return i64((asked.of_own_row ? 0 : row_bytes * schedule_.rows_per_tile) +
               asked.before * kernel_.row_size() / kLine * kLine);
  llvm::Value* const part = b_.CreateMul(b_.CreateSub(e_.inner_end, e_.inner_begin), i64(asked.before));
  llvm::Value* const begin =
      b_.CreateAdd(b_.CreateMul(e_.inner_begin, i64(element_bytes - asked.pace)), b_.CreateAnd(part, i64(-kLine)));
  return asked.of_own_row ? begin : b_.CreateAdd(b_.CreateMul(e_.rows_ahead, i64(row_bytes)), begin);
}

// What a walk will read later. The next rows can be under way while the phases of these are computed. A row too long for that
// is read from memory in every phase; the machine's own prefetching stops at each page. A hint only: the address may lie
// anywhere when rows are not dense, or beyond the end.
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
    const int level = is_long || schedule_.prefetches_to_first ? kFirstLevel : kSecondLevel;
    // Lines that begin among these vectors' part.
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

// Of so many walks over a row the earlier ones ask for a quarter each, the last for what is left, as along rows.
Prefetch::Share Prefetch::share_of(int64_t walk, int64_t walks) {
  const int64_t whole = std::max(walks, tuning::kSharesOfNextRow);
  return {walk, walk + 1 == walks ? whole : walk + 1, whole};
}

// The same across rows: each walk over a group asks for its share of the next group, which waits in the second-level cache,
// since the first has room for one. A share of what lies in one piece is a part of it; of pieces that lie apart, a part of
// each.
void Prefetch::prefetch_across(const Row& group, const std::vector<Lanes>& positions, size_t run, int phase) {
  const std::vector<int> walks = phases_.usual_walks();
  const auto found = std::find(walks.begin(), walks.end(), phase);
  if (group.frame.next_group.empty() || e_.inner_rank() > 1 || walks.size() < 2 || found == walks.end()) return;
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

// Some rows of the next group, of an arg whose elements lie side by side along a row.
void Prefetch::prefetch_rows(const Row& group, int arg, const std::vector<Lanes>& positions, const Range& rows) {
  llvm::Value* const along = b_.CreateMul(positions.front().offset, i64(bytes_of(kernel_.arg(arg).dtype, 1)));
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    hint(b_.CreateGEP(
             b_.getInt8Ty(),
             transpose_.row_address(group.frame, group.frame.next_group[static_cast<size_t>(arg)], arg, static_cast<int>(r)),
             along),
         kSecondLevel);
  }
}

void Prefetch::prefetch_positions(const Row& group, int arg, const std::vector<Lanes>& positions, size_t run,
                                  const Share& share) {
  const kernel::Arg& a = kernel_.arg(arg);
  llvm::Value* const next = group.frame.next_group[static_cast<size_t>(arg)];
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
