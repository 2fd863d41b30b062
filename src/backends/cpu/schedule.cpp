#include "backends/cpu/schedule.h"

#include <algorithm>

namespace lamina::cpu {

namespace {

constexpr int64_t kNonTemporalBytes = int64_t{4} << 20;

bool is_contiguous(const kernel::Kernel& kernel, const kernel::Arg& arg) {
  int64_t expected = 1;
  for (size_t d = kernel.extents.size(); d-- > static_cast<size_t>(kernel.outer_rank);) {
    if (arg.strides[d] != expected) return false;
    expected *= kernel.extents[d];
  }
  return true;
}

// Several short rows go through a phase before any goes through the next, which hides the latency of a reduction; measured: from
// 4 KiB a row on one stream of memory is faster.
int rows_per_tile(const kernel::Kernel& kernel) {
  constexpr int64_t kTileBytes = int64_t{8} << 10, kMostRows = 4;
  if (kernel.phase_count() == 1) return kernel.has_column_sum() ? 2 : 1;
  const int64_t row_bytes = std::max<int64_t>(kernel.row_size() * 4, 1);
  return static_cast<int>(std::clamp<int64_t>(kTileBytes / row_bytes, 1, kMostRows));
}

bool has_nibbles(const kernel::Kernel& kernel) {
  return std::any_of(kernel.args.begin(), kernel.args.end(), [](const kernel::Arg& arg) { return bits_of(arg.dtype) < 8; });
}

}  // namespace

Schedule choose_schedule(const kernel::Kernel& kernel, int vector_bits) {
  Schedule schedule;
  schedule.vector_bits = vector_bits;
  schedule.rows_per_tile = rows_per_tile(kernel);
  return schedule;
}

bool can_split(const kernel::Kernel& kernel) {
  constexpr int64_t kShortestRow = 16384, kMostUnits = 32;
  const bool one_run = kernel.extents.size() == static_cast<size_t>(kernel.outer_rank) + 1;
  const int64_t units = kernel.has_column_sum() ? kernel.row_count() / kColumnBlockRows : kernel.row_count();
  const bool reduces = kernel.has_row_reduction() || kernel.has_column_sum();
  return one_run && reduces && !has_nibbles(kernel) && kernel.row_size() >= kShortestRow && units <= kMostUnits;
}

bool shares_bytes(const kernel::Arg& arg) {
  if (bits_of(arg.dtype) >= 8) return false;
  const auto is_odd = [](int64_t stride) { return stride % 2 != 0; };
  return arg.strides.back() != 1 || std::any_of(arg.strides.begin(), arg.strides.end() - 1, is_odd);
}

std::vector<int> streamed_args(const kernel::Kernel& kernel) {
  std::vector<int> args;
  for (size_t a = 0; a < kernel.args.size(); ++a) {
    const kernel::Arg& arg = kernel.args[a];
    if (arg.output && !arg.column && arg.strides.back() == 1 && bits_of(arg.dtype) >= 8 && is_contiguous(kernel, arg))
      args.push_back(static_cast<int>(a));
  }
  const auto arg_of = [&](int a) -> const kernel::Arg& { return kernel.args[static_cast<size_t>(a)]; };
  std::stable_sort(args.begin(), args.end(), [&](int a, int b) { return bits_of(arg_of(a).dtype) < bits_of(arg_of(b).dtype); });
  std::erase_if(args, [&, first = args.empty() ? 0 : args.front()](int a) {
    return !std::equal(arg_of(a).strides.begin(), arg_of(a).strides.begin() + kernel.outer_rank, arg_of(first).strides.begin());
  });
  return args;
}

bool rows_share_lines(const kernel::Kernel& kernel, const std::vector<int>& streamed) {
  constexpr int64_t kLine = 64;
  const kernel::Arg& arg = kernel.args[static_cast<size_t>(streamed.front())];
  return std::all_of(arg.strides.begin(), arg.strides.end() - 1, [&](int64_t stride) { return bytes_of(arg.dtype, stride) % kLine == 0; });
}

bool wants_non_temporal(const kernel::Kernel& kernel) {
  if (has_nibbles(kernel)) return false;
  int64_t bytes = 0;
  for (const int a : streamed_args(kernel)) {
    bytes += bytes_of(kernel.args[static_cast<size_t>(a)].dtype, kernel.row_count() * kernel.row_size());
  }
  return bytes >= kNonTemporalBytes;
}

}  // namespace lamina::cpu
