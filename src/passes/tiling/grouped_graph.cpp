#include "passes/tiling/grouped_graph.h"

#include <algorithm>

#include "interface/op_schema.h"
#include "passes/tiling/row_view.h"

namespace lamina {

GroupedGraph::GroupedGraph(const Graph& graph, const std::vector<FusionGroup>& groups, std::span<const ValueIndex> outputs,
                           const LibraryCapabilities* library)
    : graph_(graph), groups_(groups), group_of_(graph.ops().size(), 0), is_output_(graph.values().size(), false) {
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const int op : groups[g].ops) group_of_[static_cast<size_t>(op)] = g;
  }
  for (const ValueIndex value : outputs) is_output_[static_cast<size_t>(value)] = true;
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::optional<QuantizedProduct> product = quantized_group(graph, groups, groups[g]);
    if (library == nullptr) continue;
    if (product && library->takes_integers(first_op(g)))
      costs_nothing_.emplace(group_of(product->weights.ops.front()), group_of(product->src.ops.front()));
    else if (const auto weights = dequantized_group(graph, groups, groups[g], *library);
             weights && library->dequantizes_weights(first_op(g))) {
      costs_nothing_.emplace(group_of(weights->ops.front()), group_of(weights->ops.front()));
      if (weights->rows) costs_nothing_.emplace(group_of(weights->rows->ops.front()), group_of(weights->rows->ops.front()));
    }
  }
}

bool GroupedGraph::is_read_outside(ValueIndex value, const std::set<size_t>& members) const {
  const auto& readers = graph_.value(value).consumers;
  return std::any_of(readers.begin(), readers.end(), [&](const Port& port) { return !members.contains(group_of(port.op)); });
}

bool GroupedGraph::lies_between(ValueIndex value, const std::set<size_t>& members) const {
  const Value& v = graph_.value(value);
  if (v.producer.op < 0 || is_output(value) || is_read_outside(value, members)) return false;
  const size_t maker = group_of(v.producer.op);
  return members.contains(maker) && !is_left_out(maker) &&
         std::any_of(v.consumers.begin(), v.consumers.end(), [&](const Port& reader) { return group_of(reader.op) != maker; });
}

bool GroupedGraph::only_dequantises_weights(size_t g) const {
  bool dequantises = false;
  for (const int position : groups_[g].ops) {
    const Op& op = graph_.op(position);
    const bool reshapes = schema_of(op.kind).nest == LoopNest::reshaped;
    if (!dequantises_or_casts(op) && !reshapes) return false;
    dequantises = dequantises || (op.kind != OpKind::TypeCast && !reshapes);
    if (is_output(op.outputs[0])) return false;
    for (const Port& reader : graph_.value(op.outputs[0]).consumers) {
      const bool is_weights = is_matrix_product(graph_.op(reader.op)) && reader.port == 1;
      if (!is_weights && group_of(reader.op) != g) return false;
    }
  }
  return dequantises;
}

bool GroupedGraph::is_part_of_product(size_t g) const {
  const auto found = costs_nothing_.find(g);
  return found != costs_nothing_.end() && found->second == g;
}

bool GroupedGraph::dequantises_in_each_tile(const std::set<size_t>& members) const {
  return std::any_of(costs_nothing_.begin(), costs_nothing_.end(), [&](const auto& weights_and_src) {
    return members.contains(weights_and_src.first) && !members.contains(weights_and_src.second);
  });
}

// Whether a product of integers reads the values that the group would dequantise.
bool GroupedGraph::is_left_out(size_t g) const {
  return std::any_of(costs_nothing_.begin(), costs_nothing_.end(),
                     [g](const auto& factors) { return factors.first == g || factors.second == g; });
}

namespace {
bool is_a_group(const std::vector<FusionGroup>& groups, std::vector<int> ops) {
  std::sort(ops.begin(), ops.end());
  return std::any_of(groups.begin(), groups.end(), [&](const FusionGroup& group) { return group.ops == ops; });
}
}  // namespace

std::optional<QuantizedProduct> quantized_group(const Graph& graph, const std::vector<FusionGroup>& groups,
                                                const FusionGroup& product) {
  if (product.no_loop_nest.empty()) return std::nullopt;
  std::optional<QuantizedProduct> found = quantized_product(graph, graph.op(product.ops.front()));
  if (!found || !is_a_group(groups, found->src.ops) || !is_a_group(groups, found->weights.ops)) return std::nullopt;
  return found;
}

std::optional<DequantizedWeights> dequantized_group(const Graph& graph, const std::vector<FusionGroup>& groups,
                                                    const FusionGroup& product, const LibraryCapabilities& library) {
  if (product.no_loop_nest.empty()) return std::nullopt;
  const Op& op = graph.op(product.ops.front());
  std::optional<DequantizedWeights> found = dequantized_weights(graph, op);
  if (!found || !is_a_group(groups, found->ops)) return std::nullopt;
  if (found->rows && (!library.multiplies_quantized_rows(op) || !is_a_group(groups, found->rows->ops))) found->rows.reset();
  return found;
}

}  // namespace lamina
