#include "compiler/ports.h"

#include <algorithm>

#include "interface/status.h"

namespace lamina::compiler {

namespace {

std::vector<LogicalTensor> port_tensors(const Partition& partition, const std::vector<ValueIndex>& ports) {
  std::vector<LogicalTensor> tensors;
  for (const ValueIndex port : ports) tensors.push_back(partition.graph->tensor(port));
  return tensors;
}

// Merges the partition's description of a port with the one passed to compile.
LogicalTensor merge_port(const LogicalTensor& known, const LogicalTensor& given, const std::string& where) {
  if (given.dtype != known.dtype && given.dtype != DataType::undef && known.dtype != DataType::undef) {
    throw Error(Status::invalid_data_type,
                join(where, " has type ", name_of(given.dtype), ", allowed is the type in the graph, ", name_of(known.dtype)));
  }
  if (given.shape && known.shape && !dims_agree(*given.shape, *known.shape)) {
    throw Error(Status::invalid_shape,
                join(where, " is ", describe(given), ", allowed is the shape in the graph, ", describe(known)));
  }
  if (given.layout == LayoutType::opaque) {
    throw Error(Status::invalid_arguments,
                where + " has layout opaque, which lamina does not use; allowed: strided, any, undef");
  }
  LogicalTensor merged = known;
  if (merged.dtype == DataType::undef) merged.dtype = given.dtype;
  if (merged.property == PropertyType::undef) merged.property = given.property;
  if (given.shape) merged.shape = known.shape ? joined_dims(*known.shape, *given.shape) : *given.shape;
  if (given.layout != LayoutType::undef) {
    merged.layout = given.layout;
    merged.strides = given.strides;
  }
  return merged;
}

// The ports' descriptions in port order.
std::vector<LogicalTensor> match_ports(const std::string& label, std::string_view role, std::span<const LogicalTensor> known,
                                       std::span<const LogicalTensor> given) {
  std::vector<LogicalTensor> matched;
  for (const LogicalTensor& port : known) {
    const LogicalTensor* tensor = find_by_id(given, port.id);
    if (tensor == nullptr) {
      throw Error(Status::invalid_arguments, join("compile of ", label, ": no logical tensor for ", role, " port ", port.id,
                                                  "; given: ", list_ids(given), "; needed: ", list_ids(known)));
    }
    matched.push_back(made_dense(merge_port(port, *tensor, join("compile of ", label, ": ", role, " ", port.id))));
  }
  return matched;
}

void require_known_shapes(const std::string& label, std::span<const LogicalTensor> inputs) {
  for (const LogicalTensor& input : inputs) {
    if (input.has_full_shape()) continue;
    throw Error(Status::invalid_shape, join("compile of ", label, ": input ", input.id, " is ", describe(input),
                                            "; every input needs a known shape here"));
  }
}

void refuse_unknown_outputs(const std::string& label, std::span<const LogicalTensor> known,
                            std::span<const LogicalTensor> given) {
  for (const LogicalTensor& tensor : given) {
    if (find_by_id(known, tensor.id) != nullptr) continue;
    throw Error(Status::invalid_arguments,
                join("compile of ", label, ": tensor ", tensor.id, " is not an output port; output ports: ", list_ids(known)));
  }
}

std::vector<LogicalTensor> all_dense(std::vector<LogicalTensor> tensors) {
  for (LogicalTensor& tensor : tensors) tensor = made_dense(std::move(tensor));
  return tensors;
}

}  // namespace

PortTensors known_ports(const Partition& partition) {
  return {all_dense(port_tensors(partition, partition.inputs)), all_dense(port_tensors(partition, partition.outputs))};
}

PortTensors joined_ports(const std::string& label, const Partition& partition, std::span<const LogicalTensor> inputs,
                         std::span<const LogicalTensor> outputs) {
  const auto known_outputs = port_tensors(partition, partition.outputs);
  refuse_unknown_outputs(label, known_outputs, outputs);
  PortTensors ports;
  ports.inputs = match_ports(label, "input", port_tensors(partition, partition.inputs), inputs);
  ports.outputs = match_ports(label, "output", known_outputs, outputs);
  require_known_shapes(label, ports.inputs);
  return ports;
}

const LogicalTensor* find_by_id(std::span<const LogicalTensor> tensors, uint64_t id) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [id](const LogicalTensor& t) { return t.id == id; });
  return found == tensors.end() ? nullptr : &*found;
}

std::string list_ids(std::span<const LogicalTensor> tensors) {
  std::string ids;
  for (const LogicalTensor& tensor : tensors) ids += join(ids.empty() ? "" : ", ", tensor.id);
  return ids.empty() ? "none" : ids;
}

}  // namespace lamina::compiler
