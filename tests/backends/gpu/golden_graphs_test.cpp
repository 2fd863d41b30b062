// The bits of whole graphs (golden_graphs.h) on the device that is here (PoCL suffices): those of the CPU, unless rows are
// summed.
#include <gtest/gtest.h>

#include "backends/gpu/cuda/blas_lt.h"
#include "backends/gpu/reference_check.h"
#include "support/golden_graphs.h"

namespace lamina::testing {
namespace {

TEST(GpuGoldenGraphs, HaveTheBitsOfTheLastVersion) {
  LAMINA_GPU_OR_SKIP(gpu);
  if (gpu::cuda::asks_for_blas_lt()) GTEST_SKIP() << "LAMINA_CUBLASLT=1: cuBLASLt sums in an order of its own";
  for (const GoldenGraph& golden : golden_graphs()) {
    SCOPED_TRACE(golden.name);
    const Graph graph = golden.build(golden.dtype);
    const WholeRun run = expect_whole_graph_is_right(*gpu, graph, golden.error);
    const LogicalTensor dst = graph.tensor(graph.outputs().at(0));
    const auto bytes = static_cast<size_t>(bytes_of(dst.dtype, dst.element_count()));
    EXPECT_EQ(hash_of_bytes(run.dst_bytes.data(), bytes), golden.hash_on_gpus);
  }
}

}  // namespace
}  // namespace lamina::testing
