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
      known(of.nodes.size(), false),
      is_taken_ahead(of.nodes.size(), false) {
  if (!schedule.copies_ahead) return;
  copied_ahead = args_copied_ahead(kernel, schedule.vector);
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const kernel::Node& n = kernel.nodes[i];
    if (n.kind == kernel::NodeKind::load && !n.per_element) is_taken_ahead[i] = true;
    if (n.kind != kernel::NodeKind::moments) continue;  // shifted by the operand at the first element
    const std::vector<bool> needed = element_nodes_of(kernel, n.operands[0]);
    for (size_t j = 0; j < needed.size(); ++j)
      if (needed[j] && kernel.nodes[j].kind == kernel::NodeKind::load) is_taken_ahead[j] = true;
  }
}

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
