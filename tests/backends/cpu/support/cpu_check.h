// Runs a graph partition by partition on the cpu backend and on the reference backend and compares every output.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "backends/backend.h"
#include "compiler/compile.h"
#include "interface/op_schema.h"
#include "interface/status.h"
#include "passes/pipeline.h"

namespace lamina::testing {

struct CpuCapabilities : Capabilities {
  std::string why_unsupported(const Graph& graph, const Op& op) const override {
    return cpu_backend().why_unsupported(graph, op);
  }
};

using Buffer = std::vector<std::byte>;

inline Buffer buffer_for(const LogicalTensor& tensor) {
  return Buffer(static_cast<size_t>(bytes_of(tensor.dtype, tensor.span())) + 64, std::byte{0});
}

// Returns the name of the port that reads a graph input first.
inline std::string port_name_of(const Graph& graph, ValueIndex value) {
  for (const Port& reader : graph.value(value).consumers) {
    const Op& op = graph.ops()[static_cast<size_t>(reader.op)];
    const auto ports = existing_inputs(schema_of(op.kind), op.attributes);
    if (static_cast<size_t>(reader.port) < ports.size()) return ports[static_cast<size_t>(reader.port)]->name;
  }
  return "";
}

// Fills a tensor with values that suit the port; the memory between strided elements is filled too.
inline void fill(Buffer& data, const LogicalTensor& tensor, const std::string& port, std::mt19937& random) {
  std::uniform_real_distribution<double> around(-2.0, 2.0), positive(0.5, 2.0);
  for (int64_t i = 0; i < tensor.span(); ++i) {
    double value = around(random);
    if (port == "variance" || port == "positive" || port == "gamma" || port == "scales") value = positive(random);
    if (port == "probability") value = 0.25;
    if (tensor.dtype == DataType::boolean) value = value > 0;
    if (is_integer(tensor.dtype)) value = std::round(value * (bits_of(tensor.dtype) < 8 ? 8 : 50));
    if (tensor.dtype == DataType::s64) value = 42;
    store_from_double(tensor.dtype, data.data(), i, value);
  }
}

// Returns the elements of a strided tensor in row-major order.
inline std::vector<double> elements(const LogicalTensor& tensor, const Buffer& data) {
  std::vector<double> values;
  const Dims& shape = *tensor.shape;
  const int64_t count = tensor.element_count();
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, offset = 0;
    for (size_t d = shape.size(); d-- > 0;) {
      offset += rest % shape[d] * tensor.strides[d];
      rest /= shape[d];
    }
    values.push_back(load_as_double(tensor.dtype, data.data(), offset));
  }
  return values;
}

// Returns one unit in the last place of `dtype` at `value`, at least that at 1, so that sums near zero have an absolute bound.
inline double allowed_error(DataType dtype, double value, double factor) {
  const double magnitude = std::max(std::abs(value), 1.0);
  switch (dtype) {
    case DataType::f64: return factor * magnitude * 0x1p-48;
    case DataType::f32: return factor * magnitude * 0x1p-21;
    case DataType::f16: return magnitude * 0x1p-10 * 1.01 + factor * magnitude * 0x1p-21;
    case DataType::bf16: return magnitude * 0x1p-7 * 1.01 + factor * magnitude * 0x1p-21;
    default: return 1.0;  // integers: one step, since a value near a tie may round either way
  }
}

struct RunResult {
  std::vector<size_t> kernels_per_partition;
  std::map<uint64_t, Buffer> buffers;
};

struct PortTensors {
  std::vector<LogicalTensor> inputs, outputs;
};

// The partition's ports; an output without strides is dense.
inline PortTensors port_tensors(const Partition& partition) {
  PortTensors ports;
  for (const ValueIndex v : partition.inputs) ports.inputs.push_back(partition.graph->tensor(v));
  for (const ValueIndex v : partition.outputs) {
    LogicalTensor tensor = partition.graph->tensor(v);
    if (!tensor.has_strides()) tensor.strides = dense_strides(*tensor.shape);
    tensor.layout = LayoutType::strided;
    ports.outputs.push_back(tensor);
  }
  return ports;
}

// The inputs of a partition, in port order.
struct PortData {
  std::vector<const Buffer*> buffers;
  std::vector<const void*> pointers;
};

// Fills the tensors that `buffers` lacks with values for their ports.
inline PortData inputs_of(const Partition& partition, const PortTensors& ports, std::map<uint64_t, Buffer>& buffers,
                          std::mt19937& random) {
  PortData data;
  for (size_t i = 0; i < ports.inputs.size(); ++i) {
    const LogicalTensor& tensor = ports.inputs[i];
    const auto [place, is_new] = buffers.try_emplace(tensor.id);
    if (is_new) {
      place->second = buffer_for(tensor);
      fill(place->second, tensor, port_name_of(*partition.graph, partition.inputs[i]), random);
    }
    data.buffers.push_back(&place->second);
    data.pointers.push_back(place->second.data());
  }
  return data;
}

inline std::vector<Buffer> outputs_for(const PortTensors& ports) {
  std::vector<Buffer> buffers;
  for (const LogicalTensor& tensor : ports.outputs) buffers.push_back(buffer_for(tensor));
  return buffers;
}

// Compiles and executes on a backend that reads and writes host memory.
inline ExecutableInfo run_on_host(const Backend& backend, const Subgraph& subgraph, const PortData& inputs,
                                  std::vector<Buffer>& outputs) {
  std::vector<void*> pointers;
  for (Buffer& buffer : outputs) pointers.push_back(buffer.data());
  const auto executable = compiler::compile_subgraph(subgraph, backend);
  executable->execute({}, inputs.pointers, pointers);
  return executable->info();
}

inline bool same_value(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// A partition that the CPU executed; all tensors are in host memory.
struct CpuRun {
  const Subgraph& subgraph;
  const PortTensors& ports;
  std::vector<const Buffer*> inputs;
  const std::vector<Buffer>& outputs;
  double factor = 4;              // scales the tolerance
  int64_t most_elements = 16384;  // the limit for slow comparisons
};

// Runs the same partition elsewhere and adds failures of its own. Each test program defines it once: with the interpreter of
// the kernel IR, or with a GPU.
void compare_with_cpu(const CpuRun& run);

// Later partitions read the CPU's results. `factor` scales the tolerance.
inline RunResult expect_cpu_matches_reference(const Graph& graph, double factor = 4, unsigned seed = 1,
                                              const std::map<uint64_t, Buffer>& given = {}) {
  RunResult result;
  result.buffers = given;
  std::mt19937 random(seed);
  for (const Partition& partition : partition_graph(graph, PartitionPolicy::fusion, CpuCapabilities{})) {
    EXPECT_TRUE(partition.supported) << partition.unsupported_reason;
    if (!partition.supported) continue;
    const PortTensors ports = port_tensors(partition);
    const std::vector<LogicalTensor>& outs = ports.outputs;
    const Subgraph subgraph = extract_subgraph(partition, ports.inputs, outs);
    const PortData inputs = inputs_of(partition, ports, result.buffers, random);
    std::vector<Buffer> actual = outputs_for(ports), expected = outputs_for(ports);
    const std::vector<std::string> texts = run_on_host(cpu_backend(), subgraph, inputs, actual).kernel_texts;
    run_on_host(reference_backend(), subgraph, inputs, expected);
    result.kernels_per_partition.push_back(texts.size());
    compare_with_cpu({subgraph, ports, inputs.buffers, actual, factor});
    for (size_t o = 0; o < outs.size(); ++o) {
      const std::vector<double> got = elements(outs[o], actual[o]), want = elements(outs[o], expected[o]);
      for (size_t i = 0; i < got.size(); ++i) {
        const double allowed = allowed_error(outs[o].dtype, want[i], factor);
        if (same_value(got[i], want[i]) || std::abs(got[i] - want[i]) <= allowed) continue;
        ADD_FAILURE() << "tensor " << outs[o].id << " (" << describe(outs[o]) << ") element " << i << ": cpu " << got[i]
                      << ", reference " << want[i] << "\n"
                      << (texts.empty() ? "" : texts[0]);
        break;
      }
      result.buffers[outs[o].id] = std::move(actual[o]);
    }
  }
  return result;
}

inline void expect_one_kernel(const RunResult& result) { EXPECT_EQ(result.kernels_per_partition, std::vector<size_t>{1}); }

}  // namespace lamina::testing
