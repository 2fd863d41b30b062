#include "backends/gpu/emit/emission.h"

#include "backends/gpu/emit/emit_kernel.h"

namespace lamina::gpu {

Emission::Emission(const kernel::Kernel& of, const Schedule& under, std::string named)
    : kernel(of),
      schedule(under),
      order(sum_order(of)),
      symbol(std::move(named)),
      plan(of, loop_policy(of, under)),
      outer(static_cast<size_t>(of.outer_rank)),
      row_size(of.row_size()),
      wide(needs_f64(of)),
      one_block(is_one_block(of, order)),
      known(of.nodes.size(), false) {}

std::string Emission::place_sum(const Dims& steps, size_t first, size_t last, const char* prefix) const {
  std::string sum;
  for (size_t d = first; d < last; ++d) {
    if (steps[d] != 0) sum += join(sum.empty() ? "" : " + ", prefix, d, " * ", steps[d]);
  }
  return sum.empty() ? "0" : sum;
}

void Emission::emit_positions(std::string rest, size_t first, size_t last, const std::string& type, const std::string& cast) {
  for (size_t d = last; d-- > first + 1;) {
    const std::string extent = d < outer ? join(cast, "e", d) : join(kernel.extents[d]);
    out.line("const ", type, " x", d, " = ", rest, " % ", extent, ", y", d, " = ", rest, " / ", extent, ";");
    rest = join("y", d);
  }
  out.line("const ", type, " x", first, " = ", rest, ";");
}

}  // namespace lamina::gpu
