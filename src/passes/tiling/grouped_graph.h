// A graph and its fusion groups, and what those who cut it into tiles ask of both.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "interface/graph.h"
#include "passes/fusion/fuse.h"
#include "passes/tiling/quantized_product.h"

namespace lamina {

class GroupedGraph {
 public:
  // All of them outlive this. `outputs`: values that are needed outside of the graph.
  GroupedGraph(const Graph& graph, const std::vector<FusionGroup>& groups, std::span<const ValueIndex> outputs,
               const IntegerSupport& integers);

  const Graph& graph() const { return graph_; }
  size_t size() const { return groups_.size(); }
  const FusionGroup& group(size_t g) const { return groups_[g]; }
  const Op& first_op(size_t g) const { return graph_.op(groups_[g].ops.front()); }
  size_t group_of(int op) const { return group_of_[static_cast<size_t>(op)]; }
  bool is_output(ValueIndex value) const { return is_output_[static_cast<size_t>(value)]; }

  bool is_read_outside(ValueIndex value, const std::set<size_t>& members) const;
  // Made by one of the members, and read by others of them alone.
  bool lies_between(ValueIndex value, const std::set<size_t>& members) const;

  // Whether the group makes weights of products of numbers in few bits, and nothing else.
  bool only_dequantises_weights(size_t g) const;
  // It makes them of a product that takes them as integers.
  bool costs_nothing(size_t g) const { return costs_nothing_.contains(g); }
  // Weights of such a product whose src is dequantised by no member: then they have to be, too.
  bool dequantises_in_each_tile(const std::set<size_t>& members) const;

 private:
  bool is_left_out(size_t g) const;

  const Graph& graph_;
  const std::vector<FusionGroup>& groups_;
  std::vector<size_t> group_of_;  // per op
  std::vector<bool> is_output_;   // per value
  // Groups that dequantise the weights of a product of integers, which leaves them out where it has those of its src beside it.
  std::map<size_t, size_t> costs_nothing_;
};

// The quantized product that a group of one op is, if the ops that it leaves out are groups of their own.
std::optional<QuantizedProduct> quantized_group(const Graph& graph, const std::vector<FusionGroup>& groups,
                                                const FusionGroup& product);

}  // namespace lamina
