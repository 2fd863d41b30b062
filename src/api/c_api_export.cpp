#include <memory>
#include <ostream>
#include <streambuf>
#include <vector>

#include "api/boundary.h"
#include "api/convert.h"
#include "api/objects.h"
#include "backends/exported_model.h"
#include "compiler/export_model.h"
#include "compiler/partitioning.h"
#include "graph/export.h"

namespace lamina::api {
namespace {

// Passes everything on to the caller's function.
class CallerStream final : public std::streambuf {
 public:
  CallerStream(lamina_write_bytes_f write, void* user) : write_(write), user_(user) {}

 protected:
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    const bool is_written = count == 0 || write_(user_, bytes, static_cast<size_t>(count)) == 0;
    return is_written ? count : 0;
  }
  int_type overflow(int_type character) override {
    if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
    const char byte = traits_type::to_char_type(character);
    return xsputn(&byte, 1) == 1 ? character : traits_type::eof();
  }

 private:
  lamina_write_bytes_f write_;
  void* user_;
};

void require_list(const char* function_name, size_t count, const void* list, const char* name) {
  if (count > 0) require(list, function_name, name);
}

std::vector<compiler::ExportOptions::Port> ports_of(const char* function_name, size_t count, const size_t* ids,
                                                    const char* const* names) {
  require_list(function_name, count, ids, "ids of inputs or outputs");
  require_list(function_name, count, names, "names of inputs or outputs");
  std::vector<compiler::ExportOptions::Port> ports;
  for (size_t i = 0; i < count; ++i) {
    require(names[i], function_name, "a name of an input or output");
    ports.push_back({ids[i], names[i]});
  }
  return ports;
}

compiler::ExportOptions options_of(const char* function_name, const lamina_graph_export_options_t& given) {
  if (given.size != sizeof given)
    throw Error(Status::invalid_arguments, join(function_name, ": options->size is ", given.size, ", allowed is ", sizeof given,
                                                ", the size of lamina_graph_export_options_t"));
  compiler::ExportOptions options;
  require_list(function_name, given.num_isas, given.isas, "options->isas");
  for (size_t i = 0; i < given.num_isas; ++i) {
    require(given.isas[i], function_name, "options->isas[]");
    options.isas.emplace_back(given.isas[i]);
  }
  constexpr int kMostThreads = 1024;
  if (given.threads < 0 || given.threads > kMostThreads)
    throw Error(Status::invalid_arguments,
                join(function_name, ": options->threads is ", given.threads, ", allowed is 0 to ", kMostThreads));
  if (given.threads > 0) options.threads = given.threads;
  options.packs_weights = given.packed != 0;
  require_list(function_name, given.num_weights, given.weight_ids, "options->weight_ids");
  require_list(function_name, given.num_weights, given.weights, "options->weights");
  require_list(function_name, given.num_weights, given.weight_bytes, "options->weight_bytes");
  for (size_t i = 0; i < given.num_weights; ++i) {
    if (given.weight_bytes[i] > 0) require(given.weights[i], function_name, "options->weights[]");
    options.weights[given.weight_ids[i]] = {static_cast<const char*>(given.weights[i]), given.weight_bytes[i]};
  }
  options.inputs = ports_of(function_name, given.num_inputs, given.input_ids, given.input_names);
  options.outputs = ports_of(function_name, given.num_outputs, given.output_ids, given.output_names);
  return options;
}

std::vector<Graph> graphs_of(const char* function_name, size_t count, const const_lamina_graph_graph_t* graphs) {
  std::vector<Graph> all;
  for (size_t i = 0; i < count; ++i) {
    require(graphs[i], function_name, "graphs[]");
    if (!graphs[i]->graph.is_finalized())
      throw Error(Status::invalid_graph, join(function_name, ": graph ", i, " is not finalized"));
    all.push_back(graphs[i]->graph);
  }
  return all;
}

void describe_input(const char* function_name, Graph& graph, const LogicalTensor& given) {
  const auto value = graph.find_value(given.id);
  if (!value || graph.value(*value).producer.op >= 0)
    throw Error(Status::invalid_arguments, join(function_name, ": tensor ", given.id, " is no input of the graph"));
  LogicalTensor tensor = graph.tensor(*value);
  if (given.dtype != tensor.dtype)
    throw Error(Status::invalid_data_type,
                join(function_name, ": tensor ", given.id, " is ", describe(given), ", the graph has ", describe(tensor)));
  tensor.shape = given.shape, tensor.layout = given.layout, tensor.strides = given.strides;
  graph.set_tensor(*value, tensor.has_full_shape() ? made_dense(tensor) : tensor);
}

}  // namespace
}  // namespace lamina::api

using namespace lamina::api;

extern "C" {

lamina_status_t lamina_graph_graph_create_for_shapes(lamina_graph_graph_t* graph, const_lamina_graph_graph_t original,
                                                     size_t num, const lamina_graph_logical_tensor_t* inputs) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(graph);
    LAMINA_REQUIRE(original);
    if (num > 0) LAMINA_REQUIRE(inputs);
    if (!original->graph.is_finalized())
      throw lamina::Error(lamina::Status::invalid_graph, lamina::join(function_name, ": the graph is not finalized"));
    auto created = std::make_unique<lamina_graph_graph>();
    created->id = lamina::compiler::next_id();
    created->graph = original->graph;
    for (size_t i = 0; i < num; ++i) describe_input(function_name, created->graph, from_c(inputs[i]));
    created->graph.infer_shapes(true);
    *graph = created.release();
  });
}

lamina_status_t lamina_graph_export(size_t num_graphs, const const_lamina_graph_graph_t* graphs,
                                    const lamina_graph_export_options_t* options, lamina_write_bytes_f write, void* user) {
  return guarded([&, function_name = __func__] {
    if (num_graphs > 0) LAMINA_REQUIRE(graphs);
    if (write == nullptr) fail_null(function_name, "write");
    const auto all = graphs_of(function_name, num_graphs, graphs);
    auto chosen = options == nullptr ? lamina::compiler::ExportOptions{} : options_of(function_name, *options);
    if (chosen.isas.empty()) chosen.isas = {lamina::cpu_isas_here().front()};
    CallerStream stream(write, user);
    std::ostream out(&stream);
    lamina::compiler::export_model(all, chosen, out);
    if (!out.flush()) throw lamina::Error(lamina::Status::runtime_error, lamina::join(function_name, ": write has cancelled"));
  });
}

}  // extern "C"
