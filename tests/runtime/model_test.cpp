// Exported models give the bits of the compiler's library: for kernels, products, tiles and several partitions, on every
// instruction set of this machine, for any threads, alignment and pool.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "backends/exported_model.h"
#include "runtime/exported_graph.h"
#include "runtime/model_graphs.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32;

class ExportedModels : public ::testing::TestWithParam<NamedGraph> {};

TEST_P(ExportedModels, GiveTheBitsOfTheLibrary) {
  ExportedGraph exported(GetParam().make());
  for (const int threads : {1, 3})
    for (const size_t shift : {0, 1, 3}) EXPECT_EQ(exported.difference({threads, shift}), "") << threads << " " << shift;
}

TEST_P(ExportedModels, GiveTheSameBitsOnEveryInstructionSet) {
  for (const std::string& isa : cpu_isas_here()) {
    ExportedGraph exported(GetParam().make(), {isa});
    const runtime::model model = exported.load();
    EXPECT_EQ(model.isa(), isa);
    EXPECT_EQ(exported.difference(model, {2}), "") << isa;
  }
}

TEST_P(ExportedModels, AreTheSameBytesEachTime) {
  const std::vector<std::string> isas = {"avx2", "neon"};
  EXPECT_EQ(ExportedGraph(GetParam().make(), isas).file().text(), ExportedGraph(GetParam().make(), isas).file().text());
}

// Memory that the runtime packs is that in the file.
TEST_P(ExportedModels, GiveTheSameBitsWithPackedWeights) {
  for (const std::string& isa : cpu_isas_here()) {
    const ExportedGraph plain(GetParam().make(), {isa});
    ExportedGraph packed(GetParam().make(), {isa}, true);
    EXPECT_GE(packed.file().size(), plain.file().size());
    EXPECT_EQ(packed.difference(packed.file().load({.verify_weights = true}), {2}), "") << isa;
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, ExportedModels, ::testing::ValuesIn(model_graphs()),
                         [](const auto& named) { return named.param.name; });

// The library runs some of these by oneDNN, so they are compared with the same primitives in this process.
TEST(ExportedModel, WithConvolutions) {
  for (const auto& [channels, groups, window] :
       std::vector<std::array<int64_t, 3>>{{16, 1, 3}, {3, 1, 3}, {32, 1, 1}, {8, 8, 3}, {24, 2, 5}}) {
    ExportedGraph exported(convolution(channels, groups, window));
    exported.compare_with(*backend_like_exported());
    for (const size_t shift : {0, 1})
      EXPECT_EQ(exported.difference({2, shift}), "") << channels << " " << groups << " " << window;
  }
}

// Weights of 4 and 8 bits: constant, and given by the caller.
TEST(ExportedModel, WithWeightsOfFewBits) {
  for (const DataType dtype : {DataType::s8, DataType::s4}) {
    for (const bool is_constant : {true, false}) {
      GraphBuilder g;
      const auto weights = is_constant ? g.constant(dtype, {64, 48}) : g.input(dtype, {64, 48});
      const auto scales = is_constant ? g.constant(f32, {2, 48}) : g.input(f32, {2, 48});
      const auto floats = g.op(OpKind::DynamicDequantize, {weights, scales},
                               {{"qtype", std::string("per_group")}, {"group_shape", Dims{32, 1}}}, f32);
      g.op(OpKind::MatMul, {g.input(f32, {5, 64}), floats});
      ExportedGraph exported(g.finish());
      EXPECT_EQ(exported.difference({2, 0}), "") << name_of(dtype) << " " << is_constant;
      EXPECT_NE(exported.file().text().find("lamina_dequantized_tile"),
                std::string::npos);  // not dequantised before the product
    }
  }
}

TEST(ExportedModel, WithFactorsOfIntegers) {
  for (const bool is_constant : {true, false}) {
    GraphBuilder g;
    const auto operand = [&](DataType dtype, const Dims& shape) {
      return is_constant ? g.constant(dtype, shape) : g.input(dtype, shape);
    };
    const auto weights = g.op(OpKind::DynamicDequantize, {operand(DataType::s4, {48, 64}), operand(f32, {48, 2})},
                              {{"qtype", std::string("per_group")}, {"group_shape", Dims{1, 32}}}, f32);
    const auto rows =
        g.op(OpKind::DynamicDequantize, {g.input(DataType::u8, {5, 64}), g.input(f32, {5}), g.input(DataType::u8, {5})},
             {{"qtype", std::string("per_channel")}, {"axis", int64_t{0}}}, f32);
    g.op(OpKind::MatMul, {rows, weights}, {{"transpose_b", true}});
    ExportedGraph exported(g.finish());
    EXPECT_EQ(exported.difference({2, 0}), "") << is_constant;
    EXPECT_NE(exported.file().text().find("lamina_integer_tile"), std::string::npos);
  }
}

TEST(ExportedModel, WithRowsAlongAnAxis) {
  for (const DataType dtype : {f32, DataType::bf16, DataType::s32}) {
    GraphBuilder g;
    const auto x = g.input(dtype, {6, 50, 3});
    g.multi(OpKind::TopK, {x}, {{"axis", int64_t{1}}, {"k", int64_t{7}}, {"largest", true}}, {dtype, DataType::s64});
    g.op(OpKind::CumSum, {x}, {{"axis", int64_t{1}}, {"reverse", true}, {"exclusive", true}});
    g.op(OpKind::CumProd, {x}, {{"axis", int64_t{-1}}});
    if (is_floating(dtype)) {
      const auto states = g.op(OpKind::LinearRecurrence, {x, x}, {{"axis", int64_t{1}}}, dtype);
      g.multi(OpKind::LinearRecurrenceBackward, {x, x, states}, {{"axis", int64_t{1}}, {"reverse", true}}, {dtype, dtype});
    }
    ExportedGraph exported(g.finish());
    EXPECT_EQ(exported.difference({3, 1}), "") << name_of(dtype);
  }
}

TEST(ExportedModel, WithColumnSums) {
  ExportedGraph exported(column_sums());
  EXPECT_EQ(exported.difference({3, 0}), "");
}

}  // namespace
}  // namespace lamina::testing
