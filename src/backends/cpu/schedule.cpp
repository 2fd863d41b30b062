#include "backends/cpu/schedule.h"

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

}  // namespace

Schedule choose_schedule(const kernel::Kernel& kernel, int vector_bits) {
  Schedule schedule;
  schedule.vector_bits = vector_bits;
  schedule.rows_per_tile = kernel.has_column_sum() ? 2 : 1;
  return schedule;
}

bool wants_non_temporal(const kernel::Kernel& kernel) {
  int64_t bytes = 0;
  for (const kernel::Arg& arg : kernel.args) {
    if (!arg.output || arg.column || arg.strides.back() == 0) continue;
    if (!is_contiguous(kernel, arg)) return false;
    for (int d = 0; d < kernel.outer_rank; ++d) {
      if (bytes_of(arg.dtype, arg.strides[static_cast<size_t>(d)]) % 64 != 0) return false;
    }
    bytes += bytes_of(arg.dtype, kernel.row_count() * kernel.row_size());
  }
  return bytes >= kNonTemporalBytes;
}

}  // namespace lamina::cpu
