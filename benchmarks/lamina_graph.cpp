// Runs a graph through lamina's modules on the CPU, as the driver replays it.
#include <memory>
#include <vector>

#include "backends/backend.h"
#include "compiler/compile.h"
#include "corpus_contenders.h"
#include "passes/pipeline.h"

namespace bench {
namespace {

using lamina::compiler::BoundTensor;
using lamina::compiler::CompiledPartition;

struct Step {
  std::unique_ptr<const CompiledPartition> compiled;
  std::vector<BoundTensor> inputs, outputs;
};

Step compile_step(const lamina::Partition& partition, lamina::driver::Buffers& tensors) {
  if (!partition.supported) throw lamina::Error(lamina::Status::unimplemented, partition.unsupported_reason);
  Step step{lamina::compiler::compile_partition(partition, lamina::cpu_backend()), {}, {}};
  for (const lamina::LogicalTensor& port : step.compiled->inputs()) {
    step.inputs.push_back({&port, tensors.at(port.id)->data()});
  }
  for (const lamina::LogicalTensor& port : step.compiled->outputs()) {
    tensors[port.id] = std::make_shared<lamina::driver::Buffer>(port);
    step.outputs.push_back({&port, tensors[port.id]->data()});
  }
  return step;
}

}  // namespace

GraphContender lamina_graph(const lamina::Graph& graph, const lamina::driver::Buffers& inputs) {
  GraphContender contender;
  contender.tensors = inputs;
  const auto steps = std::make_shared<std::vector<Step>>();
  for (const auto& partition : lamina::partition_graph(graph, lamina::PartitionPolicy::fusion, lamina::cpu_backend())) {
    steps->push_back(compile_step(partition, contender.tensors));
    contender.compile_ms += steps->back().compiled->compile_ms();
  }
  contender.partitions = steps->size();
  contender.run = [steps] {
    for (const Step& step : *steps) step.compiled->execute({}, step.inputs, step.outputs);
  };
  return contender;
}

}  // namespace bench
