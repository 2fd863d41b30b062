#include "kernels/shared_values.h"

#include <algorithm>
#include <span>

namespace lamina::kernel {

namespace {

// An additional kernel pays for its call if it saves at least this many evaluations.
constexpr int64_t kMinRows = 8, kMinElementsSpared = 4096;

std::span<const NodeIndex> operands_of(const Node& node) {
  return {node.operands.data(), static_cast<size_t>(operand_count(node))};
}

// Per node: whether its values are the same in every row.
std::vector<bool> nodes_of_all_rows(const Kernel& kernel) {
  std::vector<bool> shared;
  const auto is_shared = [&](NodeIndex i) { return shared[static_cast<size_t>(i)]; };
  for (const Node& node : kernel.nodes) {
    const std::span<const NodeIndex> operands = operands_of(node);
    bool same = node.kind == NodeKind::constant || node.kind == NodeKind::map;
    if (node.kind == NodeKind::load) {
      const Dims& strides = kernel.arg(node.arg).strides;
      same = std::all_of(strides.begin(), strides.begin() + kernel.outer_rank, [](int64_t stride) { return stride == 0; });
    }
    shared.push_back(same && std::all_of(operands.begin(), operands.end(), is_shared));
  }
  return shared;
}

// Nodes that all rows share along the elements, that are expensive to compute, and that the rows' own values depend on.
std::vector<NodeIndex> nodes_to_compute_ahead(const Kernel& kernel) {
  const std::vector<bool> shared = nodes_of_all_rows(kernel);
  std::vector<bool> expensive(kernel.nodes.size(), false), read_by_rows(kernel.nodes.size(), false);
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const Node& node = kernel.nodes[i];
    expensive[i] = shared[i] && cost_of(node) >= CostClass::division;
    for (const NodeIndex operand : operands_of(node)) {
      const auto at = static_cast<size_t>(operand);
      expensive[i] = expensive[i] || (shared[i] && expensive[at]);
      if (!shared[i]) read_by_rows[at] = true;
    }
  }
  std::vector<NodeIndex> nodes;
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const Node& node = kernel.nodes[i];
    if (expensive[i] && read_by_rows[i] && node.per_element && is_real(node.type)) nodes.push_back(static_cast<NodeIndex>(i));
  }
  return nodes;
}

// Drops nodes that no store or sum needs, and args that no remaining node uses, and renumbers the others.
void drop_unused(LoweredKernel& lowered) {
  Kernel& kernel = lowered.kernel;
  std::vector<bool> used(kernel.nodes.size(), false);
  for (size_t i = kernel.nodes.size(); i-- > 0;) {
    const Node& node = kernel.nodes[i];
    used[i] = used[i] || writes_arg(node);
    if (!used[i]) continue;
    for (const NodeIndex operand : operands_of(node)) used[static_cast<size_t>(operand)] = true;
  }
  LoweredKernel kept{kernel, {}, {}, std::move(lowered.checks)};
  kept.kernel.nodes.clear(), kept.kernel.args.clear();
  std::vector<NodeIndex> new_node(kernel.nodes.size(), -1);
  std::vector<int> new_arg(kernel.args.size(), -1);
  const auto keep = [&](size_t arg) {
    if (new_arg[arg] < 0) {
      new_arg[arg] = static_cast<int>(kept.args.size());
      kept.kernel.args.push_back(kernel.args[arg]);
      kept.args.push_back(lowered.args[arg]);
      if (!lowered.offsets.empty()) kept.offsets.push_back(lowered.offsets[arg]);
    }
    return new_arg[arg];
  };
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    if (!used[i]) continue;
    Node node = kernel.nodes[i];
    for (NodeIndex& operand : node.operands) operand = operand < 0 ? -1 : new_node[static_cast<size_t>(operand)];
    for (int* const arg : {&node.arg, &node.order})
      if (*arg >= 0) *arg = keep(static_cast<size_t>(*arg));
    new_node[i] = static_cast<NodeIndex>(kept.kernel.nodes.size());
    kept.kernel.nodes.push_back(std::move(node));
  }
  // No node reads indices that are sorted before the kernel runs.
  const auto place_of = [](const LoweredKernel& in, ValueIndex value) {
    return static_cast<size_t>(std::find(in.args.begin(), in.args.end(), value) - in.args.begin());
  };
  for (const IndexCheck& check : kept.checks)
    if (check.order && place_of(kept, check.sorted) < kept.args.size()) keep(place_of(lowered, check.indices));
  lowered = std::move(kept);
}

// An arg for memory that is dense along the inner dims.
Arg along_a_row(const Kernel& kernel, size_t number, Type type, bool output) {
  Dims strides(kernel.extents.size(), 0);
  int64_t stride = 1;
  for (size_t d = strides.size(); d-- > static_cast<size_t>(kernel.outer_rank); stride *= kernel.extents[d])
    strides[d] = stride;
  return {.name = "shared" + std::to_string(number),
          .dtype = type == Type::f64 ? DataType::f64 : DataType::f32,
          .output = output,
          .strides = std::move(strides),
          .table = {}};
}

int add_arg(LoweredKernel& lowered, Arg arg, ValueIndex value) {
  lowered.kernel.args.push_back(std::move(arg));
  lowered.args.push_back(value);
  if (!lowered.offsets.empty()) lowered.offsets.push_back(0);
  return static_cast<int>(lowered.args.size()) - 1;
}

// Returns a kernel over one row of `lowered` that stores `nodes` to temporaries, numbered from `temporary` down. `lowered`
// then loads them. The new kernel has no reduction, so all inner dims except the last become outer dims.
LoweredKernel taken_ahead(LoweredKernel& lowered, const std::vector<NodeIndex>& nodes, ValueIndex temporary) {
  LoweredKernel ahead = lowered;
  ahead.kernel.name += "_shared";
  std::fill_n(ahead.kernel.extents.begin(), ahead.kernel.outer_rank, 1);
  ahead.kernel.outer_rank = static_cast<int>(ahead.kernel.extents.size()) - 1;  // it has no reduction
  ahead.kernel.entry_rank = 0;
  for (Node& node : ahead.kernel.nodes) {  // its stores are not read
    if (writes_arg(node)) node = {.kind = NodeKind::constant, .type = node.type, .coefficients = {}};
  }
  for (size_t n = 0; n < nodes.size(); ++n) {
    Node& node = lowered.kernel.nodes[static_cast<size_t>(nodes[n])];
    const Type type = node.type;
    const ValueIndex value = temporary - static_cast<ValueIndex>(n);
    const int to = add_arg(ahead, along_a_row(lowered.kernel, n, type, true), value);
    ahead.kernel.nodes.push_back({.kind = NodeKind::store,
                                  .type = type,
                                  .operands = {nodes[n], -1, -1},
                                  .arg = to,
                                  .coefficients = {},
                                  .per_element = true});
    const int from = add_arg(lowered, along_a_row(lowered.kernel, n, type, false), value);
    node = {.kind = NodeKind::load, .type = type, .arg = from, .coefficients = {}, .per_element = true};
  }
  for (LoweredKernel* each : {&ahead, &lowered}) drop_unused(*each);
  return ahead;
}

}  // namespace

std::vector<LoweredKernel> with_shared_values_ahead(std::vector<LoweredKernel> kernels) {
  ValueIndex temporary = kTemporary + 1;
  for (const LoweredKernel& lowered : kernels)
    for (const ValueIndex value : lowered.args) temporary = std::min(temporary, value);
  std::vector<LoweredKernel> all;
  for (LoweredKernel& lowered : kernels) {
    const int64_t rows = lowered.kernel.row_count();
    const bool spares = rows >= kMinRows && rows * lowered.kernel.row_size() >= kMinElementsSpared;
    const std::vector<NodeIndex> nodes = spares ? nodes_to_compute_ahead(lowered.kernel) : std::vector<NodeIndex>{};
    if (!nodes.empty()) {
      all.push_back(taken_ahead(lowered, nodes, temporary - 1));
      temporary -= static_cast<ValueIndex>(nodes.size());
    }
    all.push_back(std::move(lowered));
  }
  return all;
}

}  // namespace lamina::kernel
