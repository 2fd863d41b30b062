#include "backends/cpu/schedule/streaming.h"

#include <algorithm>

#include "backends/cpu/program/cache_sets.h"
#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/tuning.h"
#include "kernels/numerics.h"

namespace lamina::cpu {

namespace {

using kernel::Arg;
using kernel::Kernel;
using kernel::Node;
using kernel::NodeKind;
using tuning::kLine;

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
// first one. So if the tensors are equally aligned, their rows are at a multiple of 64 bytes whenever the first one's row is.
// The first has the smallest elements.
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

// Outputs that write whole lines at a time, or contiguous data within one: neighbouring rows at one position or, for rows
// that are transposed, neighbouring positions of one row.
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

// The type of which one vector fills a line.
DataType type_of_lanes(const Kernel& kernel) { return kernel.computes_in_f64() ? DataType::f64 : DataType::f32; }

}  // namespace

std::vector<int> streamable_args(const Kernel& kernel, const Schedule& schedule) {
  if (has_nibbles(kernel)) return {};
  return schedule.transposed ? streamed_across_rows(kernel, schedule.rows_per_group) : streamed_along_rows(kernel);
}

bool begins_within_lines(const Kernel& kernel, const Schedule& schedule) {
  if (schedule.streamed.empty() || schedule.transposed) return false;
  const Arg& arg = kernel.args[static_cast<size_t>(schedule.streamed.front())];
  for (size_t d = 0; d + 1 < arg.strides.size(); ++d) {
    if (!fills_lines(arg, d)) return true;
  }
  return false;
}

bool leaves_as_stream(const Kernel& kernel, const Schedule& schedule, const Machine& machine) {
  const bool has_one_outer_dim = kernel.outer_rank == 1 && kernel.extents.size() == 2, wide = kernel.computes_in_f64();
  const bool fits_vector = kernel.row_size() <= lane_count(kernel, schedule.vector_bits);
  if (schedule.split || !has_one_outer_dim || !machine.instructions->joins_lines || !tuning::is_line(schedule.vector_bits) ||
      !kernel.has_row_reduction() || kernel.has_column_sum() || fits_vector)
    return false;
  const kernel::Type type = wide ? kernel::Type::f64 : kernel::Type::f32;
  const auto has_type = [&](const Node& n) { return n.kind != NodeKind::store || !n.per_element || n.type == type; };
  const auto fits = [&](DataType dtype) {
    const bool is_small = dtype == DataType::bf16 || dtype == DataType::f16;
    return dtype == type_of_lanes(kernel) || (!wide && is_small && kernel.row_size() >= numerics::kVirtualLanes);
  };
  const auto arg_of = [&](int a) -> const Arg& { return kernel.args[static_cast<size_t>(a)]; };
  return std::all_of(kernel.nodes.begin(), kernel.nodes.end(), has_type) &&
         std::all_of(schedule.streamed.begin(), schedule.streamed.end(), [&](int a) {
           return fits(arg_of(a).dtype) && arg_of(a).dtype == arg_of(schedule.streamed.front()).dtype &&
                  arg_of(a).strides.front() == kernel.row_size();
         });
}

bool begin_alike(const Kernel& kernel, const Arg& arg, int rows) {
  if (rows < 2 || kernel.outer_rank == 0) return false;
  const int64_t bytes = bytes_of(arg.dtype, arg.strides[static_cast<size_t>(kernel.outer_rank) - 1]);
  return bytes != 0 && different_beginnings(bytes) < rows;
}

bool rounds_in_pairs(DataType dtype, int lanes, const Instructions& instructions) {
  const bool is_small = dtype == DataType::bf16 || dtype == DataType::f16;
  return instructions->rounds_pairs && is_small && 8 * bytes_of(dtype, 2 * lanes) == vector_bits(instructions);
}

int stores_of_parts(const Kernel& kernel, const Arg& arg, const Schedule& schedule, const Machine& machine) {
  if (schedule.transposed || !begin_alike(kernel, arg, schedule.rows_together)) return 0;
  if (machine.instructions->packs_bytes && is_byte_integer(arg.dtype)) return 0;
  const int lanes = lane_count(kernel, schedule.vector_bits);
  const int of_store = rounds_in_pairs(arg.dtype, lanes, machine.instructions) ? 2 * lanes : lanes;
  const int64_t stores = kLine / bytes_of(arg.dtype, of_store);
  return stores > 1 ? static_cast<int>(stores) : 0;
}

bool splits_lines_in_turns(const Kernel& kernel, const Arg& arg, const Schedule& schedule) {
  if (schedule.transposed || schedule.rows_together < 2 || kernel.outer_rank == 0 || !arg.output || arg.column) return false;
  return arg.strides.back() == 1 && bytes_of(arg.dtype, lane_count(kernel, schedule.vector_bits)) == kLine &&
         !fills_lines(arg, static_cast<size_t>(kernel.outer_rank) - 1);
}

}  // namespace lamina::cpu
