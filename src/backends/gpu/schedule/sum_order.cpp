#include "backends/gpu/schedule/sum_order.h"

#include <algorithm>
#include <bit>

#include "backends/gpu/schedule/tuning.h"

namespace lamina::gpu {

namespace {

using kernel::Arg;
using kernel::Kernel;

bool varies_inside(const Kernel& kernel, const Arg& arg) {
  return std::any_of(arg.strides.begin() + kernel.outer_rank, arg.strides.end(), [](int64_t s) { return s != 0; });
}

bool uses_f64(const Kernel& kernel) {
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(),
                     [](const kernel::Node& n) { return n.per_element && n.type == kernel::Type::f64; });
}

int power_of_two_at_least(int64_t count, int largest) {
  return static_cast<int>(
      std::min<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(count, 1)))), largest));
}

// Short rows have as many lanes as chunks. For longer rows, lanes are added until none has more than kElementsPerThread
// elements; with column sums, whose rows run one after the other, until none has more than one chunk.
int lanes_of(const Kernel& kernel, int chunk, int64_t chunks) {
  const int held = kernel.has_column_sum() ? 1 : std::max(1, tuning::kElementsPerThread / chunk);
  int lanes = power_of_two_at_least(chunks, tuning::kWarp);
  while (lanes < tuning::kMaxGroup && chunks > int64_t{lanes} * held) lanes *= 2;
  return lanes;
}

}  // namespace

bool reduces(const Kernel& kernel) { return kernel.has_row_reduction() || kernel.has_column_sum(); }

int longest_chunk(const Kernel& kernel) {
  int bytes = 8;
  bool any = false;
  for (const Arg& arg : kernel.args) {
    if (arg.strides.back() != 1 || bits_of(arg.dtype) < 8) continue;
    bytes = std::min<int>(bytes, static_cast<int>(bytes_of(arg.dtype, 1)));
    any = true;
  }
  if (!any) return 1;
  int chunk = std::min(tuning::kAccessBytes / bytes, uses_f64(kernel) ? tuning::kLongestVectorF64 : tuning::kLongestVector);
  while (chunk > 1 && kernel.extents.back() % chunk != 0) chunk /= 2;
  return chunk;
}

DenseArgs dense_args(const Kernel& kernel) {
  DenseArgs found;
  for (const Arg& arg : kernel.args) {
    if (!varies_inside(kernel, arg)) continue;
    if (arg.strides.back() == 1)
      ++found.along_rows;
    else if (kernel.outer_rank > 0 && arg.strides[static_cast<size_t>(kernel.outer_rank) - 1] == 1)
      ++found.across_rows;
  }
  return found;
}

bool rows_are_adjacent(const Kernel& kernel) {
  const DenseArgs dense = dense_args(kernel);
  return !kernel.has_column_sum() && dense.across_rows > dense.along_rows;
}

int64_t blocks_of_row(const Kernel& kernel, const SumOrder& order) {
  return (kernel.row_size() + order.block() - 1) / order.block();
}

bool is_one_block(const Kernel& kernel, const SumOrder& order) { return blocks_of_row(kernel, order) <= 1; }

SumOrder sum_order(const Kernel& kernel) {
  SumOrder order;
  if (!reduces(kernel)) return order;
  if (rows_are_adjacent(kernel)) {
    order.lanes = power_of_two_at_least(kernel.row_size() / tuning::kElementsPerThreadAcrossRows, tuning::kWarp);
  } else {
    order.chunk = longest_chunk(kernel);
    order.lanes = lanes_of(kernel, order.chunk, (kernel.row_size() + order.chunk - 1) / order.chunk);
  }
  const int64_t chunks = (kernel.row_size() + order.chunk - 1) / order.chunk;
  const int64_t wanted = (chunks + order.lanes - 1) / order.lanes;
  order.steps = static_cast<int>(std::clamp<int64_t>(wanted, 1, std::max(1, tuning::kElementsPerThread / order.chunk)));
  if (kernel.has_column_sum()) order.column_rows = is_one_block(kernel, order) ? tuning::kColumnRows : tuning::kLongColumnRows;
  return order;
}

}  // namespace lamina::gpu
