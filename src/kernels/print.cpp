// The readable text form of kernels.
#include "interface/number_text.h"
#include "interface/status.h"
#include "kernels/kernel_ir.h"
#include "kernels/loop_plan.h"

namespace lamina::kernel {

namespace {

const char* name_of(Reduction reduction) {
  static constexpr const char* names[] = {"sum", "maximum", "minimum", "product"};
  return names[static_cast<size_t>(reduction)];
}

std::string verb(const Node& node) {
  switch (node.kind) {
    case NodeKind::load: return "load";
    case NodeKind::load_entry: return "load_entry";
    case NodeKind::sum_entries: return "sum_entries";
    case NodeKind::constant: return "constant";
    case NodeKind::index: return "index";
    case NodeKind::map: return name_of(node.op);
    case NodeKind::reduce: return std::string("reduce_") + name_of(node.reduction);
    case NodeKind::moments: return "moments";
    case NodeKind::mean: return "mean";
    case NodeKind::variance: return "variance";
    case NodeKind::center: return "center";
    case NodeKind::store: return "store";
    case NodeKind::column_sum: return "column_sum";
    case NodeKind::segment_sum: return "segment_sum";
  }
  return "?";
}

// The text of a kernel's structure has no tensor names. A broken kernel is printed too, and its nodes may name args that do
// not exist.
std::string arg_name(const Kernel& kernel, size_t arg, bool with_outer) {
  return with_outer && arg < kernel.args.size() ? kernel.args[arg].name : "a" + std::to_string(arg);
}

std::string print_node(const Kernel& kernel, size_t i, bool with_outer) {
  const Node& node = kernel.nodes[i];
  const bool writes = writes_arg(node);
  std::string text = join("  ", writes ? "" : join("%", i, " = "), verb(node));
  const char* separator = " ";
  for (int k = 0; k < operand_count(node); ++k) {
    text += join(separator, "%", node.operands[static_cast<size_t>(k)]);
    separator = ", ";
  }
  if (node.arg >= 0) text += separator + arg_name(kernel, static_cast<size_t>(node.arg), with_outer);
  if (node.order >= 0) text += separator + arg_name(kernel, static_cast<size_t>(node.order), with_outer);
  if (node.kind == NodeKind::constant || (node.kind == NodeKind::map && node.op == MapOp::power))
    text += separator + general_text(node.value, 17);
  if (node.kind == NodeKind::load_entry && node.operands[1] >= 0)
    text += join(separator, "else ", general_text(node.value, 17));
  if (node.kind == NodeKind::index) text += separator + describe(node.coefficients);
  if (node.dtype != DataType::undef) text += join(separator, lamina::name_of(node.dtype));
  if (!writes) text += join(" : ", name_of(node.type), node.per_element ? "" : " row");
  return text + join(" phase ", node.phase, "\n");
}

}  // namespace

std::string print(const Kernel& kernel, bool with_outer) {
  const auto outer = static_cast<size_t>(kernel.outer_rank);
  const auto print_dims = [&](const Dims& dims, const auto& is_hidden, bool packs_by_two = false) {
    std::string list = "[";
    for (size_t d = 0; d < dims.size(); ++d) {
      list += d == 0 ? "" : d == outer ? " | " : ", ";
      const char* hidden = packs_by_two && dims[d] % 2 != 0 ? "odd" : "*";
      list += is_hidden(d) ? hidden : join(dims[d]);
    }
    return list + "]";
  };
  // Without a reduction, the inner extent also is known only at run time.
  const bool reduces = kernel.has_row_reduction() || kernel.has_column_sum();
  std::string text = join("kernel ", kernel.name, " over ",
                          print_dims(kernel.extents, [&](size_t d) { return !with_outer && (!reduces || d < outer); }),
                          with_outer && kernel.entry_rank > 0 ? join(", ", kernel.entry_count(), " entries") : "", "\n");
  for (size_t a = 0; a < kernel.args.size(); ++a) {
    const Arg& arg = kernel.args[a];
    const char* role = arg.column ? "column" : arg.output ? "out" : "in";
    // A stride of 0 is part of the structure: code for a broadcast arg never steps. So is an odd stride of four-bit elements.
    const std::string strides = print_dims(
        arg.strides, [&](size_t d) { return !with_outer && d < outer && arg.strides[d] != 0; }, bits_of(arg.dtype) < 8);
    text += join("  ", role, " ", arg_name(kernel, a, with_outer), " : ", lamina::name_of(arg.dtype), " strides ", strides);
    if (arg.entry_stride != 0) text += join(" ", with_outer ? join(arg.entries) : "*", " entries by ", arg.entry_stride);
    if (!arg.table.empty()) text += join(" table of ", arg.table.size());
    text += "\n";
  }
  for (size_t i = 0; i < kernel.nodes.size(); ++i) text += print_node(kernel, i, with_outer);
  return text;
}

std::string print(const LoopPlan& plan) {
  const Kernel& kernel = plan.kernel();
  std::string text;
  for (int phase = 0; phase < plan.count(); ++phase) {
    if (plan.roots(phase).empty()) continue;
    std::string computed, read, roots;
    for (const NodeIndex i : plan.nodes(phase)) (plan.is_read_back(i, phase) ? read : computed) += join(" %", i);
    for (const NodeIndex i : plan.roots(phase)) {
      const bool is_second = plan.loop_of(i) < phase;
      roots += join(roots.empty() ? " " : ", ", verb(kernel.node(i)), " %", i, is_second ? " (second walk)" : "");
    }
    text +=
        join("  walk ", phase, plan.may_be_skipped(phase) ? " (rare)" : "", ":", read.empty() ? "" : " reads back" + read,
             read.empty() || computed.empty() ? "" : ";", computed.empty() ? "" : " computes" + computed, " for", roots, "\n");
  }
  std::string expensive, live;
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const auto node = static_cast<NodeIndex>(i);
    if (plan.cost(node) != CostClass::simple)
      expensive += join(expensive.empty() ? " " : ", ", "%", i, " ", name_of(plan.cost(node)));
    if (plan.live_since(node) >= 0) live += join(live.empty() ? " " : ", ", "%", i, " from walk ", plan.live_since(node));
  }
  if (!live.empty()) text += join("  live:", live, "\n");
  if (!expensive.empty()) text += join("  expensive:", expensive, "\n");
  return text;
}

}  // namespace lamina::kernel
