// Binding of the export of models (graph/export.h). lamina.runtime loads them.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "graph/export.h"
#include "graph/lamina.hpp"
#include "views.h"

namespace lamina::python {
namespace {

using Ports = std::vector<std::pair<size_t, std::string>>;

struct Lists {
  std::vector<size_t> ids;
  std::vector<const char*> names;
};

Lists lists_of(const Ports& ports) {
  Lists lists;
  for (const auto& [id, name] : ports) lists.ids.push_back(id), lists.names.push_back(name.c_str());
  return lists;
}

// From the first element to one past the last.
size_t span_bytes(const View& view) {
  int64_t last = 0;
  for (int i = 0; i < view.rank; ++i) {
    const auto at = static_cast<size_t>(i);
    if (view.dims[at] == 0) return 0;
    last += (view.dims[at] - 1) * view.strides[at];
  }
  return static_cast<size_t>(last + 1) * static_cast<size_t>(view.bits) / 8;
}

int append(void* file, const void* bytes, size_t length) {
  return std::fwrite(bytes, 1, length, static_cast<std::FILE*>(file)) == length ? 0 : 1;
}

void export_graphs(const std::vector<nb::handle>& graphs, const std::string& path, const std::vector<std::string>& isas,
                   int threads, bool packed, const std::vector<std::pair<size_t, nb::object>>& weights, const Ports& inputs,
                   const Ports& outputs) {
  std::vector<const_lamina_graph_graph_t> handles;
  for (const nb::handle each : graphs) handles.push_back(nb::cast<const graph::graph&>(each).get());
  std::vector<const char*> names;
  for (const std::string& isa : isas) names.push_back(isa.c_str());
  std::vector<size_t> ids, bytes;
  std::vector<const void*> data;
  for (const auto& [id, array] : weights) {
    const View view = view_of(array, false, "constant " + std::to_string(id));
    ids.push_back(id), data.push_back(view.memory), bytes.push_back(span_bytes(view));
  }
  const Lists in = lists_of(inputs), out = lists_of(outputs);
  const lamina_graph_export_options_t options{.size = sizeof options,
                                              .num_isas = names.size(),
                                              .isas = names.data(),
                                              .threads = threads,
                                              .packed = packed ? 1 : 0,
                                              .num_weights = ids.size(),
                                              .weight_ids = ids.data(),
                                              .weights = data.data(),
                                              .weight_bytes = bytes.data(),
                                              .num_inputs = in.ids.size(),
                                              .input_ids = in.ids.data(),
                                              .input_names = in.names.data(),
                                              .num_outputs = out.ids.size(),
                                              .output_ids = out.ids.data(),
                                              .output_names = out.names.data()};
  const nb::gil_scoped_release others_may_run;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"), std::fclose);
  if (file == nullptr) throw error(lamina_runtime_error, path + ": it cannot be written");
  const lamina_status_t status = lamina_graph_export(handles.size(), handles.data(), &options, &append, file.get());
  if (std::fflush(file.get()) != 0 || std::ferror(file.get()) != 0)
    throw error(lamina_runtime_error, path + ": it cannot be written");
  error::wrap_c_api(status);
}

graph::graph with_shapes(const graph::graph& self, const std::vector<graph::logical_tensor>& inputs) {
  std::vector<lamina_graph_logical_tensor_t> given;
  for (const graph::logical_tensor& input : inputs) given.push_back(input.data);
  lamina_graph_graph_t created = nullptr;
  error::wrap_c_api(lamina_graph_graph_create_for_shapes(&created, self.get(), given.size(), given.data()));
  graph::graph made(engine::kind::cpu);
  made.reset(created);
  return made;
}

std::string library_path() {
  Dl_info found{};
  return dladdr(reinterpret_cast<const void*>(&lamina_version), &found) != 0 ? found.dli_fname : "";
}

std::map<std::string, int> type_numbers() {
  std::map<std::string, int> numbers;
  for (const std::string& name : type_names()) numbers[name] = static_cast<int>(type_from_name(name));
  return numbers;
}

// The address of the memory that an object shares.
uintptr_t address_of(nb::handle object, bool writable) {
  return reinterpret_cast<uintptr_t>(view_of(object, writable, "the object").memory);
}

}  // namespace

void bind_export(nb::module_& m) {
  m.def("export_graphs", &export_graphs, nb::arg("graphs"), nb::arg("path"), nb::arg("isas"), nb::arg("threads"),
        nb::arg("packed"), nb::arg("weights"), nb::arg("inputs"), nb::arg("outputs"),
        "Writes a model with a variant for each of the finalized graphs.\n\n"
        "isas: names of instruction sets, [] for the best one of this machine. threads: 0 for the default.\n"
        "packed: whether packed weights are in the file, too. weights:\n"
        "(tensor id, array in the tensor's strides). inputs, outputs: (tensor id, name), [] for those of the graph.\n"
        "Raises lamina.Error with every op that cannot be exported.");
  m.def("with_shapes", &with_shapes, nb::arg("graph"), nb::arg("inputs"),
        "Returns a copy of a finalized graph with these descriptions of its inputs; shapes that follow are inferred\n"
        "again.\n\n"
        "Raises lamina.Error for a tensor that is no input, or shapes that contradict each other.");
  m.def("address", &address_of, nb::arg("object"), nb::arg("writable"),
        "Returns the address of the memory that an object shares. Raises lamina.Error as describe(), and for read-only\n"
        "memory if `writable`.");
  m.def("library_path", &library_path, "Returns the path of liblamina, \"\" if it is unknown.");
  m.def("type_numbers", &type_numbers, "Returns the number of each element type in the C interfaces, by its name.");
}

}  // namespace lamina::python
