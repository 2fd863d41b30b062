// A partition: ops of one graph that are compiled and executed as one unit, its inputs and outputs, and the reasons for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "interface/graph.h"

namespace lamina {

enum class PartitionPolicy : int { fusion = 1, debug = 2 };

// Why an op is in its partition. `code` is stable ("fused.consumer", "alone.shape_mismatch"); `text` is one sentence.
struct Reason {
  std::string code;
  std::string text;
  int other_op = -1;  // position of the neighbour that the reason concerns; -1: none
};

struct Partition {
  uint64_t id = 0;
  std::shared_ptr<const Graph> graph;  // the canonical graph that the positions refer to
  std::vector<int> ops;                // positions in graph->ops(), in topological order
  std::vector<ValueIndex> inputs;      // in order of first use
  std::vector<ValueIndex> outputs;     // values that are read outside, marked by End, or never read; in op order
  bool supported = true;
  std::string unsupported_reason;  // one sentence naming the op, when !supported
  bool runs_on_reference = false;  // by the reference loops, which the caller allows if its engine has no other implementation
  std::vector<std::vector<Reason>> reasons;  // per entry of `ops`
};

// The ids of the user's ops in the partition: for each op its own id, then the ids of the ops that passes have merged into
// it.
std::vector<uint64_t> op_ids(const Partition& partition);

}  // namespace lamina
