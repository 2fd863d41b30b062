// Merges the graph's descriptions of a partition's ports with the caller's.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "interface/graph.h"
#include "interface/partition.h"

namespace lamina::compiler {

// Descriptions of a partition's ports in port order; unspecified layouts have become dense.
struct PortTensors {
  std::vector<LogicalTensor> inputs, outputs;
};

// The ports as the graph describes them.
PortTensors known_ports(const Partition& partition);

// The ports merged with the tensors passed to compile, which are matched by id in any order. Inputs need known shapes;
// outputs may be incomplete. `label` is the partition's name in messages. Throws Error with the port, the given and the
// allowed value.
PortTensors joined_ports(const std::string& label, const Partition& partition, std::span<const LogicalTensor> inputs,
                         std::span<const LogicalTensor> outputs);

const LogicalTensor* find_by_id(std::span<const LogicalTensor> tensors, uint64_t id);  // null: none

std::string list_ids(std::span<const LogicalTensor> tensors);  // "3, 5", or "none"

}  // namespace lamina::compiler
