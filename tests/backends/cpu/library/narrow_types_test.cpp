// Library ops in a type for which oneDNN has no fast code on this machine: products convert it to f32 and back, and the planner
// casts around convolutions. The bits equal those of a graph with these casts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "backends/cpu/backend.h"
#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/library/default_primitive_library.h"
#include "backends/cpu/library/library_check.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr DataType f32 = DataType::f32;

// A type that the library does not take for convolutions; nothing on a machine with fast code for both.
std::optional<DataType> cast_type() {
  Op convolution;
  convolution.kind = OpKind::Convolution;
  for (const DataType dtype : {DataType::f16, DataType::bf16})
    if (!cpu_backend().plan_target()->library->takes_type(convolution, dtype)) return dtype;
  return std::nullopt;
}
#define REQUIRE_CAST_TYPE(dtype)                                                      \
  if (!cast_type()) GTEST_SKIP() << "this machine has instructions for f16 and bf16"; \
  const DataType dtype = *cast_type()

// Builds the same graph in the narrow type, or in f32 with casts where the planner puts them.
struct Casting {
  GraphBuilder& g;
  DataType narrow;
  bool is_explicit;

  DataType computed() const { return is_explicit ? f32 : narrow; }
  uint64_t input(Dims shape) const { return widened(g.input(narrow, std::move(shape))); }
  uint64_t widened(uint64_t value) const { return is_explicit ? g.op(OpKind::TypeCast, {value}, {}, f32) : value; }
  uint64_t rounded(uint64_t value) const { return is_explicit ? g.op(OpKind::TypeCast, {value}, {}, narrow) : value; }
  // A value that is read in f32, after its rounding.
  uint64_t between(uint64_t value) const { return widened(rounded(value)); }
  uint64_t op(OpKind kind, std::vector<uint64_t> inputs, Attributes attributes = {}) const {
    return g.op(kind, inputs, std::move(attributes), computed());
  }
};

template <typename Build>
void expect_bits_of_casts(DataType dtype, const Build& build, const Backend& cpu = cpu_backend()) {
  std::vector<LibraryRun> runs;
  for (const bool is_explicit : {false, true}) {
    GraphBuilder g;
    build(Casting{g, dtype, is_explicit});
    std::map<uint64_t, Buffer> given;
    const Graph graph = g.finish();
    const std::vector<ValueIndex> inputs = graph.inputs();
    for (size_t i = 0; i < inputs.size() && is_explicit; ++i)
      given[graph.tensor(inputs[i]).id] = runs[0].buffers.at(runs[0].inputs[i].id);
    // A rounding decides more than one ULP of a softmax.
    runs.push_back(expect_library_matches_reference(graph, 5e-2, given, 1, cpu));
  }
  for (size_t o = 0; o < runs[0].outputs.size(); ++o)
    EXPECT_EQ(runs[0].buffers.at(runs[0].outputs[o].id), runs[1].buffers.at(runs[1].outputs[o].id)) << "output " << o;
}

// On a machine with instructions for bf16 whose pairs are slow, oneDNN does not multiply them either.
TEST(NarrowTypes, ProductsOfBf16WithoutPairs) {
  cpu::Machine machine = cpu::host_machine();
  if (!machine.instructions.rounds_to_bf16) GTEST_SKIP() << "this machine has no instructions for bf16";
  machine.instructions.multiplies_bf16_pairs = machine.instructions.has_bf16_tiles = false;
  const auto cpu = cpu::make_backend(machine, cpu::default_primitive_library());
  const auto build = [](const Casting& c) {
    for (const int64_t rows : {1, 70}) c.rounded(c.op(OpKind::MatMul, {c.input({rows, 97}), c.input({97, 40}), c.input({40})}));
  };
  expect_bits_of_casts(DataType::bf16, build, *cpu);
  GraphBuilder g;
  build(Casting{g, DataType::bf16, false});
  EXPECT_THAT(expect_library_matches_reference(g.finish(), 5e-2, {}, 1, *cpu).info.kernels, Each(HasSubstr("product, ")));
}

TEST(NarrowTypes, AProductBetweenKernels) {
  REQUIRE_CAST_TYPE(dtype);
  expect_bits_of_casts(dtype, [](const Casting& c) {
    const uint64_t src = c.between(c.op(OpKind::Exp, {c.input({70, 96})}));
    const uint64_t product = c.between(c.op(OpKind::MatMul, {src, c.input({96, 40}), c.input({40})}));
    c.rounded(c.op(OpKind::SoftMax, {product}, {{"axis", int64_t{1}}}));
  });
}

TEST(NarrowTypes, ProductsOneAfterTheOther) {
  REQUIRE_CAST_TYPE(dtype);
  expect_bits_of_casts(dtype, [](const Casting& c) {
    const uint64_t first = c.between(c.op(OpKind::MatMul, {c.input({2, 33, 64}), c.input({64, 40})}));
    c.rounded(c.op(OpKind::MatMul, {first, c.input({40, 24})}));
    c.rounded(c.op(OpKind::MatMul, {first, c.input({40, 16})}));
  });
}

TEST(NarrowTypes, AttentionInTiles) {
  REQUIRE_CAST_TYPE(dtype);
  expect_bits_of_casts(dtype, [](const Casting& c) {
    const Attributes transposed{{"transpose_b", true}};
    const uint64_t q = c.input({2, 4, 200, 64}), k = c.input({2, 4, 150, 64}), v = c.input({2, 4, 150, 64});
    const uint64_t scores = c.between(c.op(OpKind::MatMul, {q, k}, transposed));
    const uint64_t weights = c.between(c.op(OpKind::SoftMax, {scores}, {{"axis", int64_t{3}}}));
    c.rounded(c.op(OpKind::MatMul, {weights, v}));
  });
}

TEST(NarrowTypes, AConvolution) {
  REQUIRE_CAST_TYPE(dtype);
  expect_bits_of_casts(dtype, [](const Casting& c) {
    const std::vector<int64_t> one{1, 1};
    const uint64_t dst = c.op(OpKind::Convolution, {c.input({2, 8, 9, 9}), c.input({16, 8, 3, 3}), c.input({16})},
                              {{"strides", one},
                               {"pads_begin", one},
                               {"pads_end", one},
                               {"dilations", one},
                               {"data_format", std::string("NCX")},
                               {"weights_format", std::string("OIX")}});
    c.rounded(c.op(OpKind::ReLU, {c.between(dst)}));
  });
}

// Constant weights are packed by the first execution only, in 16 bits.
TEST(NarrowTypes, ConstantWeightsAreReadOnce) {
  REQUIRE_CAST_TYPE(dtype);
  GraphBuilder g;
  g.op(OpKind::MatMul, {g.input(dtype, {70, 64}), g.constant(dtype, {64, 96})});
  const Graph graph = g.finish();
  const Subgraph subgraph{with_strides(graph), graph.inputs(), graph.outputs()};
  const auto executable = compiler::compile_subgraph(subgraph, cpu_backend());
  EXPECT_THAT(executable->info().kernels, Not(Contains(HasSubstr("type_cast"))));
  EXPECT_GE(executable->constant_bytes(), size_t{64} * 96 * sizeof(uint16_t));
  EXPECT_LT(executable->constant_bytes(), size_t{64} * 96 * sizeof(float));
  const auto constants = executable->cache_constants();
  ASSERT_NE(constants, nullptr);
  std::vector<uint16_t> src(70 * 64), weights(64 * 96), first(70 * 96), second(70 * 96);
  for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<uint16_t>(0x3c00 + i % 512);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<uint16_t>(0x3800 + i % 777);
  ExecutionContext context;
  context.constants = constants.get();
  const auto execute = [&](std::vector<uint16_t>& dst) {
    const void* const in[] = {src.data(), weights.data()};
    void* const out[] = {dst.data()};
    executable->execute(context, in, out);
  };
  execute(first);
  std::fill(weights.begin(), weights.end(), uint16_t{0});
  execute(second);
  EXPECT_EQ(first, second);
  context.constants = nullptr;  // an execution that may keep nothing reads the weights that it is given
  execute(second);
  EXPECT_THAT(second, Not(Contains(::testing::Ne(0))));
}

}  // namespace
}  // namespace lamina::testing
