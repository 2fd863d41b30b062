#include "kernels/kernel_ir.h"

#include <algorithm>

#include "interface/status.h"

namespace lamina::kernel {

bool Kernel::has_row_reduction() const {
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Node& n) { return n.kind == NodeKind::reduce || n.kind == NodeKind::moments; });
}

bool Kernel::has_column_sum() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const Node& n) { return n.kind == NodeKind::column_sum; });
}

int Kernel::phase_count() const {
  int last = 0;
  for (const Node& node : nodes) {
    const bool writes = node.kind == NodeKind::store || node.kind == NodeKind::column_sum;
    if (node.per_element || writes) last = std::max(last, node.phase);
  }
  return last + 1;
}

int64_t Kernel::row_count() const {
  return checked_product(Dims(extents.begin(), extents.begin() + outer_rank), "the outer extents of a kernel");
}

int64_t Kernel::row_size() const {
  return checked_product(Dims(extents.begin() + outer_rank, extents.end()), "the inner extents of a kernel");
}

// A row value in f64 (the threshold of a dropout) makes no vector of f64.
bool Kernel::computes_in_f64() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const Node& n) {
    return n.type == Type::f64 && (n.per_element || n.kind == NodeKind::reduce || n.kind == NodeKind::moments);
  });
}

std::vector<bool> element_nodes_of(const Kernel& kernel, NodeIndex root) {
  std::vector<bool> needed(kernel.nodes.size(), false);
  needed[static_cast<size_t>(root)] = kernel.nodes[static_cast<size_t>(root)].per_element;
  for (auto i = static_cast<size_t>(root) + 1; i-- > 0;) {
    const Node& n = kernel.nodes[i];
    for (int k = 0; needed[i] && k < operand_count(n); ++k) {
      const auto operand = static_cast<size_t>(n.operands[static_cast<size_t>(k)]);
      if (kernel.nodes[operand].per_element) needed[operand] = true;
    }
  }
  return needed;
}

DataType data_precision(const Kernel& kernel, NodeIndex root) {
  const std::vector<bool> made_of = element_nodes_of(kernel, root);
  DataType precision = DataType::undef;
  for (size_t i = 0; i < made_of.size(); ++i) {
    if (!made_of[i] || kernel.nodes[i].kind != NodeKind::load) continue;
    const DataType dtype = kernel.args[static_cast<size_t>(kernel.nodes[i].arg)].dtype;
    if (dtype != DataType::bf16 && dtype != DataType::f16) return DataType::undef;
    if (precision != DataType::f16) precision = dtype;
  }
  return precision;
}

int operand_count(const Node& node) {
  int count = 0;
  while (count < 3 && node.operands[static_cast<size_t>(count)] >= 0) ++count;
  return count;
}

const char* name_of(MapOp op) {
  static constexpr const char* names[] = {
      "add",      "subtract",    "multiply",   "divide",          "maximum",       "minimum",     "negate",
      "absolute", "square_root", "exp",        "expm1",           "log",           "log1p",       "tanh",
      "erf",      "normal_cdf",  "sigmoid",    "round_half_even", "floor",         "power",       "fma",
      "equal",    "less",        "less_equal", "greater",         "greater_equal", "logical_and", "logical_not",
      "select",   "cast",        "round_to",   "philox_word"};
  return names[static_cast<size_t>(op)];
}

const char* name_of(Type type) {
  static constexpr const char* names[] = {"f32", "f64", "s32", "s64", "boolean"};
  return names[static_cast<size_t>(type)];
}

namespace {

int expected_operands(const Node& node) {
  switch (node.kind) {
    case NodeKind::load:
    case NodeKind::constant:
    case NodeKind::index: return 0;
    case NodeKind::center: return 2;
    case NodeKind::map:
      switch (node.op) {
        case MapOp::fma:
        case MapOp::select:
        case MapOp::philox_word: return 3;
        case MapOp::negate:
        case MapOp::absolute:
        case MapOp::square_root:
        case MapOp::exp:
        case MapOp::expm1:
        case MapOp::log:
        case MapOp::log1p:
        case MapOp::tanh:
        case MapOp::erf:
        case MapOp::normal_cdf:
        case MapOp::sigmoid:
        case MapOp::round_half_even:
        case MapOp::floor:
        case MapOp::power:
        case MapOp::logical_not:
        case MapOp::cast:
        case MapOp::round_to: return 1;
        default: return 2;
      }
    default: return 1;
  }
}

// The sentence that says what is wrong with node `i`, or "".
std::string fault_of(const Kernel& kernel, size_t i) {
  const Node& node = kernel.nodes[i];
  const bool scaled_center = node.kind == NodeKind::center && operand_count(node) == 3;
  if (operand_count(node) != expected_operands(node) && !scaled_center) return "has the wrong number of operands";
  for (int k = 0; k < operand_count(node); ++k) {
    const NodeIndex operand = node.operands[static_cast<size_t>(k)];
    if (operand >= static_cast<NodeIndex>(i)) return "uses a node that comes after it";
    const Node& used = kernel.nodes[static_cast<size_t>(operand)];
    if (used.kind == NodeKind::store || used.kind == NodeKind::column_sum) return "uses a node without a value";
    if (used.phase > node.phase) return "runs before its operand is known";
    const bool reads_moments =
        node.kind == NodeKind::mean || node.kind == NodeKind::variance || (node.kind == NodeKind::center && k == 1);
    if ((used.kind == NodeKind::moments) != reads_moments) return "reads moments as a value, or a value as moments";
  }
  const bool needs_arg = node.kind == NodeKind::load || node.kind == NodeKind::store || node.kind == NodeKind::column_sum;
  if (needs_arg && (node.arg < 0 || node.arg >= static_cast<int>(kernel.args.size())))
    return "names an arg that does not exist";
  if (needs_arg && kernel.args[static_cast<size_t>(node.arg)].output != (node.kind != NodeKind::load)) {
    return "reads an output or writes an input";
  }
  if (node.kind == NodeKind::store && node.per_element == false) {
    const Arg& arg = kernel.args[static_cast<size_t>(node.arg)];
    for (size_t d = static_cast<size_t>(kernel.outer_rank); d < kernel.extents.size(); ++d) {
      if (arg.strides[d] != 0) return "stores one value a row to an arg that varies inside the row";
    }
  }
  return "";
}

}  // namespace

void verify(const Kernel& kernel) {
  const auto fail = [&](const std::string& what) {
    throw Error(Status::runtime_error, join("bug in lamina: kernel IR: ", what, "\n", print(kernel)));
  };
  if (kernel.outer_rank < 0 || static_cast<size_t>(kernel.outer_rank) >= kernel.extents.size()) fail("there is no inner dim");
  for (const Arg& arg : kernel.args) {
    if (arg.strides.size() != kernel.extents.size()) fail(join("arg ", arg.name, " has not one stride per dim"));
  }
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const std::string fault = fault_of(kernel, i);
    if (!fault.empty()) fail(join("node %", i, " ", fault));
  }
}

}  // namespace lamina::kernel
