#include "lamina/export.h"

#include <filesystem>
#include <iostream>
#include <list>
#include <string_view>

#include "backends/exported_model.h"
#include "compiler/export_model.h"
#include "interface/status.h"
#include "lamina/buffer.h"
#include "lamina/files.h"
#include "lamina/load.h"
#include "lamina/npy.h"

namespace lamina::driver {
namespace {

namespace fs = std::filesystem;

// The data of inputs that have a file in the folder. Throws Error(invalid_arguments) if none has one.
std::list<Buffer> read_weights(const Graph& graph, const std::string& folder) {
  std::list<Buffer> weights;
  if (folder.empty()) return weights;
  for (const ValueIndex input : graph.inputs()) {
    const LogicalTensor& tensor = graph.tensor(input);
    const fs::path path = fs::path(folder) / join(tensor.id, ".npy");
    if (!fs::exists(path)) continue;
    read_npy(path.string(), weights.emplace_back(tensor));
  }
  if (weights.empty())
    throw Error(Status::invalid_arguments, join("--weights ", folder, ": it has no ID.npy for an input of the graph"));
  return weights;
}

}  // namespace

int export_graph(const ExportCommand& command) {
  const Graph graph = load_graph(command.file, command.overrides);
  const std::list<Buffer> weights = read_weights(graph, command.weights_folder);
  compiler::ExportOptions options{.isas = command.isas, .threads = command.threads};
  if (options.isas.empty()) options.isas = {cpu_isas_here().front()};
  for (const Buffer& buffer : weights)
    options.weights[buffer.tensor().id] = {static_cast<const char*>(buffer.data()),
                                           static_cast<size_t>(buffer.tensor().byte_size())};
  OutputFiles files;
  try {
    files.add(command.out, [&](std::ostream& out) { compiler::export_model(graph, options, out); });
  } catch (const Error& error) {
    if (error.status() != Status::unimplemented) throw error.in_file(command.file);
    std::cerr << error.in_file(command.file).what() << '\n';
    return 1;
  }
  files.commit();
  std::cout << command.out << ": " << fs::file_size(command.out) << " bytes, " << options.weights.size()
            << " constants, programs for";
  for (const std::string& isa : options.isas) std::cout << ' ' << isa;
  std::cout << '\n';
  return 0;
}

}  // namespace lamina::driver
