#include "backends/cpu/schedule/footprint.h"

#include <algorithm>

namespace lamina::cpu {

using kernel::Arg;
using kernel::Kernel;
using kernel::Node;

bool varies_by_row(const Kernel& kernel, const Arg& arg) {
  return arg.entry_stride != 0 ||
         std::any_of(arg.strides.begin(), arg.strides.begin() + kernel.outer_rank, [](int64_t step) { return step != 0; });
}

bool varies_along_row(const Kernel& kernel, const Arg& arg) {
  return std::any_of(arg.strides.begin() + kernel.outer_rank, arg.strides.end(), [](int64_t step) { return step != 0; });
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
    if (by_row && !arg.output && bits_of(arg.dtype) < 32) bytes.converted += size * compute_bytes;
  }
  return bytes;
}

bool computes_functions(const Kernel& kernel, int phases) {
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [&](const Node& n) {
    return n.per_element && n.phase < phases && cost_of(n) == kernel::CostClass::function;
  });
}

bool is_one_run(const Kernel& kernel) { return kernel.extents.size() == static_cast<size_t>(kernel.outer_rank) + 1; }

int lane_count(const Kernel& kernel, int vector_bits) { return vector_bits / (kernel.computes_in_f64() ? 64 : 32); }

bool has_nibbles(const Kernel& kernel) {
  return std::any_of(kernel.args.begin(), kernel.args.end(), [](const Arg& arg) { return bits_of(arg.dtype) < 8; });
}

bool shares_bytes(const Arg& arg) {
  if (bits_of(arg.dtype) >= 8) return false;
  const auto is_odd = [](int64_t stride) { return stride % 2 != 0; };
  return arg.strides.back() != 1 || std::any_of(arg.strides.begin(), arg.strides.end() - 1, is_odd);
}

}  // namespace lamina::cpu
