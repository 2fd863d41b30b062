// In:    a canonical graph, its fusion groups in an order in which they can run, and the reasons why ops do not run.
// Out:   one partition per group, and one per op that does not run, with the reason. Ids count from 0.
// Keeps: an order in which the partitions can run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "interface/partition.h"
#include "passes/fusion/fuse.h"

namespace lamina {

// `why_not`: per op; "" if it runs.
std::vector<Partition> make_partitions(const std::shared_ptr<const Graph>& graph, std::vector<FusionGroup> groups,
                                       const std::vector<std::string>& why_not);

// Values that cross the border of a set of ops (positions in ascending order), in the order that Partition documents.
std::vector<ValueIndex> border_inputs(const Graph& graph, const std::vector<int>& ops);
std::vector<ValueIndex> border_outputs(const Graph& graph, const std::vector<int>& ops);

}  // namespace lamina
