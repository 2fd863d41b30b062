// How passes rewrite a finalized graph. They change ops freely (kinds, attributes, value indices), and finish() connects
// ports and values again. The order of ops stays topological, and tensor ids and op ids do not change; an op that is repeated
// keeps its id. Nothing is checked against schemas.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "interface/graph.h"

namespace lamina {

// Values by the names of an op's ports.
using Ports = std::map<std::string, ValueIndex, std::less<>>;

// Sets the op's ports in the order of its schema. Ports without a name in the maps are absent. The op's attributes must be
// set before.
void connect_ports(Op& op, const Ports& inputs, const Ports& outputs);

class GraphEditor {
 public:
  explicit GraphEditor(const Graph& graph)
      : source_(graph), ops_(graph.ops()), inserted_(graph.ops().size()), removed_(graph.ops().size(), false) {
    for (const Value& value : graph.values()) next_tensor_ = std::max(next_tensor_, value.tensor.id + 1);
  }

  const Graph& source() const { return source_; }
  size_t op_count() const { return ops_.size(); }
  Op& op(size_t position) { return ops_[position]; }
  void remove(size_t position) { removed_[position] = true; }
  // Adds a value with an id that no other tensor has.
  ValueIndex add_new(LogicalTensor tensor) {
    tensor.id = next_tensor_++;
    return add(std::move(tensor));
  }
  // Adds a value, or an op in front of the op of the source at `position`.
  ValueIndex add(LogicalTensor tensor) {
    added_.push_back(std::move(tensor));
    return static_cast<ValueIndex>(source_.values().size() + added_.size() - 1);
  }
  void insert(size_t position, Op op) { inserted_[position].push_back(std::move(op)); }

  // The rewritten graph, with the warnings of the source. Values that no op uses are removed.
  Graph finish();

  // Returns a finalized graph of `ops`, which are in topological order. Their ports are value indices of `source`. Tensors in
  // `added` do not exist in the source and get the indices after its values. Values keep their tensors.
  static Graph assemble(const Graph& source, std::vector<Op> ops, const std::vector<LogicalTensor>& added = {});

  // The same, but all values keep their indices, used or not, and `ops` may be in any order.
  static Graph extend(const Graph& source, std::vector<Op> ops, const std::vector<LogicalTensor>& added);

 private:
  const Graph& source_;
  std::vector<Op> ops_;
  std::vector<std::vector<Op>> inserted_;  // in front of each op
  std::vector<LogicalTensor> added_;
  std::vector<bool> removed_;
  uint64_t next_tensor_ = 0;
};

}  // namespace lamina
