#include "passes/verify_graph.h"

#include <algorithm>

#include "interface/status.h"
#include "passes/partition.h"

namespace lamina {
namespace {

bool is_value(const Graph& graph, ValueIndex value) { return value >= 0 && static_cast<size_t>(value) < graph.values().size(); }

void verify_op(const Graph& graph, size_t position, const std::string& after) {
  const Op& op = graph.ops()[position];
  const auto where = [&] { return join("after ", after, ", ", describe(op), ": "); };  // the text is built only for a failure
  for (size_t port = 0; port < op.inputs.size(); ++port) {
    const ValueIndex value = op.inputs[port];
    if (value == kNoValue) continue;
    LAMINA_CHECK(is_value(graph, value), join(where(), "input ", port, " is not a value"));
    const Port self{static_cast<int>(position), static_cast<int>(port)};
    const std::vector<Port>& consumers = graph.value(value).consumers;
    const auto by_place = [](const Port& a, const Port& b) { return std::pair(a.op, a.port) < std::pair(b.op, b.port); };
    LAMINA_CHECK(std::binary_search(consumers.begin(), consumers.end(), self, by_place),
                 join(where(), "value ", graph.tensor(value).id, " does not list it as a consumer"));
    LAMINA_CHECK(graph.value(value).producer.op < static_cast<int>(position),
                 join(where(), "value ", graph.tensor(value).id, " is made later than it is read"));
  }
  for (size_t port = 0; port < op.outputs.size(); ++port) {
    const ValueIndex value = op.outputs[port];
    if (value == kNoValue) continue;
    LAMINA_CHECK(is_value(graph, value), join(where(), "output ", port, " is not a value"));
    const Port self{static_cast<int>(position), static_cast<int>(port)};
    LAMINA_CHECK(graph.value(value).producer == self,
                 join(where(), "value ", graph.tensor(value).id, " names another producer"));
  }
}

void verify_value(const Graph& graph, const Value& value, const std::string& after) {
  const auto where = [&] { return join("after ", after, ", value ", value.tensor.id, ": "); };
  LAMINA_CHECK(value.tensor.dtype != DataType::undef, where() + "its type is unknown");
  LAMINA_CHECK(value.tensor.id != kNoTensor, where() + "it is an empty port");
  LAMINA_CHECK(!value.tensor.has_strides() || !value.tensor.shape || value.tensor.strides.size() == value.tensor.shape->size(),
               where() + "one stride per dim");
  const auto exists = [&](const Port& port) { return port.op >= 0 && static_cast<size_t>(port.op) < graph.ops().size(); };
  LAMINA_CHECK(value.producer.op == -1 || exists(value.producer), where() + "its producer does not exist");
  LAMINA_CHECK(std::all_of(value.consumers.begin(), value.consumers.end(), exists), where() + "a consumer does not exist");
}

}  // namespace

void verify_graph(const Graph& graph, const std::string& after) {
  LAMINA_CHECK(graph.is_finalized(), "after " + after);
  for (const Value& value : graph.values()) verify_value(graph, value, after);
  for (size_t i = 0; i < graph.ops().size(); ++i) verify_op(graph, i, after);
}

void verify_partitions(const Graph& graph, std::span<const Partition> partitions) {
  std::vector<int> partition_of(graph.ops().size(), -1);
  for (size_t p = 0; p < partitions.size(); ++p) {
    const Partition& partition = partitions[p];
    LAMINA_CHECK(!partition.ops.empty() && std::is_sorted(partition.ops.begin(), partition.ops.end()),
                 join("ops of partition ", partition.id));
    LAMINA_CHECK(partition.reasons.size() == partition.ops.size(), join("reasons of partition ", partition.id));
    for (const int op : partition.ops) {
      int& owner = partition_of[static_cast<size_t>(op)];
      LAMINA_CHECK(owner < 0, describe(graph.op(op)) + " is in two partitions");
      owner = static_cast<int>(p);
    }
  }
  for (size_t i = 0; i < graph.ops().size(); ++i) {
    LAMINA_CHECK(partition_of[i] >= 0, describe(graph.ops()[i]) + " is in no partition");
    for (const ValueIndex value : graph.ops()[i].inputs) {
      const int producer = value == kNoValue ? -1 : graph.value(value).producer.op;
      LAMINA_CHECK(producer < 0 || partition_of[static_cast<size_t>(producer)] <= partition_of[i],
                   describe(graph.ops()[i]) + " runs before the partition that makes its input");
    }
  }
  for (const Partition& partition : partitions) {
    LAMINA_CHECK(
        partition.inputs == border_inputs(graph, partition.ops) && partition.outputs == border_outputs(graph, partition.ops),
        join("ports of partition ", partition.id));
  }
}

}  // namespace lamina
