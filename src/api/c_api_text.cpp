#include "graph/text.h"

#include <algorithm>
#include <optional>

#include "api/boundary.h"
#include "api/convert.h"
#include "api/objects.h"
#include "backends/compile_progress.h"
#include "compiler/explain.h"
#include "compiler/partitioning.h"
#include "compiler/ports.h"
#include "compiler/profile.h"
#include "compiler/verbose.h"
#include "interface/explained_graph.h"
#include "interface/json/describe.h"
#include "interface/json/explained.h"
#include "interface/json/json.h"
#include "interface/json/measured_times.h"
#include "interface/op_schema.h"
#include "interface/schema_text.h"
#include "pictures/dot.h"
#include "pictures/page.h"

using namespace lamina::api;

namespace lamina::api {
namespace {

void require_writer(lamina_text_f write, const char* function_name) {
  if (write == nullptr) fail_null(function_name, "write");
}
void hand_over(const std::string& text, lamina_text_f write, void* user) { write(user, text.data(), text.size()); }

// ---- outputs of an op

std::vector<const PortSpec*> existing_ports(const std::vector<PortSpec>& ports, const Attributes& attributes) {
  std::vector<const PortSpec*> existing;
  for (const PortSpec& port : ports)
    if (!port.exists_when || port.exists_when->holds(attributes)) existing.push_back(&port);
  return existing;
}

// Whether only parameters (statistics, weights of a norm) have this type.
bool is_of_parameters(const OpSchema& schema, const std::string& variable) {
  const auto is_other = [&](const PortSpec& port) { return port.type == variable && !is_parameter(port.role); };
  return std::none_of(schema.inputs.begin(), schema.inputs.end(), is_other) &&
         std::none_of(schema.outputs.begin(), schema.outputs.end(), is_other);
}

// The types of all variables: bound by the first inputs that use them. A variable without such an input gets the first
// input's type, or f32 if only parameters have that type, as far as this is legal.
std::vector<DataType> chosen_types(const OpSchema& schema, const std::vector<const PortSpec*>& ports,
                                   const std::vector<LogicalTensor>& inputs) {
  std::vector<DataType> bound(schema.types.size(), DataType::undef);
  for (size_t i = 0; i < inputs.size() && !ports.empty(); ++i) {
    const std::string& variable = ports[std::min(i, ports.size() - 1)]->type;
    for (size_t v = 0; v < schema.types.size(); ++v)
      if (schema.types[v].name == variable && !inputs[i].is_empty_port() && bound[v] == DataType::undef)
        bound[v] = inputs[i].dtype;
  }
  std::vector<DataType> preferred(bound.size(), inputs.empty() ? DataType::f32 : inputs.front().dtype);
  for (size_t v = 0; v < preferred.size(); ++v)
    if (is_of_parameters(schema, schema.types[v].name)) preferred[v] = DataType::f32;
  std::vector<DataType> best = bound;  // if no combination is legal, adding the op reports the reason
  for (size_t v = 0; v < best.size(); ++v)
    if (best[v] == DataType::undef) best[v] = preferred[v];
  size_t most = 0;
  for (const std::vector<DataType>& types : legal_types(schema)) {
    size_t alike = 1;
    bool fits = true;
    for (size_t v = 0; v < types.size(); ++v) {
      fits = fits && (bound[v] == DataType::undef || bound[v] == types[v]);
      alike += types[v] == preferred[v] ? 2 : types[v] == DataType::f32 ? 1 : 0;
    }
    if (fits && alike > most) {
      most = alike;
      best = types;
    }
  }
  return best;
}

DataType type_of_port(const PortSpec& port, const OpSchema& schema, const std::vector<DataType>& types, DataType otherwise) {
  for (size_t v = 0; v < schema.types.size(); ++v)
    if (schema.types[v].name == port.type) return types[v];
  return otherwise;
}

std::vector<LogicalTensor> inferred_outputs(const lamina_graph_op& op) {
  const OpSchema& schema = schema_of(op.kind);
  Attributes attributes = op.attributes;
  for (const AttributeSpec& attribute : schema.attributes)
    if (attribute.default_value) attributes.try_emplace(attribute.name, *attribute.default_value);
  const std::vector<DataType> types = chosen_types(schema, existing_ports(schema.inputs, attributes), op.inputs);
  uint64_t id = 0;
  for (const LogicalTensor& input : op.inputs)
    if (!input.is_empty_port()) id = std::max(id, input.id);
  std::vector<LogicalTensor> outputs;
  for (const PortSpec* port : existing_ports(schema.outputs, attributes)) {
    LogicalTensor& output = outputs.emplace_back();
    output.id = ++id;
    output.dtype = type_of_port(*port, schema, types, op.inputs.empty() ? DataType::f32 : op.inputs.front().dtype);
    output.layout = LayoutType::any;
  }
  Graph graph;
  graph.add_op(op.id, op.kind, op.name, op.attributes, op.inputs, outputs);
  graph.finalize();
  for (LogicalTensor& output : outputs) {
    output = graph.tensor(*graph.find_value(output.id));
    output.id = kNoTensor;
  }
  return outputs;
}

std::string info_to_json(const compiler::CompiledPartition& compiled) {
  const ExecutableInfo& info = compiled.info();
  return json_object({{"backend", info.backend},
                      {"kernels", info.kernels},
                      {"schedules", info.schedules},
                      {"required_bytes", info.required_bytes},
                      {"moved_bytes", info.moved_bytes},
                      {"workspace_bytes", static_cast<int64_t>(info.workspace_bytes)},
                      {"constant_bytes", static_cast<int64_t>(compiled.constant_bytes())},
                      {"compile_ms", compiled.compile_ms()},
                      {"from_cache", compiled.from_cache()}});
}

// ---- explanations

std::vector<std::optional<compiler::PortTensors>> ports_of(size_t num, const const_lamina_graph_compiled_partition_t* compiled,
                                                           const char* function_name) {
  std::vector<std::optional<compiler::PortTensors>> ports(num);
  for (size_t i = 0; compiled != nullptr && i < num; ++i) {
    if (compiled[i] == nullptr) continue;
    if (compiled[i]->compiled == nullptr)
      throw Error(Status::invalid_arguments,
                  join(function_name, ": compiled partition ", i, " is empty; compile it first, or give null"));
    ports[i] = compiler::PortTensors{compiled[i]->compiled->inputs(), compiled[i]->compiled->outputs()};
  }
  return ports;
}

std::string in_format(const ExplainedGraph& graph, lamina_graph_explanation_t format, const char* function_name) {
  switch (format) {
    case lamina_graph_explanation_json: return explained_to_json(graph);
    case lamina_graph_explanation_html: return pictures::html_page(graph);
    case lamina_graph_explanation_dot: return pictures::dot_text(graph);
  }
  throw Error(Status::invalid_arguments, join(function_name, ": format is ", static_cast<int>(format), ", allowed is 0..2"));
}

std::string in_format(const lamina_stream& stream, lamina_profile_format_t format, const std::string& title,
                      const char* function_name) {
  if (stream.profile == nullptr)
    throw Error(Status::invalid_arguments,
                join(function_name, ": the stream measures nothing, allowed is one created with lamina_stream_profiling"));
  if (format == lamina_profile_trace) return compiler::profile_trace(*stream.profile);
  if (format != lamina_profile_json && format != lamina_profile_table)
    throw Error(Status::invalid_arguments, join(function_name, ": format is ", static_cast<int>(format), ", allowed is 0..2"));
  const std::shared_ptr<const Backend> of_pool = stream.pool ? cpu_backend(*stream.pool) : nullptr;
  const MachineLimits& limits = *(of_pool != nullptr ? *of_pool : cpu_backend()).limits();
  return format == lamina_profile_json ? compiler::profile_json(*stream.profile, limits, title)
                                       : compiler::profile_table(*stream.profile, limits, title);
}

void copy_tensors(const Graph& graph, const std::vector<ValueIndex>& values, size_t num, const char* function_name,
                  lamina_graph_logical_tensor_t* destination) {
  if (num != values.size())
    throw Error(Status::invalid_arguments,
                join(function_name, ": a number of inputs or outputs is ", num, ", the graph has ", values.size()));
  if (num > 0) require(destination, function_name, "inputs or outputs");
  for (const ValueIndex value : values) *destination++ = to_c(graph.tensor(value));
}

}  // namespace
}  // namespace lamina::api

extern "C" {

lamina_status_t lamina_graph_graph_create_from_json(lamina_graph_graph_t* graph, const char* text, size_t length,
                                                    const char* name) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(graph);
    LAMINA_REQUIRE(text);
    auto created = std::make_unique<lamina_graph_graph>();
    created->id = lamina::compiler::next_id();
    created->graph = lamina::read_graph_json({text, length}, name == nullptr ? "graph" : name);
    *graph = created.release();
  });
}

lamina_status_t lamina_graph_graph_write_json(const_lamina_graph_graph_t graph, lamina_text_f write, void* user) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(graph);
    require_writer(write, function_name);
    hand_over(lamina::write_graph_json(graph->graph), write, user);
  });
}

lamina_status_t lamina_graph_graph_get_logical_tensor(const_lamina_graph_graph_t graph, size_t tensor_id,
                                                      lamina_graph_logical_tensor_t* logical_tensor) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(graph);
    LAMINA_REQUIRE(logical_tensor);
    const auto found = graph->graph.find_value(tensor_id);
    if (!found)
      throw lamina::Error(lamina::Status::invalid_arguments,
                          lamina::join(function_name, ": tensor ", tensor_id, " belongs to no op of the graph"));
    *logical_tensor = to_c(graph->graph.tensor(*found));
  });
}

lamina_status_t lamina_graph_graph_get_border_num(const_lamina_graph_graph_t graph, size_t* num_inputs, size_t* num_outputs) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(graph);
    LAMINA_REQUIRE(num_inputs);
    LAMINA_REQUIRE(num_outputs);
    *num_inputs = graph->graph.inputs().size();
    *num_outputs = graph->graph.outputs().size();
  });
}

lamina_status_t lamina_graph_graph_get_border(const_lamina_graph_graph_t graph, size_t num_inputs,
                                              lamina_graph_logical_tensor_t* inputs, size_t num_outputs,
                                              lamina_graph_logical_tensor_t* outputs) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(graph);
    copy_tensors(graph->graph, graph->graph.inputs(), num_inputs, function_name, inputs);
    copy_tensors(graph->graph, graph->graph.outputs(), num_outputs, function_name, outputs);
  });
}

lamina_status_t lamina_graph_op_infer_outputs(const_lamina_graph_op_t op, size_t* num, lamina_graph_logical_tensor_t* outputs) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(op);
    LAMINA_REQUIRE(num);
    const std::vector<lamina::LogicalTensor> inferred = inferred_outputs(*op);
    if (*num < inferred.size())
      throw lamina::Error(
          lamina::Status::invalid_arguments,
          lamina::join(function_name, ": num is ", *num, ", the number of outputs of the op is ", inferred.size()));
    if (!inferred.empty()) LAMINA_REQUIRE(outputs);
    for (size_t i = 0; i < inferred.size(); ++i) outputs[i] = to_c(inferred[i]);
    *num = inferred.size();
  });
}

lamina_status_t lamina_graph_op_kind_write_schema(lamina_graph_op_kind_t kind, lamina_text_f write, void* user) {
  return guarded([&, function_name = __func__] {
    require_writer(write, function_name);
    hand_over(schema_to_json(lamina::schema_of(checked(kind))), write, user);
  });
}

lamina_status_t lamina_graph_partition_write_reasons(const_lamina_graph_partition_t partition, lamina_text_f write,
                                                     void* user) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(partition);
    require_writer(write, function_name);
    hand_over(partition_to_json(partition->partition), write, user);
  });
}

lamina_status_t lamina_graph_compiled_partition_write_info(const_lamina_graph_compiled_partition_t compiled_partition,
                                                           lamina_text_f write, void* user) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(compiled_partition);
    require_writer(write, function_name);
    if (compiled_partition->compiled == nullptr)
      throw lamina::Error(lamina::Status::invalid_arguments,
                          lamina::join(function_name, ": the compiled partition is empty; compile it first"));
    hand_over(info_to_json(*compiled_partition->compiled), write, user);
  });
}

lamina_status_t lamina_graph_partitions_explain(size_t num, const const_lamina_graph_partition_t* partitions,
                                                const const_lamina_graph_compiled_partition_t* compiled,
                                                const_lamina_engine_t engine, lamina_graph_explanation_t format,
                                                const char* title, const char* report, lamina_text_f write, void* user) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(partitions);
    require_writer(write, function_name);
    std::vector<lamina::Partition> given;
    for (size_t i = 0; i < num; ++i) {
      require(partitions[i], function_name, "an entry of partitions");
      given.push_back(partitions[i]->partition);
    }
    const lamina::Backend& backend = engine == nullptr ? lamina::cpu_backend() : *engine->backend;
    lamina::ExplainedGraph graph =
        lamina::compiler::explain(given, ports_of(num, compiled, function_name), backend, {.compile = engine != nullptr});
    graph.title = title == nullptr ? "" : title;
    if (report != nullptr) lamina::add_measured_times(graph, report, "the report", graph.title);
    hand_over(in_format(graph, format, function_name), write, user);
  });
}

lamina_status_t lamina_stream_write_profile(const_lamina_stream_t stream, lamina_profile_format_t format, const char* title,
                                            lamina_text_f write, void* user) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(stream);
    require_writer(write, function_name);
    hand_over(in_format(*stream, format, title == nullptr ? "" : title, function_name), write, user);
  });
}

lamina_status_t lamina_set_compile_progress(lamina_compile_progress_f report, void* user) {
  return guarded([&] { lamina::compile_progress() = {report, user}; });
}

lamina_status_t lamina_set_verbose_output(int level, lamina_text_f write, void* user) {
  return guarded([&, function_name = __func__] {
    if (level < -1 || level > lamina::compiler::kMaxVerbose)
      throw lamina::Error(lamina::Status::invalid_arguments,
                          lamina::join(function_name, ": level is ", level, ", allowed is -1 to 2"));
    lamina::compiler::set_verbose_output(level, write, user);
  });
}

}  // extern "C"
