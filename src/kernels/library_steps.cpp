#include "kernels/library_steps.h"

#include <algorithm>

#include "passes/tiling/grouped_graph.h"

namespace lamina::kernel {

namespace {

class Finder {
 public:
  Finder(const Graph& graph, std::span<const ValueIndex> outputs, const LibraryCapabilities& library)
      : graph_(graph), outputs_(outputs), library_(library) {}

  LibrarySteps run(const std::vector<FusionGroup>& groups, const std::vector<TileRegion>& regions) {
    for (const TileRegion& region : regions)
      if (region.rows == 0) find_quantized(groups, groups[region.groups.front()]);
    for (const TileRegion& region : regions)
      if (region.rows == 0) find_post_ops_in(groups[region.groups.front()]);
    return std::move(steps_);
  }

 private:
  // Leaves out groups that only dequantise the factors of a product: the product reads the integers.
  void find_quantized(const std::vector<FusionGroup>& groups, const FusionGroup& group) {
    const std::optional<QuantizedProduct> found = quantized_group(graph_, groups, group);
    if (!found || is_kept(found->src.ops) || is_kept(found->weights.ops) ||
        !library_.takes_integers(graph_.op(group.ops.front())))
      return find_dequantized(groups, group);
    steps_.quantized.emplace(group.ops.front(), *found);
    leave_out(group.ops.front());
  }
  void find_dequantized(const std::vector<FusionGroup>& groups, const FusionGroup& group) {
    std::optional<DequantizedWeights> found = dequantized_group(graph_, groups, group, library_);
    if (!found || is_kept(found->ops) || !library_.dequantizes_weights(graph_.op(group.ops.front()))) return;
    if (found->rows && is_kept(found->rows->ops)) found->rows.reset();
    steps_.dequantized.emplace(group.ops.front(), std::move(*found));
    leave_out(group.ops.front());
  }
  void leave_out(int product) {
    const std::vector<int> omitted = steps_.omitted_ops(product);
    steps_.left_out.insert(omitted.begin(), omitted.end());
  }
  bool is_output(ValueIndex value) const { return std::find(outputs_.begin(), outputs_.end(), value) != outputs_.end(); }
  bool is_kept(const std::vector<int>& ops) const {
    return std::any_of(ops.begin(), ops.end(), [&](int op) { return is_output(graph_.op(op).outputs[0]); });
  }

  // Groups of elementwise ops that follow a product of integers become part of its step, which runs at the group's place.
  void find_post_ops_in(const FusionGroup& group) {
    const int product = product_before(group);
    if (product < 0) return;
    std::optional<PostOps> found =
        find_post_ops(graph_, graph_.op(product), group, library_, [this](ValueIndex value) { return is_output(value); });
    if (!found) return;
    steps_.post_ops.emplace(product, std::move(*found));
    steps_.product_of.emplace(group.ops.front(), product);
  }
  // The product of integers whose result only the group reads; -1 if there is none.
  int product_before(const FusionGroup& group) const {
    for (const auto& [position, product] : steps_.quantized) {
      const auto& readers = graph_.value(graph_.op(position).outputs[0]).consumers;
      if (readers.size() == 1 && std::find(group.ops.begin(), group.ops.end(), readers[0].op) != group.ops.end())
        return position;
    }
    return -1;
  }

  const Graph& graph_;
  std::span<const ValueIndex> outputs_;
  const LibraryCapabilities& library_;
  LibrarySteps steps_;
};

}  // namespace

std::vector<ValueIndex> LibrarySteps::inputs(const Graph& graph, int position) const {
  std::vector<ValueIndex> values = graph.op(position).inputs;
  if (const auto found = quantized.find(position); found != quantized.end()) {
    values[0] = found->second.src.value;
    values[1] = found->second.weights.value;
  }
  if (const auto found = dequantized.find(position); found != dequantized.end()) {
    if (found->second.rows) values[0] = found->second.rows->value;
    values[1] = found->second.value;
  }
  return values;
}

std::vector<int> LibrarySteps::omitted_ops(int position) const {
  std::vector<int> ops;
  const auto add = [&](const std::vector<int>& more) { ops.insert(ops.end(), more.begin(), more.end()); };
  if (const auto found = quantized.find(position); found != quantized.end()) {
    add(found->second.src.ops);
    add(found->second.weights.ops);
  }
  if (const auto found = dequantized.find(position); found != dequantized.end()) {
    add(found->second.ops);
    if (found->second.rows) add(found->second.rows->ops);
  }
  return ops;
}

std::vector<ValueIndex> LibrarySteps::outputs(const Graph& graph, int position) const {
  const auto found = post_ops.find(position);
  return found == post_ops.end() ? graph.op(position).outputs : std::vector<ValueIndex>{found->second.result};
}

LibrarySteps find_library_steps(const Graph& graph, std::span<const ValueIndex> outputs, const std::vector<FusionGroup>& groups,
                                const std::vector<TileRegion>& regions, const LibraryCapabilities* library) {
  return library == nullptr ? LibrarySteps{} : Finder(graph, outputs, *library).run(groups, regions);
}

}  // namespace lamina::kernel
