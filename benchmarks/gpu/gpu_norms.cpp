// Compares lamina's norms on a GPU with the device's copy bandwidth. Timed with the device's events; caches are flushed
// before every run.
//
//   gpu_norms [DEVICE] [--smoke]     DEVICE: cuda, opencl, cuda:1, ...; --smoke: small rows, once, as a test
//
// A row of the table, in Markdown: the median time, GB/s of the bytes that must move (each tensor once), the fraction of the
// copy bandwidth.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "backends/gpu/backend.h"
#include "backends/gpu/devices/devices.h"
#include "compiler/compile.h"
#include "interface/status.h"
#include "passes/pipeline.h"
#include "support/graph_builder.h"

namespace lamina {
namespace {

using testing::GraphBuilder;

struct Memory {
  gpu::Device& device;
  std::vector<void*> handles;
  explicit Memory(gpu::Device& on) : device(on) {}
  ~Memory() {
    for (void* handle : handles) device.release(handle);
  }
  void* take(size_t bytes) { return handles.emplace_back(device.allocate(bytes)); }
};

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// Runs with cold caches: before each run, a block larger than any cache is copied.
class Bench {
 public:
  Bench(gpu::Device& device, bool smoke)
      : device_(device), memory_(device), smoke_(smoke), flush_bytes_(smoke ? 1 << 12 : 256 << 20) {
    from_ = memory_.take(flush_bytes_);
    to_ = memory_.take(flush_bytes_);
  }
  template <typename Work>
  double time(const Work& work) {
    std::vector<double> times;
    for (int run = 0; run < (smoke_ ? 1 : 25); ++run) {
      device_.copy(nullptr, to_, from_, flush_bytes_);
      device_.wait(nullptr);
      times.push_back(device_.time(work));
    }
    return median(times);
  }
  // Bytes read and written per second by the device's own copy.
  double copy_bandwidth() {
    return 2.0 * static_cast<double>(flush_bytes_) /
           (time([&](void* stream) { device_.copy(stream, to_, from_, flush_bytes_); }) * 1e6);
  }

 private:
  gpu::Device& device_;
  Memory memory_;
  bool smoke_;
  size_t flush_bytes_;
  void *from_ = nullptr, *to_ = nullptr;
};

Graph graph_of(const std::string& name, DataType dtype, int64_t rows, int64_t size) {
  constexpr DataType f32 = DataType::f32;
  GraphBuilder g;
  const auto x = g.input(dtype, {rows, size});
  if (name == "backward") {
    const auto dy = g.input(dtype, {rows, size});
    g.multi(OpKind::LayerNormBackward, {x, dy, g.input(f32, {rows}), g.input(f32, {rows}), g.input(f32, {size})}, {},
            {dtype, f32, f32});
    return g.finish();
  }
  const auto src = name == "forward" ? x : g.op(OpKind::Add, {x, g.input(dtype, {rows, size})});
  g.op(OpKind::LayerNorm, {src, g.input(f32, {size}), g.input(f32, {size})}, {{"keep_stats", false}});
  if (name == "add+norm") g.output(src);
  return g.finish();
}

void run_row(gpu::Device& device, const Backend& backend, Bench& bench, double bandwidth, const std::string& name,
             DataType dtype, int64_t rows, int64_t size) {
  const Graph graph = graph_of(name, dtype, rows, size);
  const Partition partition = partition_graph(graph, PartitionPolicy::fusion, gpu_capabilities()).at(0);
  Memory memory(device);
  std::vector<LogicalTensor> ins, outs;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  const auto described = [&](ValueIndex v) {
    LogicalTensor tensor = graph.tensor(v);
    if (!tensor.has_strides()) tensor.strides = dense_strides(*tensor.shape);
    tensor.layout = LayoutType::strided;
    return tensor;
  };
  for (const ValueIndex v : partition.inputs) {
    ins.push_back(described(v));
    inputs.push_back(memory.take(static_cast<size_t>(ins.back().byte_size())));
  }
  for (const ValueIndex v : partition.outputs) {
    outs.push_back(described(v));
    outputs.push_back(memory.take(static_cast<size_t>(outs.back().byte_size())));
  }
  const Subgraph subgraph = extract_subgraph(partition, ins, outs);
  const auto executable = compiler::compile_subgraph(subgraph, backend);
  executable->execute({}, inputs, outputs);
  const double milliseconds = bench.time([&](void* stream) { executable->execute({.stream = stream}, inputs, outputs); });
  const double rate = static_cast<double>(executable->info().required_bytes) / (milliseconds * 1e6);
  std::printf("| %s | %s | %lldx%lld | lamina | %.1f us | %.1f | %.1f %% | %s |\n", name.c_str(),
              std::string(name_of(dtype)).c_str(), static_cast<long long>(rows), static_cast<long long>(size),
              milliseconds * 1e3, rate, 100 * rate / bandwidth, executable->info().schedules.at(0).c_str());
}

int run(const std::string& name, bool smoke) {
  std::shared_ptr<gpu::Device> device;
  try {
    device = gpu::open_device(name);
  } catch (const Error& error) {
    std::printf("nothing is measured: %s\n", error.what());
    return error.status() == Status::invalid_arguments ? 2 : 0;
  }
  const auto backend = gpu::make_backend(device);
  Bench bench(*device, smoke);
  const double bandwidth = bench.copy_bandwidth();
  std::printf("%s (%s): copy bandwidth %.1f GB/s\n\n", device->name().c_str(), std::string(device->api()).c_str(), bandwidth);
  std::printf(
      "| case | type | rows | by | time | GB/s | of copy bandwidth | schedule |\n| --- | --- | --- | --- | --- | --- | --- | "
      "--- |\n");
  const std::vector<Dims> full = {{16384, 1024}, {16384, 4096}, {8192, 8192}, {1024, 65536}, {262144, 256}},
                          small = {{40, 64}, {3, 2000}};
  for (const DataType dtype : {DataType::f32, DataType::bf16}) {
    for (const char* kind : {"forward", "backward", "add+norm"}) {
      for (const Dims& shape : smoke ? small : full)
        run_row(*device, *backend, bench, bandwidth, kind, dtype, shape[0], shape[1]);
    }
  }
  return 0;
}

}  // namespace
}  // namespace lamina

int main(int argc, char** argv) {
  std::string device;
  bool smoke = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--smoke") == 0)
      smoke = true;
    else
      device = argv[i];
  }
  try {
    return lamina::run(device, smoke);
  } catch (const lamina::Error& error) {
    std::fprintf(stderr, "gpu_norms: %s\n", error.what());
    return 1;
  }
}
