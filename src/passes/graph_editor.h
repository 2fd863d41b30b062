// How passes rewrite a finalized graph: they change ops freely (kinds, attributes, value indices), and finish() joins ports and
// values anew. Ops stay in topological order, tensor ids and op ids stay what they were; nothing is checked against schemas.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "interface/graph.h"

namespace lamina {

// Values by the names of an op's ports.
using Ports = std::map<std::string, ValueIndex, std::less<>>;

// Gives the op its ports in the order of its schema; what has no name here is left out. The attributes must be there.
void connect_ports(Op& op, const Ports& inputs, const Ports& outputs);

class GraphEditor {
 public:
  explicit GraphEditor(const Graph& graph) : source_(graph), ops_(graph.ops()), removed_(graph.ops().size(), false) {}

  const Graph& source() const { return source_; }
  size_t op_count() const { return ops_.size(); }
  Op& op(size_t position) { return ops_[position]; }
  void remove(size_t position) { removed_[position] = true; }

  // The rewritten graph, with the warnings of the source. Values that no op touches any more are gone.
  Graph finish();

  // A finalized graph of `ops`, in topological order, whose ports are value indices of `source`; behind its values count
  // `added`, tensors that the source does not have. Values keep their tensors.
  static Graph assemble(const Graph& source, std::vector<Op> ops, const std::vector<LogicalTensor>& added = {});

 private:
  const Graph& source_;
  std::vector<Op> ops_;
  std::vector<bool> removed_;
};

}  // namespace lamina
