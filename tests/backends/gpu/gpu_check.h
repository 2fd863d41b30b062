// Runs a graph partition by partition on a GPU backend (OpenCL, for which PoCL suffices, unless LAMINA_TEST_DEVICE names a
// device), in kernels of the CPU backend and on the reference backend. Without a reduction, GPU and CPU give the same bits;
// with one, they differ by the order of summation.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "backends/cpu/support/cpu_check.h"
#include "backends/cpu/support/kernels_alone.h"
#include "backends/gpu/backend.h"
#include "backends/gpu/devices/devices.h"
#include "compiler/compile.h"
#include "kernels/plan.h"

namespace lamina::testing {

// Returns the device that LAMINA_TEST_DEVICE names (cuda, opencl:1, ...), otherwise the first OpenCL device. Returns null with
// the reason if there is none: then the tests are skipped, but if a device was named, one of them fails.
inline const std::shared_ptr<gpu::Device>& test_device(std::string& why) {
  static std::string fault;
  static const std::shared_ptr<gpu::Device> device = []() -> std::shared_ptr<gpu::Device> {
    const char* const name = std::getenv("LAMINA_TEST_DEVICE");
    try {
      return gpu::open_device(name == nullptr ? "opencl" : name);
    } catch (const Error& error) {
      fault = error.what();
      if (name != nullptr) ADD_FAILURE() << "LAMINA_TEST_DEVICE=" << name << ": " << fault;
      return nullptr;
    }
  }();
  why = fault;
  return device;
}

inline const Backend* gpu_backend(std::string& why) {
  const std::shared_ptr<gpu::Device>& device = test_device(why);
  static const std::shared_ptr<const Backend> backend = device == nullptr ? nullptr : gpu::make_backend(device);
  return backend.get();
}

#define LAMINA_GPU_OR_SKIP(backend)                       \
  std::string why_no_gpu;                                 \
  const Backend* const backend = gpu_backend(why_no_gpu); \
  if (backend == nullptr) GTEST_SKIP() << why_no_gpu

// A tensor's memory on the device.
class DeviceBuffer {
 public:
  DeviceBuffer(const DeviceMemory& memory, const Buffer& host) : memory_(memory), handle_(memory.allocate(host.size())) {
    memory.copy_in(handle_, host.data(), host.size());
  }
  ~DeviceBuffer() { memory_.release(handle_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  void* handle() const { return handle_; }
  void read(Buffer& host) const { memory_.copy_out(host.data(), handle_, host.size()); }

 private:
  const DeviceMemory& memory_;
  void* handle_;
};

// Host scalars remain host pointers. Returns the executable's info.
inline ExecutableInfo run_on_gpu(const Backend& backend, const Subgraph& subgraph, const std::vector<LogicalTensor>& ins,
                                 const std::vector<const Buffer*>& inputs, std::vector<Buffer>& outputs) {
  const DeviceMemory& memory = *backend.device_memory();
  std::vector<std::unique_ptr<DeviceBuffer>> held;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (size_t i = 0; i < ins.size(); ++i) {
    held.push_back(std::make_unique<DeviceBuffer>(memory, *inputs[i]));
    in.push_back(ins[i].property == PropertyType::host_scalar ? static_cast<const void*>(inputs[i]->data())
                                                              : held.back()->handle());
  }
  for (Buffer& output : outputs) {
    held.push_back(std::make_unique<DeviceBuffer>(memory, output));
    out.push_back(held.back()->handle());
  }
  const auto executable = compiler::compile_subgraph(subgraph, backend);
  executable->execute({}, in, out);
  memory.wait(nullptr);
  for (size_t o = 0; o < outputs.size(); ++o) held[ins.size() + o]->read(outputs[o]);
  return executable->info();
}

struct GpuResult {
  std::vector<ExecutableInfo> partitions;
  std::map<uint64_t, Buffer> buffers;  // of every tensor, by id
};

// `factor` scales the tolerance against the reference, as in expect_cpu_matches_reference.
inline GpuResult expect_gpu_is_right(const Backend& gpu, const Graph& graph, double factor = 4, unsigned seed = 1,
                                     const std::map<uint64_t, Buffer>& given = {}) {
  GpuResult result;
  result.buffers = given;
  std::mt19937 random(seed);
  for (const Partition& partition : partition_graph(graph, PartitionPolicy::fusion, gpu_capabilities())) {
    EXPECT_TRUE(partition.supported) << partition.unsupported_reason;
    if (!partition.supported) continue;
    const bool on_cpu_too = std::all_of(partition.graph->ops().begin(), partition.graph->ops().end(), [&](const Op& op) {
      return kernels_alone().why_unsupported(*partition.graph, op).empty();
    });
    const PortTensors ports = port_tensors(partition);
    const Subgraph subgraph = extract_subgraph(partition, ports.inputs, ports.outputs);
    const PortData inputs = inputs_of(partition, ports, result.buffers, random);
    std::vector<Buffer> actual = outputs_for(ports), cpu = outputs_for(ports), expected = outputs_for(ports);
    result.partitions.push_back(run_on_gpu(gpu, subgraph, ports.inputs, inputs.buffers, actual));
    if (on_cpu_too) run_on_host(kernels_alone(), subgraph, inputs, cpu);
    run_on_host(reference_backend(), subgraph, inputs, expected);
    bool reduces = false;
    for (const kernel::PlanStep& step : compiler::plan_subgraph(subgraph, *gpu.plan_target()).steps) {
      const auto* const generated = std::get_if<kernel::KernelStep>(&step);
      reduces = reduces || generated == nullptr || generated->kernel.has_row_reduction() || generated->kernel.has_column_sum();
    }
    for (size_t o = 0; o < actual.size(); ++o) {
      const LogicalTensor& tensor = ports.outputs[o];
      const auto got = elements(tensor, actual[o]), want = elements(tensor, expected[o]), on_cpu = elements(tensor, cpu[o]);
      for (size_t i = 0; i < got.size(); ++i) {
        const bool near =
            same_value(got[i], want[i]) || std::abs(got[i] - want[i]) <= allowed_error(tensor.dtype, want[i], factor);
        if (near && (reduces || !on_cpu_too || same_value(got[i], on_cpu[i]))) continue;
        ADD_FAILURE() << "tensor " << tensor.id << " (" << describe(tensor) << ") element " << i << ": gpu " << got[i]
                      << ", cpu " << on_cpu[i] << ", reference " << want[i] << "\n"
                      << result.partitions.back().kernel_texts.at(0);
        break;
      }
      result.buffers[tensor.id] = std::move(actual[o]);
    }
  }
  return result;
}

}  // namespace lamina::testing
