#include "kernels/kernel_ir.h"

#include <algorithm>

#include "interface/status.h"

namespace lamina::kernel {

Type compute_type(DataType dtype) {
  switch (dtype) {
#define LAMINA_CASE(name) \
  case DataType::name: return Type::name;
    LAMINA_KERNEL_TYPES(LAMINA_CASE)
#undef LAMINA_CASE
    default: return Type::f32;
  }
}

DataType data_type_of(Type type) {
  static constexpr DataType types[] = {
#define LAMINA_DATA_TYPE_OF(name) DataType::name,
      LAMINA_KERNEL_TYPES(LAMINA_DATA_TYPE_OF)
#undef LAMINA_DATA_TYPE_OF
  };
  return types[static_cast<size_t>(type)];
}

bool is_integer(Type type) { return lamina::is_integer(data_type_of(type)); }
bool is_signed_integer(Type type) { return lamina::is_signed_integer(data_type_of(type)); }

bool Kernel::has_row_reduction() const { return std::any_of(nodes.begin(), nodes.end(), reduces_rows); }

bool Kernel::has_column_sum() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const Node& n) { return n.kind == NodeKind::column_sum; });
}

bool Kernel::has_segment_sum() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const Node& n) { return n.kind == NodeKind::segment_sum; });
}

int Kernel::phase_count() const {
  int last = 0;
  for (const Node& node : nodes) {
    if (node.per_element || writes_arg(node)) last = std::max(last, node.phase);
  }
  return last + 1;
}

int64_t Kernel::row_count() const {
  return checked_product(Dims(extents.begin(), extents.begin() + outer_rank), "the outer extents of a kernel");
}

int64_t Kernel::entry_count() const {
  return checked_product(Dims(extents.begin(), extents.begin() + entry_rank), "the entries of a kernel's column sums");
}

bool Kernel::sums_entries(const Arg& arg) const {
  return arg.column && std::any_of(arg.strides.begin(), arg.strides.begin() + entry_rank, [](int64_t s) { return s != 0; });
}

int64_t Kernel::row_size() const {
  return checked_product(Dims(extents.begin() + outer_rank, extents.end()), "the inner extents of a kernel");
}

// Row values in f64 (the threshold of a dropout) do not count: they need no f64 vectors.
bool Kernel::computes_in_f64() const {
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Node& n) { return n.type == Type::f64 && (n.per_element || reduces_rows(n)); });
}

std::vector<bool> element_nodes_of(const Kernel& kernel, NodeIndex root) {
  std::vector<bool> needed(kernel.nodes.size(), false);
  needed[static_cast<size_t>(root)] = kernel.node(root).per_element;
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
    if (!made_of[i] || !reads_arg(kernel.nodes[i])) continue;
    const bool is_sum = kernel.nodes[i].kind == NodeKind::sum_entries;
    const DataType dtype = is_sum ? DataType::f64 : kernel.arg(kernel.nodes[i].arg).dtype;
    if (dtype != DataType::bf16 && dtype != DataType::f16) return DataType::undef;
    if (precision != DataType::f16) precision = dtype;
  }
  return precision;
}

std::optional<IndexRange> index_range(const Kernel& kernel, int arg) {
  std::optional<IndexRange> range;
  for (const Node& node : kernel.nodes) {
    if (node.kind != NodeKind::sum_entries && node.kind != NodeKind::load_entry) continue;
    const int64_t last = std::max<int64_t>(kernel.arg(node.arg).entries, 1) - 1;
    const Node& number = kernel.node(node.operands[0]);
    if (node.order == arg) return IndexRange{0, last, true};
    if (node.order >= 0 && number.arg == arg)
      return IndexRange{0, kernel.arg(node.arg).entries == 0 ? 0 : kernel.arg(node.order).entries, true};
    if (node.order < 0 && number.kind != NodeKind::constant && (!range || last < range->last)) range = {-last - 1, last};
  }
  return range;
}

// Of an arg that is read by index: an entry for each element and each read, but nothing twice.
static int64_t elements_by_index(const Kernel& kernel, size_t arg) {
  int64_t reads = 0, elements = 1;
  for (const Node& node : kernel.nodes) {
    if (node.arg != static_cast<int>(arg)) continue;
    reads += node.kind == NodeKind::load_entry    ? 1
             : node.kind == NodeKind::sum_entries ? std::max<int64_t>(static_cast<int64_t>(node.value), 1)
                                                  : 0;
  }
  for (const int64_t extent : kernel.extents) elements *= extent;
  return std::min(elements * std::max<int64_t>(reads, 1), span_of(kernel, kernel.args[arg]));
}

int64_t moved_bytes(const Kernel& kernel) {
  int64_t bytes = 0;
  for (size_t a = 0; a < kernel.args.size(); ++a) {
    const Arg& arg = kernel.args[a];
    const std::optional<IndexRange> range = index_range(kernel, static_cast<int>(a));
    int64_t elements = 1;
    for (size_t d = 0; d < arg.strides.size(); ++d) elements *= arg.strides[d] != 0 ? kernel.extents[d] : 1;
    if (arg.entry_stride != 0 && !(range && range->sorted)) elements = elements_by_index(kernel, a);
    bytes += bytes_of(arg.dtype, elements);
  }
  return bytes;
}

int64_t span_of(const Kernel& kernel, const Arg& arg) {
  int64_t last = std::max<int64_t>(arg.entries - 1, 0) * arg.entry_stride;
  for (size_t d = 0; d < arg.strides.size(); ++d) last += (kernel.extents[d] - 1) * arg.strides[d];
  return std::max<int64_t>(last + 1, 0);
}

bool is_load(const Node& node) { return node.kind == NodeKind::load || node.kind == NodeKind::load_entry; }

bool reads_arg(const Node& node) { return is_load(node) || node.kind == NodeKind::sum_entries; }

bool writes_arg(const Node& node) {
  return node.kind == NodeKind::store || node.kind == NodeKind::column_sum || node.kind == NodeKind::segment_sum;
}

bool reduces_rows(const Node& node) {
  return node.kind == NodeKind::reduce || node.kind == NodeKind::moments || node.kind == NodeKind::segment_sum;
}

size_t first_segment_dim(const Kernel& kernel, const Arg& arg) {
  size_t dim = kernel.extents.size();
  while (dim > static_cast<size_t>(kernel.outer_rank) && arg.strides[dim - 1] == 0) --dim;
  return dim;
}

int operand_count(const Node& node) {
  int count = 0;
  while (count < 3 && node.operands[static_cast<size_t>(count)] >= 0) ++count;
  return count;
}

namespace {

enum class Takes { number, real, value, boolean, s64, integer, long_integer, choice };
enum class Gives { same, boolean, chosen };

struct MapFacts {
  MapOp op;
  const char* name;
  int operands;
  Takes takes;
  Gives gives;
  CostClass cost;
};

constexpr MapFacts kMaps[] = {
#define LAMINA_MAP_OP(name, operands, takes, gives, cost) \
  {MapOp::name, #name, operands, Takes::takes, Gives::gives, CostClass::cost},
#include "kernels/math/map_ops.def"
};

const MapFacts& facts_of(MapOp op) { return kMaps[static_cast<size_t>(op)]; }

bool accepts(Takes takes, Type type) {
  switch (takes) {
    case Takes::number: return type != Type::boolean;
    case Takes::real: return is_real(type);
    case Takes::boolean: return type == Type::boolean;
    case Takes::s64: return type == Type::s64;
    case Takes::integer: return is_integer(type);
    case Takes::long_integer: return is_integer(type) && bits_of(data_type_of(type)) == 64;
    case Takes::value:
    case Takes::choice: return true;
  }
  return false;
}

}  // namespace

const char* name_of(MapOp op) { return facts_of(op).name; }

const char* name_of(CostClass cost) {
  static constexpr const char* names[] = {"simple", "division", "function", "random"};
  return names[static_cast<size_t>(cost)];
}

CostClass cost_of(const Node& node) {
  if (node.kind == NodeKind::sum_entries) return CostClass::function;
  return node.kind == NodeKind::map ? facts_of(node.op).cost : CostClass::simple;
}

Type result_of(MapOp op, Type first, Type second, Type chosen) {
  switch (facts_of(op).gives) {
    case Gives::boolean: return Type::boolean;
    case Gives::chosen: return chosen;
    case Gives::same: return facts_of(op).takes == Takes::choice ? second : first;
  }
  return chosen;
}

const char* name_of(Type type) {
  static constexpr const char* names[] = {
#define LAMINA_NAME(name) #name,
      LAMINA_KERNEL_TYPES(LAMINA_NAME)
#undef LAMINA_NAME
  };
  return names[static_cast<size_t>(type)];
}

namespace {

int expected_operands(const Node& node) {
  switch (node.kind) {
    case NodeKind::load:
    case NodeKind::constant:
    case NodeKind::index: return 0;
    case NodeKind::sum_entries:
    case NodeKind::center: return 2;
    case NodeKind::map: return facts_of(node.op).operands;
    default: return 1;
  }
}

std::string types_of_operands(const Kernel& kernel, const Node& node) {
  std::string text;
  for (int k = 0; k < operand_count(node); ++k)
    text += join(k == 0 ? "" : ", ", name_of(kernel.node(node.operands[static_cast<size_t>(k)]).type));
  return text;
}

std::string map_type_fault(const Kernel& kernel, const Node& node) {
  const MapFacts& map = facts_of(node.op);
  const auto type = [&](int k) { return kernel.node(node.operands[static_cast<size_t>(k)]).type; };
  const int first = map.takes == Takes::choice ? 1 : 0;
  bool fits = first == 0 || type(0) == Type::boolean;
  for (int k = first; k < map.operands; ++k) fits = fits && type(k) == type(first) && accepts(map.takes, type(k));
  if (!fits) return join("is ", map.name, " of ", types_of_operands(kernel, node));
  return node.type == result_of(node.op, type(0), type(first), node.type) ? ""
                                                                          : join("says that its type is ", name_of(node.type));
}

// A node is a value per element if an operand or the arg that it reads varies along the row. Reductions are values per row.
bool is_per_element(const Kernel& kernel, const Node& node) {
  if (node.kind == NodeKind::reduce || node.kind == NodeKind::moments) return false;
  const auto inner = static_cast<size_t>(kernel.outer_rank);
  const auto varies = [&](const Dims& steps) {
    for (size_t d = inner; d < steps.size(); ++d)
      if (steps[d] != 0) return true;
    return false;
  };
  if (node.kind == NodeKind::index) return varies(node.coefficients);
  if (reads_arg(node) && varies(kernel.arg(node.arg).strides)) return true;
  for (int k = 0; k < operand_count(node); ++k)
    if (kernel.node(node.operands[static_cast<size_t>(k)]).per_element) return true;
  return node.kind == NodeKind::store && varies(kernel.arg(node.arg).strides);
}

// The number of passes over the row that the node needs after its operands are known.
int passes_of(NodeKind kind) { return kind == NodeKind::reduce ? 1 : kind == NodeKind::moments ? 2 : 0; }

// A sentence that describes what is wrong with node `i`, or "".
std::string fault_of(const Kernel& kernel, size_t i) {
  const Node& node = kernel.nodes[i];
  const bool scaled_center = node.kind == NodeKind::center && operand_count(node) == 3;
  const bool may_be_absent = node.kind == NodeKind::load_entry && operand_count(node) == 2;
  if (operand_count(node) != expected_operands(node) && !scaled_center && !may_be_absent)
    return "has the wrong number of operands";
  for (int k = 0; k < operand_count(node); ++k) {
    const NodeIndex operand = node.operands[static_cast<size_t>(k)];
    if (operand >= static_cast<NodeIndex>(i)) return "uses a node that comes after it";
    const Node& used = kernel.node(operand);
    if (writes_arg(used)) return "uses a node without a value";
    if (used.phase + passes_of(node.kind) > node.phase) return "runs before its operand is known";
    const bool reads_moments =
        node.kind == NodeKind::mean || node.kind == NodeKind::variance || (node.kind == NodeKind::center && k == 1);
    if ((used.kind == NodeKind::moments) != reads_moments) return "reads moments as a value, or a value as moments";
  }
  const bool needs_arg = reads_arg(node) || writes_arg(node);
  if (needs_arg && (node.arg < 0 || node.arg >= static_cast<int>(kernel.args.size())))
    return "names an arg that does not exist";
  if (needs_arg && kernel.arg(node.arg).output == reads_arg(node)) {
    return "reads an output or writes an input";
  }
  if ((node.kind == NodeKind::sum_entries) != (node.order >= 0) || node.order >= static_cast<int>(kernel.args.size()) ||
      (node.order >= 0 && (kernel.arg(node.order).output || kernel.arg(node.order).dtype != DataType::s64)))
    return "has no order, or one that is not an input of s64";
  if (node.kind == NodeKind::segment_sum) {
    const auto outer = static_cast<size_t>(kernel.outer_rank), first = first_segment_dim(kernel, kernel.arg(node.arg));
    const Dims& strides = kernel.arg(node.arg).strides;
    const bool varies_first = std::find(strides.begin() + kernel.outer_rank, strides.begin() + static_cast<long>(first), 0) ==
                              strides.begin() + static_cast<long>(first);
    if (first == outer || first == kernel.extents.size() || !varies_first)
      return "sums segments to an arg that does not vary along the first inner dims alone";
  }
  if (node.kind == NodeKind::store && node.per_element == false) {
    const Arg& arg = kernel.arg(node.arg);
    for (size_t d = static_cast<size_t>(kernel.outer_rank); d < kernel.extents.size(); ++d) {
      if (arg.strides[d] != 0) return "stores one value a row to an arg that varies inside the row";
    }
  }
  if (node.per_element != is_per_element(kernel, node))
    return node.per_element ? "says that it varies along the row" : "says that it does not vary along the row";
  return type_fault(kernel, node);
}

}  // namespace

std::string type_fault(const Kernel& kernel, const Node& node) {
  const auto operand = [&](size_t k) { return kernel.node(node.operands[k]).type; };
  switch (node.kind) {
    case NodeKind::map: return map_type_fault(kernel, node);
    case NodeKind::load:
    case NodeKind::load_entry:
      if (node.kind == NodeKind::load_entry && operand(0) != Type::s64) return "numbers an entry by another type than s64";
      if (operand_count(node) == 2 && operand(1) != Type::boolean)
        return "says by another type than boolean whether an entry exists";
      return node.type == compute_type(kernel.arg(node.arg).dtype) ? "" : "loads another type than its arg's";
    case NodeKind::sum_entries:
      if (operand(0) != Type::s64 || operand(1) != Type::s64) return "sums from or to another type than s64";
      return node.type == Type::f64 ? "" : "is a sum of entries whose type is not f64";
    case NodeKind::constant: return "";
    case NodeKind::index: return node.type == Type::s64 ? "" : "is an index whose type is not s64";
    case NodeKind::moments:
    case NodeKind::mean:
    case NodeKind::variance:
    case NodeKind::center:
      if (!accepts(Takes::real, node.type)) return join("computes moments in ", name_of(node.type));
      break;
    case NodeKind::store:
      if (!accepts(Takes::real, node.type) && node.type != compute_type(kernel.arg(node.arg).dtype))
        return join("stores ", name_of(node.type), " as ", lamina::name_of(kernel.arg(node.arg).dtype));
      break;
    case NodeKind::reduce:
    case NodeKind::column_sum:
    case NodeKind::segment_sum: break;
  }
  for (int k = 0; k < operand_count(node); ++k)
    if (operand(static_cast<size_t>(k)) != node.type)
      return join("says that its type is ", name_of(node.type), ", with operands of ", types_of_operands(kernel, node));
  return "";
}

void verify(const Kernel& kernel) {
  const auto fail = [&](const std::string& what) {
    throw Error(Status::runtime_error, join("bug in lamina: kernel IR: ", what, "\n", print(kernel)));
  };
  if (kernel.outer_rank < 0 || static_cast<size_t>(kernel.outer_rank) >= kernel.extents.size()) fail("there is no inner dim");
  for (const Arg& arg : kernel.args) {
    if (arg.strides.size() != kernel.extents.size()) fail(join("arg ", arg.name, " has not one stride per dim"));
  }
  if (kernel.entry_rank < 0 || kernel.entry_rank > kernel.outer_rank) fail("entries of column sums are along inner dims");
  for (const Arg& arg : kernel.args) {
    for (int d = 0; arg.column && d < kernel.outer_rank; ++d) {
      const bool varies = arg.strides[static_cast<size_t>(d)] != 0,
                 may_vary = d < kernel.entry_rank && kernel.sums_entries(arg);
      const bool is_wrong = kernel.extents[static_cast<size_t>(d)] > 1 && varies != may_vary;
      if (is_wrong) fail(join("column sum ", arg.name, " varies along other dims than those of the entries"));
    }
  }
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const std::string fault = fault_of(kernel, i);
    if (!fault.empty()) fail(join("node %", i, " ", fault));
  }
}

}  // namespace lamina::kernel
