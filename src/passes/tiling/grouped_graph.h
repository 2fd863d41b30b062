// A graph with its fusion groups, and queries for the code that cuts it into tiles.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "interface/graph.h"
#include "passes/fusion/fuse.h"
#include "passes/tiling/dequantized_weights.h"
#include "passes/tiling/quantized_product.h"

namespace lamina {

class GroupedGraph {
 public:
  // The arguments must outlive the object. `outputs`: values that are needed outside the graph. `library`: may be null.
  GroupedGraph(const Graph& graph, const std::vector<FusionGroup>& groups, std::span<const ValueIndex> outputs,
               const LibraryCapabilities* library);

  const Graph& graph() const { return graph_; }
  size_t size() const { return groups_.size(); }
  const FusionGroup& group(size_t g) const { return groups_[g]; }
  const Op& first_op(size_t g) const { return graph_.op(groups_[g].ops.front()); }
  size_t group_of(int op) const { return group_of_[static_cast<size_t>(op)]; }
  bool is_output(ValueIndex value) const { return is_output_[static_cast<size_t>(value)]; }

  bool is_read_outside(ValueIndex value, const std::set<size_t>& members) const;
  // Whether a member computes the value and only members read it.
  bool lies_between(ValueIndex value, const std::set<size_t>& members) const;

  // Whether the group only dequantises weights of matrix products.
  bool only_dequantises_weights(size_t g) const;
  // Whether the product that reads its result dequantises the weights itself, with any other groups in its region.
  bool is_part_of_product(size_t g) const;
  // Whether it dequantises them for a product that reads the integers instead.
  bool costs_nothing(size_t g) const { return costs_nothing_.contains(g); }
  // Whether each tile must dequantise such weights, because the members do not dequantise the product's src.
  bool dequantises_in_each_tile(const std::set<size_t>& members) const;

 private:
  bool is_left_out(size_t g) const;

  const Graph& graph_;
  const std::vector<FusionGroup>& groups_;
  std::vector<size_t> group_of_;  // per op
  std::vector<bool> is_output_;   // per value
  // Groups that dequantise the weights of a product that reads integers. The product omits them if this other group is in the
  // same region: that of the src of a product of integers, or the same group.
  std::map<size_t, size_t> costs_nothing_;
};

// The quantized product of a group of one op, if the ops that it omits are separate groups.
std::optional<QuantizedProduct> quantized_group(const Graph& graph, const std::vector<FusionGroup>& groups,
                                                const FusionGroup& product);

// The same for weights that a product dequantises itself, and rows if the library multiplies their integers.
std::optional<DequantizedWeights> dequantized_group(const Graph& graph, const std::vector<FusionGroup>& groups,
                                                    const FusionGroup& product, const LibraryCapabilities& library);

}  // namespace lamina
