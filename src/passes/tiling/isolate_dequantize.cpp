#include "passes/tiling/isolate_dequantize.h"

#include <algorithm>

namespace lamina {

namespace {

bool contains(const std::vector<int>& ops, int op) { return std::find(ops.begin(), ops.end(), op) != ops.end(); }

template <typename Key, typename T, typename OpOf>
std::map<Key, T> take_entries(std::map<Key, T>& entries, const std::vector<int>& ops, const OpOf& op_of) {
  std::map<Key, T> taken;
  for (auto entry = entries.begin(); entry != entries.end();) {
    if (contains(ops, op_of(entry->first)))
      taken.insert(entries.extract(entry++));
    else
      ++entry;
  }
  return taken;
}

// Moves the ops, which reduce nothing, out of the group into a new one.
FusionGroup take_out(FusionGroup& group, const std::vector<int>& ops) {
  FusionGroup taken;
  taken.extents = group.extents;
  taken.inner.assign(group.inner.size(), false);
  const auto op_of_port = [](const std::pair<int, int>& key) { return key.first; };
  taken.input_maps = take_entries(group.input_maps, ops, op_of_port);
  taken.output_maps = take_entries(group.output_maps, ops, op_of_port);
  taken.column_outputs = take_entries(group.column_outputs, ops, [](int op) { return op; });
  for (size_t i = 0; i < group.ops.size();) {
    if (!contains(ops, group.ops[i])) {
      ++i;
      continue;
    }
    const auto at = static_cast<std::ptrdiff_t>(i);
    taken.ops.push_back(group.ops[i]);
    taken.reasons.push_back(std::move(group.reasons[i]));
    group.ops.erase(group.ops.begin() + at);
    group.reasons.erase(group.reasons.begin() + at);
  }
  return taken;
}

void put_apart(std::vector<FusionGroup>& groups, const std::vector<int>& ops) {
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto is_in = [&](int op) { return contains(groups[g].ops, op); };
    if (groups[g].ops.size() == ops.size() || groups[g].opaque_copy || !std::all_of(ops.begin(), ops.end(), is_in)) continue;
    FusionGroup apart = take_out(groups[g], ops);
    groups.insert(groups.begin() + static_cast<std::ptrdiff_t>(g) + 1, std::move(apart));
    return;
  }
}

}  // namespace

std::vector<FusionGroup> isolate_dequantize(const Graph& graph, std::vector<FusionGroup> groups,
                                            const LibraryCapabilities* library) {
  if (library == nullptr) return groups;
  for (const Op& op : graph.ops()) {
    if (const auto product = quantized_product(graph, op); product && library->takes_integers(op)) {
      put_apart(groups, product->src.ops);
      put_apart(groups, product->weights.ops);
    } else if (const auto weights = dequantized_weights(graph, op); weights && library->dequantizes_weights(op)) {
      put_apart(groups, weights->ops);
      if (weights->rows && library->multiplies_quantized_rows(op)) put_apart(groups, weights->rows->ops);
    }
  }
  return groups;
}

}  // namespace lamina
