// A complete use of a device, for tests that watch the calls to its driver.
#pragma once

#include <functional>
#include <memory>

#include "backends/gpu/backend.h"
#include "backends/gpu/gpu_kernels.h"
#include "compiler/compile.h"

namespace lamina::testing {

// Compiles the first partition of a graph with dense outputs.
inline std::unique_ptr<Executable> compile_first_partition(const Graph& graph, const Backend& backend) {
  const Partition partition = partition_graph(graph, PartitionPolicy::fusion, gpu_capabilities()).at(0);
  std::vector<LogicalTensor> ins, outs;
  for (const ValueIndex v : partition.inputs) ins.push_back(graph.tensor(v));
  for (const ValueIndex v : partition.outputs) outs.push_back(made_dense(graph.tensor(v)));
  return compiler::compile_subgraph(extract_subgraph(partition, ins, outs), backend);
}

// Uses a GPU like a program: opens it, allocates, copies in, compiles a partition of two launches, executes twice, waits and
// copies out. `observe` receives a function that executes once more.
inline void run_all_of(std::shared_ptr<gpu::Device> device,
                       const std::function<void(const std::function<void()>& execute)>& observe = nullptr) {
  const Graph graph = norm_backward_graph(DataType::f32, 40, 64);
  const Partition partition = partition_graph(graph, PartitionPolicy::fusion, gpu_capabilities()).at(0);
  const auto backend = gpu::make_backend(std::move(device));
  const DeviceMemory& memory = *backend->device_memory();
  struct Held {
    const DeviceMemory& memory;
    std::vector<void*> handles;
    ~Held() {
      for (void* handle : handles) memory.release(handle);
    }
  } held{memory, {}};
  std::vector<LogicalTensor> ins, outs;
  for (const ValueIndex v : partition.inputs) ins.push_back(graph.tensor(v));
  for (const ValueIndex v : partition.outputs) outs.push_back(graph.tensor(v));
  for (LogicalTensor& tensor : outs) {
    tensor.strides = dense_strides(*tensor.shape);
    tensor.layout = LayoutType::strided;
  }
  const Subgraph subgraph = extract_subgraph(partition, ins, outs);
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  std::vector<std::byte> host(40 * 64 * 4);
  for (const LogicalTensor& tensor : ins) {
    held.handles.push_back(memory.allocate(static_cast<size_t>(tensor.byte_size())));
    memory.copy_in(held.handles.back(), host.data(), static_cast<size_t>(tensor.byte_size()));
    inputs.push_back(held.handles.back());
  }
  for (const LogicalTensor& tensor : outs) {
    held.handles.push_back(memory.allocate(static_cast<size_t>(tensor.byte_size())));
    outputs.push_back(held.handles.back());
  }
  const auto executable = compiler::compile_subgraph(subgraph, *backend);
  for (int i = 0; i < 2; ++i) executable->execute({}, inputs, outputs);
  if (observe) observe([&] { executable->execute({}, inputs, outputs); });
  memory.wait(nullptr);
  memory.copy_out(host.data(), held.handles.back(), 64 * 4);
}

}  // namespace lamina::testing
