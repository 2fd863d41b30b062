// Runs a whole graph as one plan, on the CPU backend with several numbers of threads and on the reference. The bits must equal
// those of one thread, and the values those of the reference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "backends/cpu/support/cpu_check.h"
#include "support/graph_builder.h"

namespace lamina::testing {

struct LibraryRun {
  std::vector<LogicalTensor> inputs, outputs;
  std::map<uint64_t, Buffer> buffers;  // inputs and outputs, by tensor id
  ExecutableInfo info;
};

// Whether all products of a run were summed in the order of k, for any number of rows. This does not hold for the kernels that
// oneDNN has for machines without AVX-512 (docs/numerics.md).
inline bool rows_are_their_own(const LibraryRun& run) {
  return std::none_of(run.info.kernels.begin(), run.info.kernels.end(),
                      [](const std::string& name) { return name.starts_with("matmul ") && !name.starts_with("matmul brg:"); });
}

// The root mean square of a tensor: the unit for rounding errors of sums of products.
inline double root_mean_square(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(std::max<size_t>(values.size(), 1)));
}

// Whether a buffer that was zero is still zero between and after its elements, which have whole bytes.
inline bool holds_elements_alone(const LogicalTensor& tensor, Buffer buffer) {
  const Dims& shape = *tensor.shape;
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    int64_t rest = i, offset = 0;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) offset += rest % shape[d] * tensor.strides[d];
    std::memset(buffer.data() + bytes_of(tensor.dtype, offset), 0, static_cast<size_t>(bytes_of(tensor.dtype, 1)));
  }
  return std::all_of(buffer.begin(), buffer.end(), [](std::byte b) { return b == std::byte{0}; });
}

// `error` is relative to an element or to the root mean square of its tensor, the larger of the two, in addition to both
// roundings to the output's type. `given`: inputs that are not random.
inline LibraryRun expect_library_matches_reference(const Graph& graph, double error = 2e-6,
                                                   const std::map<uint64_t, Buffer>& given = {}, unsigned seed = 1,
                                                   const Backend& cpu = cpu_backend()) {
  LibraryRun run;
  run.buffers = given;
  const Subgraph subgraph{with_strides(graph), graph.inputs(), graph.outputs()};
  std::mt19937 random(seed);
  std::vector<const void*> in;
  for (const ValueIndex v : subgraph.inputs) {
    const LogicalTensor& tensor = run.inputs.emplace_back(subgraph.graph.tensor(v));
    const auto [place, is_new] = run.buffers.try_emplace(tensor.id);
    if (is_new) {
      place->second = buffer_for(tensor);
      fill(place->second, tensor, port_name_of(subgraph.graph, v), random);
    }
    in.push_back(place->second.data());
  }
  for (const ValueIndex v : subgraph.outputs) run.outputs.push_back(subgraph.graph.tensor(v));
  const auto execute = [&](const Backend& backend, int threads) {
    std::vector<Buffer> buffers;
    std::vector<void*> out;
    for (const LogicalTensor& tensor : run.outputs) out.push_back(buffers.emplace_back(buffer_for(tensor)).data());
    const auto executable = compiler::compile_subgraph(subgraph, backend);
    ExecutionContext context;
    context.threads = threads;
    executable->execute(context, in, out);
    if (&backend == &cpu) run.info = executable->info();
    return buffers;
  };
  std::vector<Buffer> actual = execute(cpu, 1);
  for (const int threads : {2, 3, 7}) {
    const std::vector<Buffer> again = execute(cpu, threads);
    for (size_t o = 0; o < actual.size(); ++o) EXPECT_TRUE(again[o] == actual[o]) << threads << " threads, output " << o;
  }
  const std::vector<Buffer> expected = execute(reference_backend(), 0);
  for (size_t o = 0; o < actual.size(); ++o) {
    const LogicalTensor& tensor = run.outputs[o];
    EXPECT_TRUE(holds_elements_alone(tensor, actual[o])) << "output " << o << " (" << describe(tensor) << ")";
    const std::vector<double> got = elements(tensor, actual[o]), want = elements(tensor, expected[o]);
    const double typical = root_mean_square(want);
    for (size_t i = 0; i < got.size(); ++i) {
      const double magnitude = std::max(std::abs(want[i]), typical);
      const double rounding = tensor.dtype == DataType::bf16  ? 0x1p-8
                              : tensor.dtype == DataType::f16 ? 0x1p-11
                              : tensor.dtype == DataType::f64 ? 0x1p-53
                                                              : 0x1p-24;
      if (same_value(got[i], want[i]) || std::abs(got[i] - want[i]) <= magnitude * (error + 2.02 * rounding)) continue;
      ADD_FAILURE() << "output " << o << " (" << describe(tensor) << ") element " << i << ": cpu " << got[i] << ", reference "
                    << want[i];
      break;
    }
    run.buffers[tensor.id] = std::move(actual[o]);
  }
  return run;
}

}  // namespace lamina::testing
