// A graph that is exported, loaded by the runtime, and run by it and by the compiler's library on the same data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "compiler/export_model.h"
#include "graph/lamina_runtime.hpp"
#include "interface/graph.h"
#include "lamina/fill.h"

namespace lamina::testing {

// The file of a model in aligned memory.
class ModelBytes {
 public:
  explicit ModelBytes(const std::string& text);

  const void* data() const { return memory_.get(); }
  size_t size() const { return size_; }
  std::string text() const { return {static_cast<const char*>(memory_.get()), size_}; }
  runtime::model load(const runtime::load_options& options = {}) const { return {data(), size(), options}; }

 private:
  std::unique_ptr<void, void (*)(void*)> memory_;
  size_t size_;
};

// A model with a variant for each graph.
ModelBytes exported(std::span<const Graph> graphs, const compiler::ExportOptions& options);

// A backend of this process with the primitives and the instructions of the best program for this machine.
std::shared_ptr<const Backend> backend_like_exported();

class ExportedGraph {
 public:
  // Constants of the graph become part of the file, also packed with `packs`. Without `isas`: all that this machine has.
  explicit ExportedGraph(Graph graph, std::vector<std::string> isas = {}, bool packs = false,
                         PartitionPolicy policy = PartitionPolicy::fusion);

  const ModelBytes& file() const { return *file_; }
  const Graph& graph() const { return graph_; }
  std::map<uint64_t, std::string_view> weights() const;  // the data of its constants
  runtime::model load() const { return file_->load(); }

  // Runs all partitions on the CPU backend, or the one of compare_with; the results by id.
  const driver::Buffers& expected();
  void compare_with(const Backend& backend) { backend_ = &backend, results_.clear(); }

  // Runs the model. Memory begins `shift` elements after a line, so that vectors may not be aligned.
  struct Run {
    int threads = 1;
    size_t shift = 0;
    const lamina_runtime_threadpool_t* pool = nullptr;
  };
  // "" if all bits of all outputs are those of the CPU backend, else a sentence.
  std::string difference(const runtime::model& model, const Run& run);
  std::string difference(const Run& run) { return difference(load(), run); }

 private:
  Graph graph_;
  driver::Buffers buffers_;  // of inputs
  driver::Buffers results_;
  const Backend* backend_ = &cpu_backend();
  std::unique_ptr<const ModelBytes> file_;
};

}  // namespace lamina::testing
