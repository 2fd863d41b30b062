// Prints what result_digest prints, but runs the graphs of the files by the compiler, with the schedules of this machine:
//
//   library_digest [--without-onednn] FILE.lamina...
//
// --without-onednn: all ops by generated code, as in models.
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "compiler/compile.h"
#include "digest_inputs.h"
#include "graph/lamina_runtime.hpp"
#include "interface/json/json.h"
#include "interface/status.h"
#include "lamina/device_tensors.h"
#include "lamina/fill.h"
#include "passes/pipeline.h"
#include "runtime/exported_graph.h"
#include "runtime/model_file.h"
#include "runtime/zip_directory.h"

namespace lamina::testing {
namespace {

using driver::Buffer;
using driver::Buffers;

// The members of a model's file.
class Members {
 public:
  explicit Members(const std::string& path) : file_(path), members_(lamina::runtime::read_zip_directory(file_.bytes())) {}

  std::string_view find(std::string_view name) const {
    for (const runtime::ZipMember& member : members_)
      if (member.name == name) return member.data;
    throw Error(Status::invalid_arguments, join("the file has no ", name));
  }

 private:
  runtime::ModelFile file_;
  std::vector<runtime::ZipMember> members_;
};

std::shared_ptr<Buffer> buffer_of(const LogicalTensor& tensor, std::string_view data) {
  auto buffer = std::make_shared<Buffer>(tensor);
  if (static_cast<int64_t>(data.size()) != buffer->tensor().byte_size())
    throw Error(Status::invalid_arguments, join("tensor ", tensor.id, " has ", data.size(), " bytes of data"));
  std::memcpy(buffer->data(), data.data(), data.size());
  return buffer;
}

// `shared`: ids of inputs whose data have another name in the file.
void add_weights(const Graph& graph, std::string_view file, const nlohmann::json& shared, Buffers& buffers) {
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  const auto header = nlohmann::json::parse(file.substr(sizeof length, length));
  const std::string_view data = file.substr(sizeof length + length);
  for (const ValueIndex input : graph.inputs()) {
    const LogicalTensor& tensor = graph.tensor(input);
    const std::string id = std::to_string(tensor.id);
    const auto found = header.find(shared.value(id, id));
    if (found == header.end()) continue;
    const size_t begin = found->at("data_offsets")[0], end = found->at("data_offsets")[1];
    buffers[tensor.id] = buffer_of(tensor, data.substr(begin, end - begin));
  }
}

Buffers results_of(const Graph& graph, const Backend& backend, Buffers buffers) {
  for (const Partition& partition : partition_graph(graph, PartitionPolicy::fusion, backend)) {
    const auto compiled = compiler::compile_partition(partition, backend);
    std::vector<std::shared_ptr<Buffer>> sources, destinations;
    for (const LogicalTensor& tensor : compiled->inputs()) sources.push_back(buffers.at(tensor.id));
    for (const LogicalTensor& tensor : compiled->outputs())
      destinations.push_back(buffers[tensor.id] = std::make_shared<Buffer>(tensor));
    const driver::DeviceTensors tensors(backend, sources, destinations);
    driver::Execution(*compiled, tensors).run();
  }
  return buffers;
}

void print_results(const std::filesystem::path& path, const Backend& backend) {
  const Members members(path.string());
  Graph graph = read_graph_json(members.find("graph.json"), path.string());
  graph.finalize();
  const auto meta = nlohmann::json::parse(members.find("meta.json"));
  if (meta.at("variants").size() != 1) throw Error(Status::invalid_arguments, "the file has several variants and one graph");
  const auto& variant = meta.at("variants")[0];
  // The model says which inputs it has, and meta.json which tensors of the graph they are.
  const runtime::model model(path.string());
  const std::vector<std::vector<char>> sources = digest::filled(model.inputs(0));
  Buffers buffers;
  add_weights(graph, members.find("weights.safetensors"), meta.at("weights").at("shared"), buffers);
  for (size_t i = 0; i < sources.size(); ++i) {
    const uint64_t id = variant.at("inputs")[i].at("id");
    buffers[id] = buffer_of(graph.tensor(*graph.find_value(id)), {sources[i].data(), sources[i].size()});
  }
  const Buffers results = results_of(graph, backend, std::move(buffers));
  for (const auto& output : variant.at("outputs")) {
    const Buffer& buffer = *results.at(output.at("id").get<uint64_t>());
    const auto* const bytes = static_cast<const char*>(buffer.data());
    std::printf("%s: %s %016" PRIx64 "\n", path.stem().c_str(), output.at("name").get<std::string>().c_str(),
                digest::digest_of(bytes, static_cast<size_t>(buffer.tensor().byte_size())));
  }
}

}  // namespace
}  // namespace lamina::testing

int main(int argc, char** argv) {
  const lamina::Backend* backend = &lamina::cpu_backend();
  for (int i = 1; i < argc; ++i) {
    try {
      if (std::strcmp(argv[i], "--without-onednn") == 0)
        backend = lamina::testing::backend_like_exported().get();
      else
        lamina::testing::print_results(argv[i], *backend);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", argv[i], error.what());
      return 1;
    }
  }
  return 0;
}
