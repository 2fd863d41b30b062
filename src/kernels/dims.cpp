#include "kernels/dims.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace lamina::kernel {

namespace {

// Applies f to each list that has one entry per dim: extents, strides of args, coefficients of index nodes.
template <typename F>
void for_each_dim_list(Kernel& kernel, F f) {
  f(kernel.extents);
  for (Arg& arg : kernel.args) f(arg.strides);
  for (Node& node : kernel.nodes) {
    if (node.kind == NodeKind::index) f(node.coefficients);
  }
}

// Keeps the dims listed in `order`, in that order.
void permute(Kernel& kernel, const std::vector<size_t>& order) {
  for_each_dim_list(kernel, [&](Dims& list) {
    Dims permuted;
    for (const size_t d : order) permuted.push_back(list[d]);
    list = std::move(permuted);
  });
}

// The arg whose layout decides the order of dims: the one with the most varying dims, an output if several have as many.
const Arg& leading_arg(const Kernel& kernel) {
  const auto varying = [&](const Arg& arg) {
    return std::count_if(arg.strides.begin(), arg.strides.end(), [](int64_t s) { return s != 0; }) * 2 + (arg.output ? 1 : 0);
  };
  return *std::max_element(kernel.args.begin(), kernel.args.end(),
                           [&](const Arg& a, const Arg& b) { return varying(a) < varying(b); });
}

// Without sums, each step along a dim in which no output varies stores the same value again. One step is enough.
void walk_once_where_outputs_are_one(Kernel& kernel) {
  for (size_t d = 0; d < kernel.extents.size(); ++d) {
    const bool varies =
        std::any_of(kernel.args.begin(), kernel.args.end(), [&](const Arg& arg) { return arg.output && arg.strides[d] != 0; });
    if (!varies) kernel.extents[d] = 1;
  }
}

// Whether a segment sum varies along the inner dim `d`. Such dims stay the first of the inner ones.
bool numbers_segments(const Kernel& kernel, size_t d) {
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [&](const Node& node) {
    return node.kind == NodeKind::segment_sum && kernel.arg(node.arg).strides[d] != 0;
  });
}

void drop_unit_dims_and_order(Kernel& kernel) {
  std::vector<size_t> entries, outer, segments, inner;
  for (size_t d = 0; d < kernel.extents.size(); ++d) {
    if (kernel.extents[d] == 1) continue;
    const bool of_entries = d < static_cast<size_t>(kernel.entry_rank), is_outer = d < static_cast<size_t>(kernel.outer_rank);
    (of_entries ? entries : is_outer ? outer : numbers_segments(kernel, d) ? segments : inner).push_back(d);
  }
  if (!kernel.args.empty()) {
    const Dims strides = leading_arg(kernel).strides;
    for (std::vector<size_t>* dims : {&entries, &outer, &segments, &inner})
      std::stable_sort(dims->begin(), dims->end(), [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  }
  std::vector<size_t> order = entries;
  order.insert(order.end(), outer.begin(), outer.end());
  kernel.entry_rank = static_cast<int>(entries.size());
  kernel.outer_rank = static_cast<int>(order.size());
  order.insert(order.end(), segments.begin(), segments.end());
  order.insert(order.end(), inner.begin(), inner.end());
  permute(kernel, order);
}

// Dims d and d + 1 can be one loop if in every list a step of d equals a full run over d + 1.
bool can_merge(Kernel& kernel, size_t d) {
  bool mergeable = true;
  const int64_t extent = kernel.extents[d + 1];
  for_each_dim_list(kernel, [&](const Dims& list) {
    int64_t whole = 0;
    if (&list != &kernel.extents)
      mergeable = mergeable && !__builtin_mul_overflow(list[d + 1], extent, &whole) && list[d] == whole;
  });
  return mergeable;
}

void merge_dims(Kernel& kernel, size_t first, size_t last) {
  for (size_t d = last; d-- > first + 1;) {
    if (!can_merge(kernel, d - 1)) continue;
    kernel.extents[d] *= kernel.extents[d - 1];
    for_each_dim_list(kernel, [&](Dims& list) { list.erase(list.begin() + static_cast<int64_t>(d) - 1); });
    if (d - 1 < static_cast<size_t>(kernel.outer_rank)) --kernel.outer_rank;
    if (d - 1 < static_cast<size_t>(kernel.entry_rank)) --kernel.entry_rank;
  }
}

void append_unit_dim(Kernel& kernel) {
  for_each_dim_list(kernel, [&](Dims& list) { list.push_back(&list == &kernel.extents ? 1 : 0); });
}

// Whether a value varies inside a row follows from the inner strides of the args that it depends on.
void recompute_levels(Kernel& kernel) {
  const auto varies_inside = [&](const Dims& list) {
    return std::any_of(list.begin() + kernel.outer_rank, list.end(), [](int64_t s) { return s != 0; });
  };
  for (Node& node : kernel.nodes) {
    if (node.kind == NodeKind::load)
      node.per_element = varies_inside(kernel.arg(node.arg).strides);
    else if (node.kind == NodeKind::index)
      node.per_element = varies_inside(node.coefficients);
    else if (node.kind == NodeKind::reduce || node.kind == NodeKind::moments || node.kind == NodeKind::constant)
      node.per_element = false;
    else {
      const bool has_steps = node.kind == NodeKind::store || reads_arg(node);
      node.per_element = has_steps && varies_inside(kernel.arg(node.arg).strides);
      for (int k = 0; k < operand_count(node); ++k) {
        node.per_element |= kernel.node(node.operands[static_cast<size_t>(k)]).per_element;
      }
    }
  }
}

}  // namespace

void simplify_dims(Kernel& kernel) {
  const bool reduces = kernel.has_row_reduction() || kernel.has_column_sum();
  if (!reduces) kernel.outer_rank = kernel.entry_rank = 0;
  if (!reduces) walk_once_where_outputs_are_one(kernel);
  drop_unit_dims_and_order(kernel);
  merge_dims(kernel, static_cast<size_t>(kernel.outer_rank), kernel.extents.size());
  merge_dims(kernel, static_cast<size_t>(kernel.entry_rank), static_cast<size_t>(kernel.outer_rank));
  merge_dims(kernel, 0, static_cast<size_t>(kernel.entry_rank));
  if (!reduces && !kernel.extents.empty()) kernel.outer_rank = static_cast<int>(kernel.extents.size()) - 1;
  if (kernel.extents.size() == static_cast<size_t>(kernel.outer_rank)) append_unit_dim(kernel);
  recompute_levels(kernel);
}

void store_sums_of_one_row(Kernel& kernel) {
  if (kernel.row_count() != 1) return;
  const auto append = [&](Node node) {
    const Node& value = kernel.node(node.operands[0]);
    node.type = value.type;
    node.per_element = value.per_element;
    node.phase = value.phase;
    kernel.nodes.push_back(std::move(node));
    return static_cast<NodeIndex>(kernel.nodes.size()) - 1;
  };
  const size_t count = kernel.nodes.size();
  for (size_t i = 0; i < count; ++i) {
    if (kernel.nodes[i].kind != NodeKind::column_sum) continue;
    const Node sum = kernel.nodes[i];
    kernel.nodes[i] = {.kind = NodeKind::constant, .type = sum.type, .coefficients = {}};
    const NodeIndex value = append({.kind = NodeKind::map,
                                    .op = MapOp::add,
                                    .operands = {sum.operands[0], static_cast<NodeIndex>(i), -1},
                                    .coefficients = {}});
    append({.kind = NodeKind::store, .operands = {value, -1, -1}, .arg = sum.arg, .coefficients = {}});
    kernel.args[static_cast<size_t>(sum.arg)].column = false;
  }
}

}  // namespace lamina::kernel
