// What the graph knows of a partition's ports and what a caller says of them, as one description.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "interface/graph.h"
#include "interface/partition.h"

namespace lamina::compiler {

// Descriptions of a partition's ports in port order, layouts that were left open dense.
struct PortTensors {
  std::vector<LogicalTensor> inputs, outputs;
};

// As the graph has them.
PortTensors known_ports(const Partition& partition);

// Joined with what compile was given, by id and in any order: every input of known shape, outputs as far as they are known.
// `label` names the partition. Throws Error that names the port, what was given and what is allowed.
PortTensors joined_ports(const std::string& label, const Partition& partition, std::span<const LogicalTensor> inputs,
                         std::span<const LogicalTensor> outputs);

const LogicalTensor* find_by_id(std::span<const LogicalTensor> tensors, uint64_t id);  // null: none

std::string list_ids(std::span<const LogicalTensor> tensors);  // "3, 5", or "none"

}  // namespace lamina::compiler
