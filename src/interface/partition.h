// A partition: ops of one graph that are compiled and executed as one, the values at its border, and the reasons behind it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "interface/graph.h"

namespace lamina {

enum class PartitionPolicy : int { fusion = 1, debug = 2 };

// Why an op is where it is. `code` is stable ("fused.consumer", "alone.shape_mismatch"); `text` is one sentence.
struct Reason {
  std::string code;
  std::string text;
  int other_op = -1;  // position of the neighbour that the reason speaks of, -1: none
};

struct Partition {
  uint64_t id = 0;
  std::shared_ptr<const Graph> graph;  // the canonical graph that the positions refer to
  std::vector<int> ops;                // positions in graph->ops(), topological order
  std::vector<ValueIndex> inputs;      // in order of first use
  std::vector<ValueIndex> outputs;     // values read outside, marked by End, or read by nobody; in op order
  bool supported = true;
  std::string unsupported_reason;            // one sentence naming the op, when !supported
  bool runs_on_reference = false;            // by plain loops, which the caller allows where its engine has nothing else
  std::vector<std::vector<Reason>> reasons;  // per entry of `ops`
};

// Ids of the user's ops that the partition stands for: of each op, then of those that passes took into it.
std::vector<uint64_t> op_ids(const Partition& partition);

}  // namespace lamina
