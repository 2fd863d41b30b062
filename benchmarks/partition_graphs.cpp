// The time from the text of a graph's dump to its partitions, and how it grows with the size of the graph.
//
//   partition_graphs --benchmark_filter=Chain
//
// Each family is measured at two or more sizes, and "time per op" should be constant. The goal is 100 ms for 10,000 ops.
#include <benchmark/benchmark.h>

#include "backends/backend.h"
#include "interface/json/json.h"
#include "interface/status.h"
#include "passes/pipeline.h"

namespace lamina {
namespace {

// Writes a graph op by op. Every tensor has the type f32.
class GraphWriter {
 public:
  LogicalTensor tensor(Dims shape) {
    LogicalTensor tensor;
    tensor.id = next_tensor_++;
    tensor.dtype = DataType::f32;
    tensor.layout = LayoutType::strided;
    tensor.strides = dense_strides(shape);
    tensor.shape = std::move(shape);
    return tensor;
  }
  LogicalTensor number(double value) {
    LogicalTensor scalar = tensor({1});
    scalar.property = PropertyType::constant;
    numbers_.emplace_back(scalar.id, value);
    return scalar;
  }
  LogicalTensor op(OpKind kind, const std::vector<LogicalTensor>& inputs, Dims shape, Attributes attributes = {}) {
    const LogicalTensor made = tensor(std::move(shape));
    graph_.add_op(ops_++, kind, "", std::move(attributes), inputs, std::vector{made});
    return made;
  }
  size_t size() const { return ops_; }
  std::string json() {
    for (const auto& [id, value] : numbers_) graph_.set_constant(id, value);
    graph_.finalize();
    return write_graph_json(graph_);
  }

 private:
  Graph graph_;
  uint64_t next_tensor_ = 0;
  size_t ops_ = 0;
  std::vector<std::pair<uint64_t, double>> numbers_;
};

const Dims kShape{64, 256};

// x ──> Add ──> Multiply ──> ReLU ──> Add ──> ...: one long chain with separate side inputs.
std::string chain(size_t count) {
  GraphWriter g;
  LogicalTensor x = g.tensor(kShape);
  while (g.size() < count) {
    switch (g.size() % 3) {
      case 0: x = g.op(OpKind::Add, {x, g.tensor(kShape)}, kShape); break;
      case 1: x = g.op(OpKind::Multiply, {x, g.tensor({256})}, kShape); break;
      default: x = g.op(OpKind::ReLU, {x}, kShape);
    }
  }
  return g.json();
}

LogicalTensor written_out_norm(GraphWriter& g, const LogicalTensor& x) {
  const Attributes row{{"axes", std::vector<int64_t>{-1}}, {"keep_dims", true}};
  const Dims one{64, 1};
  const auto centered = g.op(OpKind::Subtract, {x, g.op(OpKind::ReduceMean, {x}, one, row)}, kShape);
  const auto variance = g.op(OpKind::ReduceMean, {g.op(OpKind::Square, {centered}, kShape)}, one, row);
  const auto root = g.op(OpKind::Sqrt, {g.op(OpKind::Add, {variance, g.number(1e-5)}, one)}, one);
  const auto scaled = g.op(OpKind::Multiply, {g.op(OpKind::Divide, {centered, root}, kShape), g.tensor({256})}, kShape);
  return g.op(OpKind::Add, {scaled, g.tensor({256})}, kShape);
}

LogicalTensor linear(GraphWriter& g, const LogicalTensor& x) {
  return g.op(OpKind::MatMul, {x, g.tensor({256, 256}), g.tensor({256})}, kShape);
}

// Blocks of norm, attention-like products, residual, norm, gated MLP, residual. Half of the norms are written in small ops.
std::string transformer(size_t count) {
  GraphWriter g;
  LogicalTensor x = g.tensor(kShape);
  for (size_t block = 0; g.size() < count; ++block) {
    const auto norm = [&](const LogicalTensor& src) {
      if (block % 2 == 0) return written_out_norm(g, src);
      return g.op(OpKind::LayerNorm, {src, g.tensor({256}), g.tensor({256})}, kShape, {{"keep_stats", false}});
    };
    const LogicalTensor a = norm(x);
    const LogicalTensor q = linear(g, a), k = linear(g, a), v = linear(g, a);
    const auto scores = g.op(OpKind::MatMul, {q, k}, {64, 64}, {{"transpose_b", true}});
    const auto scaled = g.op(OpKind::Divide, {scores, g.number(16)}, {64, 64});
    const auto weights = g.op(OpKind::SoftMax, {scaled}, {64, 64}, {{"axis", int64_t{-1}}});
    x = g.op(OpKind::Add, {x, linear(g, g.op(OpKind::MatMul, {weights, v}, kShape))}, kShape);
    const LogicalTensor b = norm(x);
    const LogicalTensor gate = linear(g, b), up = linear(g, b);
    const auto swish = g.op(OpKind::Multiply, {gate, g.op(OpKind::Sigmoid, {gate}, kShape)}, kShape);
    x = g.op(OpKind::Add, {x, linear(g, g.op(OpKind::Multiply, {swish, up}, kShape))}, kShape);
  }
  return g.json();
}

// One value with `count` consumers.
std::string fan_out(size_t count) {
  GraphWriter g;
  const LogicalTensor x = g.op(OpKind::Exp, {g.tensor(kShape)}, kShape);
  while (g.size() < count) g.op(OpKind::ReLU, {x}, kShape);
  return g.json();
}

// `count` producers whose values are joined, 64 per Concat, until one is left.
std::string fan_in(size_t count) {
  GraphWriter g;
  std::vector<LogicalTensor> values;
  for (size_t i = 0; i < count; ++i) values.push_back(g.op(OpKind::ReLU, {g.tensor({4, 8})}, {4, 8}));
  while (values.size() > 1) {
    std::vector<LogicalTensor> joined;
    for (size_t i = 0; i < values.size(); i += 64) {
      const std::vector<LogicalTensor> part(values.begin() + static_cast<int64_t>(i),
                                            values.begin() + static_cast<int64_t>(std::min(i + 64, values.size())));
      int64_t extent = 0;
      for (const LogicalTensor& value : part) extent += (*value.shape)[0];
      joined.push_back(g.op(OpKind::Concat, part, {extent, 8}, {{"axis", int64_t{0}}}));
    }
    values = std::move(joined);
  }
  return g.json();
}

// `count` norms of one value, and their sum.
std::string siblings(size_t count) {
  GraphWriter g;
  const LogicalTensor x = g.tensor(kShape);
  LogicalTensor sum = x;
  while (g.size() < count) {
    const auto norm = g.op(OpKind::LayerNorm, {x, g.tensor({256}), g.tensor({256})}, kShape, {{"keep_stats", false}});
    sum = g.op(OpKind::Add, {sum, norm}, kShape);
  }
  return g.json();
}

void load_and_partition(benchmark::State& state, std::string (*write)(size_t)) {
  const auto count = static_cast<size_t>(state.range(0));
  const std::string text = write(count);
  size_t partitions = 0;
  for (auto _ : state) {
    Graph graph = read_graph_json(text, "graph.json");
    graph.finalize();
    partitions = partition_graph(graph, PartitionPolicy::fusion, cpu_backend()).size();
    benchmark::DoNotOptimize(partitions);
  }
  state.counters["partitions"] = static_cast<double>(partitions);
  state.counters["per op"] = benchmark::Counter(static_cast<double>(count),
                                                benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void load_only(benchmark::State& state, std::string (*write)(size_t)) {
  const std::string text = write(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    Graph graph = read_graph_json(text, "graph.json");
    graph.finalize();
    benchmark::DoNotOptimize(graph.ops().size());
  }
}

BENCHMARK_CAPTURE(load_only, Chain, chain)->Arg(10'000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_and_partition, Chain, chain)->Arg(10'000)->Arg(20'000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_and_partition, Transformer, transformer)->Arg(10'000)->Arg(20'000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_and_partition, FanOut, fan_out)->Arg(5'000)->Arg(10'000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_and_partition, FanIn, fan_in)->Arg(5'000)->Arg(10'000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_and_partition, Siblings, siblings)->Arg(5'000)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lamina

BENCHMARK_MAIN();
