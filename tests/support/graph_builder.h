// A fluent builder of graphs for tests. It generates ids and names, and finish() infers the output shapes.
//
//   GraphBuilder g;
//   const auto x = g.input(f32, {4, 8});
//   const auto y = g.op(OpKind::Abs, {x});
//   g.output(y);                             // only needed for a value that an op also reads: the value gets an End
//   const Graph graph = g.finish();
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "interface/graph.h"
#include "interface/status.h"

namespace lamina::testing {

class GraphBuilder {
 public:
  // Adds a graph input. Empty `strides` mean dense; dims may be kUnknownDim, and then the strides stay unknown.
  uint64_t input(DataType dtype, Dims shape, Dims strides = {}) {
    LogicalTensor tensor;
    tensor.dtype = dtype;
    const bool known = std::find(shape.begin(), shape.end(), kUnknownDim) == shape.end();
    if (strides.empty() && known) strides = dense_strides(shape);
    tensor.layout = known ? LayoutType::strided : LayoutType::undef;
    tensor.shape = std::move(shape);
    tensor.strides = std::move(strides);
    return keep(tensor);
  }
  uint64_t input_of_unknown_rank(DataType dtype) {
    LogicalTensor tensor;
    tensor.dtype = dtype;
    return keep(tensor);
  }
  uint64_t constant(DataType dtype, Dims shape) {
    const uint64_t id = input(dtype, std::move(shape));
    tensors_[id].property = PropertyType::constant;
    return id;
  }
  // Adds a constant whose elements are all `value`, known at compile time.
  uint64_t number(double value, DataType dtype = DataType::f32, Dims shape = {}) {
    const uint64_t id = constant(dtype, std::move(shape));
    numbers_.emplace_back(id, value);
    return id;
  }
  uint64_t scalar(DataType dtype) {  // rank 0, a host scalar
    const uint64_t id = input(dtype, {});
    tensors_[id].property = PropertyType::host_scalar;
    return id;
  }

  // Names the op that is added next; unnamed ops are called op0, op1, ...
  GraphBuilder& named(std::string name) {
    next_name_ = std::move(name);
    return *this;
  }

  // Adds an op with one output. Its dtype is `dtype` or that of the first input. kNoTensor in `inputs` omits the port.
  uint64_t op(OpKind kind, std::vector<uint64_t> inputs, Attributes attributes = {}, DataType dtype = DataType::undef) {
    if (dtype == DataType::undef && !inputs.empty()) dtype = tensors_[inputs[0]].dtype;
    return multi(kind, std::move(inputs), std::move(attributes), {dtype}).at(0);
  }
  // Adds an op with one output per entry of `output_types`; undef omits the port (its id is kNoTensor).
  std::vector<uint64_t> multi(OpKind kind, std::vector<uint64_t> inputs, Attributes attributes,
                              const std::vector<DataType>& output_types) {
    OpSpec spec{kind, take_name(), std::move(attributes), std::move(inputs), {}};
    for (const DataType dtype : output_types) spec.outputs.push_back(dtype == DataType::undef ? kNoTensor : output_of(dtype));
    for (const uint64_t id : spec.inputs) read_.insert(id);
    ops_.push_back(spec);
    return spec.outputs;
  }
  // Gives write access to the description of a tensor.
  LogicalTensor& tensor(uint64_t id) { return tensors_.at(id); }

  // Marks a value as a graph output. If an op reads the value too, it gets an End.
  void output(uint64_t id) { outputs_.insert(id); }

  Graph finish() {
    Graph graph;
    for (size_t i = 0; i < ops_.size(); ++i) add(graph, i, ops_[i]);
    size_t next = ops_.size();
    for (const uint64_t id : outputs_) {
      if (read_.contains(id)) add(graph, next++, {OpKind::End, join("end", id), {}, {id}, {}});
    }
    for (const auto& [id, value] : numbers_) graph.set_constant(id, value);
    graph.finalize();
    return graph;
  }

 private:
  struct OpSpec {
    OpKind kind;
    std::string name;
    Attributes attributes;
    std::vector<uint64_t> inputs, outputs;
  };

  uint64_t keep(LogicalTensor tensor) {
    tensor.id = tensors_.size();
    tensors_.push_back(std::move(tensor));
    return tensors_.back().id;
  }
  uint64_t output_of(DataType dtype) {
    LogicalTensor tensor;
    tensor.dtype = dtype;
    return keep(tensor);
  }
  std::string take_name() {
    std::string name = next_name_.empty() ? join("op", ops_.size()) : std::move(next_name_);
    next_name_.clear();
    return name;
  }
  std::vector<LogicalTensor> tensors_of(const std::vector<uint64_t>& ids) const {
    std::vector<LogicalTensor> tensors;
    for (const uint64_t id : ids) tensors.push_back(id == kNoTensor ? LogicalTensor{} : tensors_.at(id));
    return tensors;
  }
  void add(Graph& graph, size_t id, const OpSpec& spec) const {
    graph.add_op(id, spec.kind, spec.name, spec.attributes, tensors_of(spec.inputs), tensors_of(spec.outputs));
  }

  std::vector<LogicalTensor> tensors_;  // by id
  std::vector<OpSpec> ops_;
  std::vector<std::pair<uint64_t, double>> numbers_;
  std::set<uint64_t> outputs_, read_;
  std::string next_name_;
};

// Returns the graph as a backend receives it: tensors without strides become dense.
inline Graph with_strides(Graph graph) {
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const auto value = static_cast<ValueIndex>(i);
    graph.set_tensor(value, made_dense(graph.tensor(value)));
  }
  return graph;
}

// Returns the position of the op with this name, -1 if there is none.
inline int find_op(const Graph& graph, const std::string& name) {
  for (size_t i = 0; i < graph.ops().size(); ++i) {
    if (graph.ops()[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace lamina::testing
