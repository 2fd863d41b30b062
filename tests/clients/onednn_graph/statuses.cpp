// A client of oneDNN Graph that includes only its header: valid and invalid arguments, one call per line, with the status and
// the written values. Its output with oneDNN and with the drop-in is compared line by line.
//
// Every call runs in its own child process, so a crash affects only its own line.
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_graph.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

using Tensor = dnnl_graph_logical_tensor_t;
using Text = std::string;

Text told(dnnl_status_t status) {
  static const char* const names[] = {"success",           "out_of_memory", "invalid_arguments", "unimplemented",
                                      "last_impl_reached", "runtime_error", "not_required",      "invalid_graph",
                                      "invalid_graph_op",  "invalid_shape", "invalid_data_type"};
  const auto number = static_cast<unsigned>(status);
  return number < std::size(names) ? names[number] : "status " + std::to_string(number);
}

// An enumerator that does not exist.
template <typename Enumeration>
Enumeration number_as(int number) {
  return static_cast<Enumeration>(number);
}

// Prints the result of `call`, or the signal that ended it.
void line(const Text& name, const std::function<Text()>& call) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    std::printf("%s: %s\n", name.c_str(), call().c_str());
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) std::printf("%s: crash\n", name.c_str());
}

void status_line(const Text& name, const std::function<dnnl_status_t()>& call) {
  line(name, [&] { return told(call()); });
}

Tensor tensor_of(size_t id, const std::vector<int64_t>& dims, dnnl_data_type_t type = dnnl_f32,
                 dnnl_graph_layout_type_t layout = dnnl_graph_layout_type_strided,
                 dnnl_graph_tensor_property_t property = dnnl_graph_tensor_property_undef) {
  Tensor tensor;
  dnnl_graph_logical_tensor_init_with_dims(&tensor, id, type, static_cast<int>(dims.size()), dims.data(), layout, property);
  return tensor;
}

Tensor unknown(size_t id, int ndims = DNNL_GRAPH_UNKNOWN_NDIMS, dnnl_data_type_t type = dnnl_f32,
               dnnl_graph_layout_type_t layout = dnnl_graph_layout_type_strided) {
  Tensor tensor;
  dnnl_graph_logical_tensor_init(&tensor, id, type, ndims, layout, dnnl_graph_tensor_property_undef);
  return tensor;
}

Text told(const Tensor& tensor) {
  Text text = "id " + std::to_string(tensor.id) + " ndims " + std::to_string(tensor.ndims) + " type " +
              std::to_string(tensor.data_type) + " layout " + std::to_string(tensor.layout_type) + " property " +
              std::to_string(tensor.property);
  const auto list = [&](const char* name, const dnnl_dims_t& values) {
    text += Text(" ") + name;
    for (int i = 0; i < tensor.ndims && i < DNNL_MAX_NDIMS; ++i)
      text += values[i] == DNNL_GRAPH_UNKNOWN_DIM ? " ?" : " " + std::to_string(values[i]);
  };
  list("dims", tensor.dims);
  if (tensor.layout_type == dnnl_graph_layout_type_strided) list("strides", tensor.layout.strides);
  return text;
}

// Prints the status of a call and the written value. The argument order ensures that the call comes first.
Text told(dnnl_status_t status, const Tensor& written) { return told(status) + " " + told(written); }
template <typename Number>
Text told(dnnl_status_t status, const Number& written) {
  return told(status) + " " + std::to_string(static_cast<long long>(written));
}

struct Op {
  dnnl_graph_op_t handle = nullptr;
  Op(size_t id, int kind, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
    dnnl_graph_op_create(&handle, id, static_cast<dnnl_graph_op_kind_t>(kind), "op");
    for (const Tensor& input : inputs) dnnl_graph_op_add_input(handle, &input);
    for (const Tensor& output : outputs) dnnl_graph_op_add_output(handle, &output);
  }
  Op& s64(int name, std::vector<int64_t> values, size_t length = 1) {
    dnnl_graph_op_set_attr_s64(handle, static_cast<dnnl_graph_op_attr_t>(name), values.data(), length);
    return *this;
  }
  Op& f32(int name, std::vector<float> values, size_t length = 1) {
    dnnl_graph_op_set_attr_f32(handle, static_cast<dnnl_graph_op_attr_t>(name), values.data(), length);
    return *this;
  }
  Op& boolean(int name, bool value) {
    const uint8_t byte = value ? 1 : 0;
    dnnl_graph_op_set_attr_bool(handle, static_cast<dnnl_graph_op_attr_t>(name), &byte, 1);
    return *this;
  }
  Op& str(int name, const char* value, size_t length = 0) {
    dnnl_graph_op_set_attr_str(handle, static_cast<dnnl_graph_op_attr_t>(name), value,
                               length == 0 ? std::strlen(value) : length);
    return *this;
  }
};

Op relu(size_t id, size_t from, size_t to) {
  return Op(id, dnnl_graph_op_relu, {tensor_of(from, {2, 8})}, {tensor_of(to, {2, 8})});
}

dnnl_graph_graph_t new_graph() {
  dnnl_graph_graph_t graph = nullptr;
  dnnl_graph_graph_create(&graph, dnnl_cpu);
  return graph;
}

dnnl_status_t add_status(const Op& op) { return dnnl_graph_add_op(new_graph(), op.handle); }

// "finalize, filter, number of partitions: ops of each, whether supported, ports".
Text told_partitions(dnnl_graph_graph_t graph, dnnl_graph_partition_policy_t policy) {
  Text text = told(dnnl_graph_graph_finalize(graph));
  text += ", " + told(dnnl_graph_graph_filter(graph, policy));
  size_t num = 0;
  text += ", " + told(dnnl_graph_graph_get_partition_num(graph, &num), num);
  std::vector<dnnl_graph_partition_t> partitions(num);
  for (dnnl_graph_partition_t& partition : partitions) partition = nullptr;
  if (num == 0) return text;
  const dnnl_status_t got = dnnl_graph_graph_get_partitions(graph, num, partitions.data());
  text += ", " + told(got);
  if (got != dnnl_success) return text;
  for (dnnl_graph_partition_t partition : partitions) {
    size_t ops = 0, inputs = 0, outputs = 0;
    uint8_t supported = 9;
    dnnl_graph_partition_get_op_num(partition, &ops);
    dnnl_graph_partition_is_supported(partition, &supported);
    std::vector<size_t> ids(ops, 0);
    if (ops > 0) dnnl_graph_partition_get_ops(partition, ops, ids.data());
    text += supported != 0 ? " (ops" : " (unsupported ops";
    for (const size_t id : ids) text += " " + std::to_string(id);
    dnnl_graph_partition_get_input_ports_num(partition, &inputs);
    dnnl_graph_partition_get_output_ports_num(partition, &outputs);
    std::vector<Tensor> ports(inputs + outputs + 1);
    dnnl_graph_partition_get_input_ports(partition, inputs, ports.data());
    dnnl_graph_partition_get_output_ports(partition, outputs, ports.data() + inputs);
    text += " in";
    for (size_t i = 0; i < inputs + outputs; ++i) text += (i == inputs ? " out " : " ") + std::to_string(ports[i].id);
    text += ")";
  }
  return text;
}

Text told_partitions(const std::vector<Op>& ops, dnnl_graph_partition_policy_t policy = dnnl_graph_partition_policy_fusion) {
  dnnl_graph_graph_t graph = new_graph();
  Text text;
  for (const Op& op : ops) text += told(dnnl_graph_add_op(graph, op.handle)) + ", ";
  return text + told_partitions(graph, policy);
}

dnnl_graph_partition_t partition_of(const Op& op) {
  dnnl_graph_graph_t graph = new_graph();
  dnnl_graph_add_op(graph, op.handle);
  dnnl_graph_graph_finalize(graph);
  dnnl_graph_graph_filter(graph, dnnl_graph_partition_policy_fusion);
  dnnl_graph_partition_t partition = nullptr;
  dnnl_graph_graph_get_partitions(graph, 1, &partition);
  return partition;
}

dnnl_engine_t new_engine() {
  dnnl_engine_t engine = nullptr;
  dnnl_engine_create(&engine, dnnl_cpu, 0);
  return engine;
}

dnnl_stream_t new_stream(dnnl_engine_t engine) {
  dnnl_stream_t stream = nullptr;
  dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
  return stream;
}

dnnl_status_t compile(dnnl_graph_partition_t partition, dnnl_graph_compiled_partition_t compiled,
                      const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs, dnnl_engine_t engine) {
  std::vector<const Tensor*> ins, outs;
  for (const Tensor& input : inputs) ins.push_back(&input);
  for (const Tensor& output : outputs) outs.push_back(&output);
  return dnnl_graph_partition_compile(partition, compiled, ins.size(), ins.data(), outs.size(), outs.data(), engine);
}

// Compiles the one-op graph for these tensors and describes the resulting output.
Text told_compilation(const Op& op, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
  dnnl_graph_partition_t partition = partition_of(op);
  if (partition == nullptr) return "no partition";
  dnnl_graph_compiled_partition_t compiled = nullptr;
  dnnl_graph_compiled_partition_create(&compiled, partition);
  const dnnl_status_t status = compile(partition, compiled, inputs, outputs, new_engine());
  Text text = told(status);
  if (status != dnnl_success) return text;
  for (const Tensor& output : outputs) {
    Tensor answer{};
    text += "; " + told(dnnl_graph_compiled_partition_query_logical_tensor(compiled, output.id, &answer), answer);
  }
  size_t pairs = 99;
  const dnnl_graph_inplace_pair_t* pair = nullptr;
  dnnl_graph_compiled_partition_get_inplace_ports(compiled, &pairs, &pair);
  text += "; in place " + std::to_string(pairs);
  for (size_t i = 0; i < pairs; ++i) text += " " + std::to_string(pair[i].input_id) + ">" + std::to_string(pair[i].output_id);
  return text;
}

#include "statuses_cases.inl"

}  // namespace

int main() {
  logical_tensors();
  ops();
  checks_of_ops();
  graphs();
  partitions();
  compilations();
  tensors();
  executions();
  settings();
  engines();
  return 0;
}
