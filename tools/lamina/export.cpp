#include "lamina/export.h"

#include <filesystem>
#include <iostream>
#include <list>
#include <optional>
#include <regex>
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

constexpr int64_t kMostVariants = 1024;

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

// "3:1..4x8" as the shapes of each variant: "3:1x8", ... Ranges of one text have as many values, and vary together.
std::vector<std::string> variants_of(const std::string& shapes) {
  static const std::regex range("([0-9]+)\\.\\.([0-9]+)");
  std::optional<int64_t> count;
  for (std::sregex_iterator found(shapes.begin(), shapes.end(), range); found != std::sregex_iterator(); ++found) {
    const int64_t first = std::stoll((*found)[1]), last = std::stoll((*found)[2]), values = last - first + 1;
    if (values < 1 || values > kMostVariants || (count && *count != values))
      throw Error(Status::invalid_arguments, join("--shapes ", shapes, ": range ", found->str(),
                                                  ", allowed are ranges of as many values, 1 to ", kMostVariants));
    count = values;
  }
  std::vector<std::string> variants;
  for (int64_t v = 0; v < count.value_or(1); ++v) {
    std::string variant;
    auto rest = shapes.cbegin();
    for (std::sregex_iterator found(shapes.begin(), shapes.end(), range); found != std::sregex_iterator(); ++found) {
      variant.append(rest, (*found)[0].first);
      variant += join(std::stoll((*found)[1]) + v);
      rest = (*found)[0].second;
    }
    variants.push_back(variant.append(rest, shapes.cend()));
  }
  return variants;
}

std::vector<Graph> load_variants(const ExportCommand& command) {
  if (command.shapes.empty()) return {load_graph(command.file, command.overrides)};
  std::vector<Graph> graphs;
  for (const std::string& shapes : command.shapes) {
    for (const std::string& variant : variants_of(shapes)) {
      Overrides overrides = command.overrides;
      for (const std::string& shape : split_at_commas({variant})) overrides.shapes.push_back(shape);
      graphs.push_back(load_graph(command.file, overrides));
    }
  }
  return graphs;
}

}  // namespace

int export_graph(const ExportCommand& command) {
  const std::vector<Graph> graphs = load_variants(command);
  const std::list<Buffer> weights = read_weights(graphs.front(), command.weights_folder);
  compiler::ExportOptions options{.isas = command.isas, .threads = command.threads, .packs_weights = command.packed};
  if (options.isas.empty()) options.isas = {cpu_isas_here().front()};
  for (const Buffer& buffer : weights)
    options.weights[buffer.tensor().id] = {static_cast<const char*>(buffer.data()),
                                           static_cast<size_t>(buffer.tensor().byte_size())};
  OutputFiles files;
  try {
    files.add(command.out, [&](std::ostream& out) { compiler::export_model(graphs, options, out); });
  } catch (const Error& error) {
    if (error.status() != Status::unimplemented) throw error.in_file(command.file);
    std::cerr << error.in_file(command.file).what() << '\n';
    return 1;
  }
  files.commit();
  std::cout << command.out << ": " << fs::file_size(command.out) << " bytes, " << options.weights.size() << " constants, "
            << graphs.size() << (graphs.size() == 1 ? " variant" : " variants") << ", programs for";
  for (const std::string& isa : options.isas) std::cout << ' ' << isa;
  std::cout << '\n';
  return 0;
}

}  // namespace lamina::driver
