// Compares a whole graph on a GPU with the reference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "backends/gpu/gpu_check.h"
#include "support/graph_builder.h"

namespace lamina::testing {

struct WholeRun {
  std::vector<double> dst;          // of the first output
  Buffer dst_bytes;                 // the same as it is stored
  std::map<uint64_t, Buffer> data;  // of the inputs
  ExecutableInfo info;
};

// Runs the graph as one plan on the GPU and on the reference. An error is relative to the element or to the root mean square of
// its tensor, the larger of the two. `given`: inputs that are not random.
inline WholeRun expect_whole_graph_is_right(const Backend& gpu, const Graph& graph, double error = 2e-6,
                                            const std::map<uint64_t, Buffer>& given = {}) {
  WholeRun run;
  run.data = given;
  const Subgraph subgraph{with_strides(graph), graph.inputs(), graph.outputs()};
  std::mt19937 random(1);
  std::vector<LogicalTensor> ins;
  PortData inputs;
  for (const ValueIndex v : subgraph.inputs) {
    const LogicalTensor& tensor = ins.emplace_back(subgraph.graph.tensor(v));
    const auto [place, is_new] = run.data.try_emplace(tensor.id);
    if (is_new) {
      place->second = buffer_for(tensor);
      fill(place->second, tensor, port_name_of(subgraph.graph, v), random);
    }
    inputs.buffers.push_back(&place->second);
    inputs.pointers.push_back(place->second.data());
  }
  std::vector<Buffer> actual, expected;
  for (const ValueIndex v : subgraph.outputs) actual.push_back(buffer_for(subgraph.graph.tensor(v)));
  expected = actual;
  run.info = run_on_gpu(gpu, subgraph, ins, inputs.buffers, actual);
  run_on_host(reference_backend(), subgraph, inputs, expected);
  for (size_t o = 0; o < actual.size(); ++o) {
    const LogicalTensor& tensor = subgraph.graph.tensor(subgraph.outputs[o]);
    const std::vector<double> got = elements(tensor, actual[o]), want = elements(tensor, expected[o]);
    double squares = 0;
    for (const double value : want) squares += std::isnan(value) ? 0 : value * value;
    const double typical = want.empty() ? 0 : std::sqrt(squares / static_cast<double>(want.size()));
    const double rounding = tensor.dtype == DataType::bf16  ? 0x1p-8
                            : tensor.dtype == DataType::f16 ? 0x1p-11
                            : tensor.dtype == DataType::f64 ? 0x1p-53
                                                            : 0x1p-24;
    for (size_t i = 0; i < got.size(); ++i) {
      const double magnitude = std::max(std::abs(want[i]), typical);
      if (same_value(got[i], want[i]) || std::abs(got[i] - want[i]) <= magnitude * (error + 2.02 * rounding)) continue;
      ADD_FAILURE() << "output " << o << " (" << describe(tensor) << ") element " << i << ": gpu " << got[i] << ", reference "
                    << want[i];
      break;
    }
    if (o == 0) run.dst = got, run.dst_bytes = actual[o];
  }
  return run;
}

}  // namespace lamina::testing
