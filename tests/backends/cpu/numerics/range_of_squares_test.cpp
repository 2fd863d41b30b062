// The magnitude up to which ops that sum squares along a row are correct (docs/numerics.md), and their results beyond it.
// Scaling the data by a power of two scales the results by a power of two, bit by bit, until an intermediate value overflows.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "backends/cpu/support/cpu_check.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16;

// An op with rows of `row` elements, and the power of src with which each output scales.
struct Case {
  OpKind kind;
  std::function<std::vector<uint64_t>(GraphBuilder& g, uint64_t src, DataType type, int64_t row)> build;
  std::vector<int> exponents;
  bool channels_are_rows = false;
};

const Attributes kNoStatistics{{"use_stats", false}};

// The gradients recompute the statistics from src.
std::vector<Case> cases() {
  return {
      {OpKind::ReduceL2,
       [](GraphBuilder& g, uint64_t src, DataType type, int64_t) {
         return g.multi(OpKind::ReduceL2, {src}, {{"axes", std::vector<int64_t>{1}}}, {type});
       },
       {1}},
      {OpKind::RMSNorm,
       [](GraphBuilder& g, uint64_t src, DataType type, int64_t row) {
         return g.multi(OpKind::RMSNorm, {src, g.input(f32, {row})}, {}, {type});
       },
       {0}},
      {OpKind::RMSNormBackward,
       [](GraphBuilder& g, uint64_t src, DataType type, int64_t row) {
         return g.multi(OpKind::RMSNormBackward, {src, g.input(type, {2, row}), g.input(f32, {row})}, {}, {type, f32});
       },
       {-1, 0}},
      {OpKind::LayerNorm,
       [](GraphBuilder& g, uint64_t src, DataType type, int64_t row) {
         return g.multi(OpKind::LayerNorm, {src, g.input(f32, {row}), g.input(f32, {row})}, {}, {type, f32, f32});
       },
       {0, 1, 2}},
      {OpKind::LayerNormBackward,
       [](GraphBuilder& g, uint64_t src, DataType type, int64_t row) {
         return g.multi(OpKind::LayerNormBackward, {src, g.input(type, {2, row}), g.input(f32, {row})}, kNoStatistics,
                        {type, f32, f32});
       },
       {-1, 0, 0}},
      {OpKind::LayerNormBackprop,
       [](GraphBuilder& g, uint64_t src, DataType type, int64_t row) {
         const std::vector<uint64_t> inputs{src, g.input(type, {2, row}), g.input(type, {row}), g.input(type, {row})};
         return g.multi(OpKind::LayerNormBackprop, inputs, kNoStatistics, {type, type, type});
       },
       {-1, 0, 0}},
      {OpKind::GroupNorm,
       [](GraphBuilder& g, uint64_t src, DataType type, int64_t row) {
         return g.multi(OpKind::GroupNorm, {src, g.input(f32, {row}), g.input(f32, {row})}, {{"groups", int64_t{1}}},
                        {type, f32, f32});
       },
       {0, 1, 2}},
      {OpKind::GroupNormBackward,
       [](GraphBuilder& g, uint64_t src, DataType type, int64_t row) {
         Attributes attributes = kNoStatistics;
         attributes["groups"] = int64_t{1};
         return g.multi(OpKind::GroupNormBackward, {src, g.input(type, {2, row}), g.input(f32, {row})}, attributes,
                        {type, f32, f32});
       },
       {-1, 0, 0}},
      {OpKind::BatchNormForwardTraining,
       [](GraphBuilder& g, uint64_t src, DataType type, int64_t) {
         const std::vector<uint64_t> inputs{src, g.input(f32, {2}),
                                            g.input(f32, {2})};  // running statistics; momentum 0 ignores their values
         return g.multi(OpKind::BatchNormForwardTraining, inputs, {{"epsilon", 1e-5f}, {"momentum", 0.0f}},
                        {type, f32, f32, f32, f32});
       },
       {0, 1, 2, 1, 2},
       true},
  };
}

struct Built {
  Graph graph;
  uint64_t src;
  std::vector<uint64_t> outputs;
};

Built built(const Case& c, DataType type, int64_t row) {
  GraphBuilder g;
  const uint64_t src = g.input(type, c.channels_are_rows ? Dims{row, 2} : Dims{2, row});
  std::vector<uint64_t> outputs = c.build(g, src, type, row);
  return {g.finish(), src, std::move(outputs)};
}

// The worst row: its first elements, whose average is the shift of the first walk, are the only ones with their sign.
double element(const Case& c, int64_t row, int64_t at) {
  const int64_t i = c.channels_are_rows ? at / 2 : at % row;
  return i < 16 ? 1 : i % 3 == 0 ? -0.5 : -1;
}

Buffer source(const Case& c, const LogicalTensor& tensor, int64_t row, double magnitude) {
  Buffer data = buffer_for(tensor);
  for (int64_t at = 0; at < tensor.element_count(); ++at)
    store_from_double(tensor.dtype, data.data(), at, element(c, row, at) * magnitude);
  return data;
}

class RangeOfSquares : public ::testing::TestWithParam<size_t> {
 protected:
  const Case case_ = cases()[GetParam()];

  // Returns the outputs after comparing them with those of the kernel interpreter.
  std::vector<std::vector<double>> run(const Built& b, int64_t row, double magnitude) {
    const auto partitions = partition_graph(b.graph, PartitionPolicy::fusion, CpuCapabilities{});
    EXPECT_EQ(partitions.size(), 1u);
    const PortTensors ports = port_tensors(partitions.at(0));
    const Subgraph subgraph = extract_subgraph(partitions[0], ports.inputs, ports.outputs);
    std::map<uint64_t, Buffer> buffers;
    buffers[b.src] = source(case_, b.graph.tensor(*b.graph.find_value(b.src)), row, magnitude);
    std::mt19937 random(5);
    const PortData inputs = inputs_of(partitions[0], ports, buffers, random);
    std::vector<Buffer> results = outputs_for(ports);
    run_on_host(cpu_backend(), subgraph, inputs, results);
    compare_with_cpu({.subgraph = subgraph,
                      .ports = ports,
                      .inputs = inputs.buffers,
                      .outputs = results,
                      .most_elements = int64_t{1} << 20});
    std::vector<std::vector<double>> values;
    for (const uint64_t id : b.outputs) {
      for (size_t o = 0; o < ports.outputs.size(); ++o)
        if (ports.outputs[o].id == id) values.push_back(elements(ports.outputs[o], results[o]));
    }
    EXPECT_EQ(values.size(), b.outputs.size());
    return values;
  }
};

TEST_P(RangeOfSquares, IsWhatThePagesSay) {
  const double largest = std::exp2(std::floor(std::log2(kLargestSquared)));
  for (const DataType type : {f32, bf16}) {
    for (const int64_t row : {int64_t{70}, kRowOfSquares}) {
      SCOPED_TRACE(join(name_of(case_.kind), " of ", name_of(type), ", rows of ", row));
      const Built b = built(case_, type, row);
      constexpr int kOrdinary = 20;  // at this magnitude, epsilon is already negligible
      const auto expected = run(b, row, std::exp2(kOrdinary)), actual = run(b, row, largest);
      const int growth = std::ilogb(largest) - kOrdinary;
      for (size_t o = 0; o < expected.size(); ++o) {
        bool is_zero = true;
        for (size_t i = 0; i < expected[o].size(); ++i) {
          ASSERT_EQ(actual[o][i], std::ldexp(expected[o][i], growth * case_.exponents[o])) << "output " << o << ", " << i;
          is_zero = is_zero && expected[o][i] == 0;
        }
        EXPECT_FALSE(is_zero) << "output " << o;
      }
      std::map<uint64_t, Buffer> given{{b.src, source(case_, b.graph.tensor(*b.graph.find_value(b.src)), row, 4)}};
      expect_cpu_matches_reference(b.graph, 4096, 5, given);
    }
  }
}

// Results contain no NaN while sums of differences are finite: sums of squares are infinite, quotients 0.
TEST_P(RangeOfSquares, BeyondItSumsAreInfiniteAndQuotientsZero) {
  const bool is_forward = case_.exponents[0] >= 0;
  for (const double magnitude : {1e20, 1e30, 4e34}) {
    SCOPED_TRACE(join(name_of(case_.kind), " ", magnitude));
    const auto found = run(built(case_, f32, 70), 70, magnitude);
    for (size_t o = 0; is_forward && o < found.size(); ++o) {
      const bool is_sum = case_.exponents[o] == 2 || case_.kind == OpKind::ReduceL2;
      for (const double value : found[o]) {
        ASSERT_EQ(std::isinf(value), is_sum) << "output " << o;
        ASSERT_FALSE(std::isnan(value)) << "output " << o;
        ASSERT_TRUE(case_.exponents[o] != 0 || std::abs(value) <= 2) << "output " << o << " is beta, or 0: " << value;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, RangeOfSquares, ::testing::Range(size_t{0}, cases().size()),
                         [](const auto& parameter) { return std::string(name_of(cases()[parameter.param].kind)); });

TEST(RangeOfSquaresCases, AreAllOpsThatSumSquares) {
  std::set<OpKind> tested, known;
  for (const Case& c : cases()) tested.insert(c.kind);
  for (const OpKind kind : all_op_kinds())
    if (schema_of(kind).traits.squares) known.insert(kind);
  EXPECT_EQ(tested, known);
}

}  // namespace
}  // namespace lamina::testing
