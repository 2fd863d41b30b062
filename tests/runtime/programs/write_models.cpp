// Writes the models of the tests for this machine and for 64-bit ARM, with weights packed in the file and without:
//
//   write_models FOLDER     FOLDER/NAME.lamina and FOLDER/NAME_packed.lamina
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "backends/exported_model.h"
#include "runtime/exported_graph.h"
#include "runtime/model_graphs.h"

namespace {

using namespace lamina::testing;

void write(const std::filesystem::path& path, const ExportedGraph& model) {
  std::ofstream file(path, std::ios::binary);
  file << model.file().text();
  if (!file.flush()) throw std::ios_base::failure(path.string() + " cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_models FOLDER\n");
    return 2;
  }
  try {
    const std::filesystem::path folder = argv[1];
    std::filesystem::create_directories(folder);
    std::vector<NamedGraph> graphs = model_graphs();
    graphs.push_back({"Convolution", [] { return convolution(16, 1, 3); }});
    graphs.push_back({"ConvolutionInGroups", [] { return convolution(24, 2, 5); }});
    for (const NamedGraph& graph : graphs) {
      for (const bool packs : {false, true})
        write(folder / (graph.name + (packs ? "_packed.lamina" : ".lamina")),
              ExportedGraph(graph.make(), {lamina::cpu_isas_here().front(), "neon"}, packs));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
