// The graph of a dump in oneDNN's graph interface. lamina's enumerators of kinds, attributes and types equal oneDNN's, so
// they are passed unchanged. oneDNN refuses those that its version does not support.
#include <chrono>
#include <iterator>
#include <map>
#include <oneapi/dnnl/dnnl_graph.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <vector>

#include "corpus_contenders.h"
#include "interface/op_schema.h"

namespace bench {
namespace {

using dnnl::graph::logical_tensor;
using lamina::DumpedOp;
using lamina::GraphDump;
using lamina::LayoutType;
using lamina::LogicalTensor;
using lamina::driver::Buffers;
using OnednnOp = dnnl::graph::op;

// ---- conversion to oneDNN's types

// On the CPU, the memory of a host scalar is like any other, and older versions do not have this property.
logical_tensor::property_type property_of(const LogicalTensor& tensor) {
  if (tensor.property == lamina::PropertyType::host_scalar) return logical_tensor::property_type::variable;
  return static_cast<logical_tensor::property_type>(tensor.property);
}

logical_tensor onednn_tensor(const LogicalTensor& tensor) {
  const auto type = static_cast<logical_tensor::data_type>(tensor.dtype);
  const auto layout = static_cast<logical_tensor::layout_type>(tensor.layout);
  const auto property = property_of(tensor);
  if (!tensor.shape) return {tensor.id, type, DNNL_GRAPH_UNKNOWN_NDIMS, layout, property};
  if (tensor.has_strides() && !tensor.shape->empty()) return {tensor.id, type, *tensor.shape, tensor.strides, property};
  return {tensor.id, type, *tensor.shape, layout, property};
}

std::vector<logical_tensor> onednn_tensors(const std::vector<LogicalTensor>& tensors) {
  std::vector<logical_tensor> result;
  for (const LogicalTensor& tensor : tensors) result.push_back(onednn_tensor(tensor));
  return result;
}

OnednnOp::attr attribute_kind(const std::string& name) {
  static const std::map<std::string, OnednnOp::attr> kinds = {
#define LAMINA_ATTRIBUTE(name, value, type) {#name, static_cast<OnednnOp::attr>(value)},
#include "graph/attribute_kinds.def"
  };
  return kinds.at(name);
}

// An attribute with the default value is omitted, because a version older than the attribute would refuse it.
bool is_default(lamina::OpKind kind, const std::string& name, const lamina::Attribute& value) {
  for (const lamina::AttributeSpec& known : lamina::schema_of(kind).attributes) {
    if (known.name == name) return known.default_value == value;
  }
  return false;
}

std::string named(const DumpedOp& op) { return lamina::describe(lamina::OpPlace{op.id, op.kind, op.name}); }

// Versions without this mode compute the same, except for slices of only -inf.
bool is_softmax_mode(const DumpedOp& op, const std::string& name) {
  return op.kind == lamina::OpKind::SoftMax && name == "mode";
}

// oneDNN's graphs have attributes of f32.
template <typename Value>
const Value& onednn_value(const Value& value) {
  return value;
}
float onednn_value(double value) { return static_cast<float>(value); }

OnednnOp onednn_op(const DumpedOp& op, bool with_softmax_mode) {
  if (static_cast<int>(op.kind) >= static_cast<int>(OnednnOp::kind::LastSymbol)) {
    throw std::runtime_error("this version does not know the op kind");
  }
  OnednnOp result(op.id, static_cast<OnednnOp::kind>(op.kind), onednn_tensors(op.inputs), onednn_tensors(op.outputs), op.name);
  for (const auto& [name, value] : op.attributes) {
    if (is_default(op.kind, name, value) || (!with_softmax_mode && is_softmax_mode(op, name))) continue;
    std::visit([&, kind = attribute_kind(name)](const auto& each) { result.set_attr(kind, onednn_value(each)); }, value);
  }
  return result;
}

// Returns a description of the omitted part of the op.
std::string add(dnnl::graph::graph& graph, const DumpedOp& op) {
  if (graph.add_op(onednn_op(op, true), false) == dnnl::graph::status::success) return "";
  graph.add_op(onednn_op(op, false));
  return "oneDNN's SoftMax without mode";
}

// A template, so that it compiles for versions whose graphs do not have the function.
template <typename Graph>
void apply_math_to_integers(Graph& graph, dnnl::fpmath_mode mode) {
  if constexpr (requires { graph.set_fpmath_mode(mode, true); }) graph.set_fpmath_mode(mode, true);
}

dnnl::graph::graph build(const GraphDump& dump, std::string& remark) {
  const auto mode = static_cast<dnnl::fpmath_mode>(dump.fpmath_mode);
  dnnl::graph::graph graph(dnnl::engine::kind::cpu, mode);
  if (dump.fpmath_apply_to_int) apply_math_to_integers(graph, mode);
  for (const DumpedOp& op : dump.ops) {
    try {
      if (const std::string lacking = add(graph, op); !lacking.empty()) remark = lacking;
    } catch (const std::exception& error) {
      throw std::runtime_error(named(op) + ": " + error.what());
    }
  }
  graph.finalize();
  return graph;
}

// ---- compiling

struct Step {
  dnnl::graph::compiled_partition compiled;
  std::vector<dnnl::graph::tensor> inputs, outputs;
};

bool is_view(const DumpedOp& op) {
  return op.kind == lamina::OpKind::StaticReshape || op.kind == lamina::OpKind::StaticTranspose;
}

bool is_dense(const lamina::Dims& shape, const lamina::Dims& strides) {
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) {
    if (shape[axis] != 1 && strides[axis] != stride) return false;
  }
  return true;
}

// The ops of a dump, and the tensors that they compute.
class DumpIndex {
 public:
  explicit DumpIndex(const GraphDump& dump) {
    std::set<uint64_t> read, ended;
    for (const DumpedOp& op : dump.ops) {
      ops_[op.id] = &op;
      const bool wants_strides = op.kind == lamina::OpKind::End || is_view(op);
      for (const LogicalTensor& input : op.inputs) (wants_strides ? ended : read).insert(input.id);
      for (const LogicalTensor& output : op.outputs) made_[output.id] = output;
    }
    for (const auto& [id, tensor] : made_) {
      if (!read.contains(id) && !ended.contains(id)) results_.insert(id);
    }
    // Chooses layouts that the dump leaves open: dense for a result of the graph; oneDNN chooses the layout between
    // partitions.
    for (auto& [id, tensor] : made_) {
      const bool is_inner = read.contains(id) && !ended.contains(id);
      if (tensor.layout == LayoutType::undef) tensor.layout = is_inner ? LayoutType::any : LayoutType::strided;
    }
  }

  const LogicalTensor& made(uint64_t id) const { return made_.at(id); }
  // The op of a partition that a framework would implement as a view of the same memory; null for all others.
  const DumpedOp* view_in(const dnnl::graph::partition& partition) const {
    const std::vector<size_t> ids = partition.get_ops();
    const DumpedOp* const op = ops_.at(ids.front());
    return ids.size() == 1 && is_view(*op) ? op : nullptr;
  }
  std::string name_of(const dnnl::graph::partition& partition) const {
    const std::vector<size_t> ids = partition.get_ops();
    const std::string first = named(*ops_.at(ids.front()));
    return ids.size() == 1 ? first : first + " and " + std::to_string(ids.size() - 1) + " more";
  }
  bool is_result(uint64_t id) const { return results_.contains(id); }
  bool is_end(const dnnl::graph::partition& partition) const {
    const std::vector<size_t> ids = partition.get_ops();
    return ids.size() == 1 && ops_.at(ids.front())->kind == lamina::OpKind::End;
  }

 private:
  std::map<uint64_t, const DumpedOp*> ops_;
  std::map<uint64_t, LogicalTensor> made_;
  std::set<uint64_t> results_;  // not read by any op
};

// Memory of the kind that lamina's tensors have. For an opaque layout of oneDNN only the size is known.
std::shared_ptr<lamina::driver::Buffer> buffer_for(const logical_tensor& tensor) {
  LogicalTensor plain;
  plain.id = tensor.get_id();
  plain.layout = LayoutType::strided;
  if (tensor.get_layout_type() == logical_tensor::layout_type::strided) {
    plain.dtype = static_cast<lamina::DataType>(tensor.get_data_type());
    plain.shape = tensor.get_dims();
    plain.strides = tensor.get_strides();
  } else {
    plain.dtype = lamina::DataType::u8;
    plain.shape = lamina::Dims{static_cast<int64_t>(tensor.get_mem_size())};
  }
  return std::make_shared<lamina::driver::Buffer>(plain);
}

// Compiles partitions one after the other. The outputs of one describe the inputs of later ones.
class Compiler {
 public:
  Compiler(const GraphDump& dump, const dnnl::engine& engine, const Buffers& inputs)
      : index_(dump), engine_(engine), tensors_(inputs) {
    for (const auto& [id, buffer] : inputs) described_[id] = onednn_tensor(buffer->tensor());
  }

  bool is_work(const dnnl::graph::partition& partition) const { return !index_.is_end(partition); }

  // Returns nothing for a view. Its readers get the memory of its source.
  std::optional<Step> compile(const dnnl::graph::partition& partition) {
    try {
      if (const DumpedOp* const view = index_.view_in(partition); view != nullptr && !partition.is_supported()) {
        show(*view);
        return std::nullopt;
      }
      return compile_supported(partition);
    } catch (const std::exception& error) {
      throw std::runtime_error(index_.name_of(partition) + ": " + error.what());
    }
  }

  double compile_ms() const { return compile_ms_; }
  const Buffers& tensors() const { return tensors_; }

 private:
  Step compile_supported(const dnnl::graph::partition& partition) {
    if (!partition.is_supported()) throw std::runtime_error("not supported");
    std::vector<logical_tensor> inputs, outputs;
    for (const logical_tensor& port : partition.get_input_ports()) inputs.push_back(described(port.get_id()));
    for (const logical_tensor& port : partition.get_output_ports())
      outputs.push_back(onednn_tensor(index_.made(port.get_id())));
    const auto start = std::chrono::steady_clock::now();
    Step step{partition.compile(inputs, outputs, engine_), {}, {}};
    compile_ms_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    for (const logical_tensor& input : inputs) step.inputs.push_back(bound(input));
    for (const logical_tensor& output : outputs) {
      const uint64_t id = output.get_id();
      described_[id] = step.compiled.query_logical_tensor(id);
      tensors_[id] = buffer_for(described_[id]);
      step.outputs.push_back(bound(described_[id]));
    }
    return step;
  }

  void show(const DumpedOp& view) {
    const uint64_t from = view.inputs.front().id, to = view.outputs.front().id;
    const logical_tensor& input = described(from);
    const LogicalTensor& wanted = index_.made(to);
    const lamina::Dims shape = input.get_dims(), strides = input.get_strides();
    lamina::Dims shown = *wanted.shape, shown_strides = dense_strides(shown);
    if (view.kind == lamina::OpKind::StaticTranspose) {
      const auto& order = std::get<std::vector<int64_t>>(view.attributes.at("order"));
      for (size_t axis = 0; axis < shown.size(); ++axis)
        shown_strides[axis] = strides[static_cast<size_t>(order[axis] < 0 ? order[axis] + std::ssize(order) : order[axis])];
    } else if (!is_dense(shape, strides)) {
      throw std::runtime_error("not supported, and its input is no dense tensor, of which it were a view");
    }
    const bool as_wanted = !wanted.has_strides() || wanted.strides == shown_strides;
    if (!as_wanted || index_.is_result(to)) throw std::runtime_error("not supported, and its output is no view of its input");
    described_[to] = {to, input.get_data_type(), shown, shown_strides, logical_tensor::property_type::variable};
    tensors_[to] = tensors_.at(from);
  }
  static lamina::Dims dense_strides(const lamina::Dims& shape) {
    lamina::Dims strides(shape.size(), 1);
    for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
    return strides;
  }

  const logical_tensor& described(uint64_t id) const {
    const auto found = described_.find(id);
    if (found == described_.end()) throw std::runtime_error("tensor " + std::to_string(id) + " is made by a later partition");
    return found->second;
  }
  dnnl::graph::tensor bound(const logical_tensor& tensor) const {
    return {tensor, engine_, tensors_.at(tensor.get_id())->data()};
  }

  DumpIndex index_;
  dnnl::engine engine_;
  Buffers tensors_;
  std::map<uint64_t, logical_tensor> described_;
  double compile_ms_ = 0;
};

}  // namespace

GraphContender onednn_graph(const GraphDump& dump, const Buffers& inputs) {
  dnnl::graph::set_constant_tensor_cache(1);  // versions have different defaults; lamina's cache is on
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  Compiler compiler(dump, engine, inputs);
  GraphContender contender;
  std::vector<Step> steps;
  for (const dnnl::graph::partition& partition : build(dump, contender.remark).get_partitions()) {
    if (!compiler.is_work(partition)) continue;
    if (std::optional<Step> step = compiler.compile(partition)) steps.push_back(std::move(*step));
  }
  contender.partitions = steps.size();
  contender.compile_ms = compiler.compile_ms();
  contender.tensors = compiler.tensors();
  contender.run = [steps = std::move(steps), stream = dnnl::stream(engine)]() mutable {
    for (const Step& step : steps) step.compiled.execute(stream, step.inputs, step.outputs);
    stream.wait();
  };
  return contender;
}

}  // namespace bench
