#include "interface/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "interface/status.h"

namespace lamina {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

LogicalTensor tensor(uint64_t id, std::optional<Dims> shape = std::nullopt, DataType dtype = DataType::f32) {
  LogicalTensor result;
  result.id = id;
  result.dtype = dtype;
  result.shape = std::move(shape);
  return result;
}

LogicalTensor strided(uint64_t id, Dims shape, Dims strides) {
  LogicalTensor result = tensor(id, std::move(shape));
  result.layout = LayoutType::strided;
  result.strides = std::move(strides);
  return result;
}

struct TestGraph {
  Graph graph;
  uint64_t next_op = 0;

  void unary(OpKind kind, const LogicalTensor& src, const LogicalTensor& dst, const std::string& name = "") {
    graph.add_op(next_op++, kind, name, {}, std::vector{src}, std::vector{dst});
  }
  void add(const LogicalTensor& a, const LogicalTensor& b, const LogicalTensor& dst, const std::string& name = "") {
    graph.add_op(next_op++, OpKind::Add, name, {}, std::vector{a, b}, std::vector{dst});
  }
  void end(const LogicalTensor& src) { graph.add_op(next_op++, OpKind::End, "", {}, std::vector{src}, {}); }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const Op& op : graph.ops()) found.push_back(op.name);
    return found;
  }
  std::vector<uint64_t> ids(const std::vector<ValueIndex>& values) const {
    std::vector<uint64_t> found;
    for (ValueIndex index : values) found.push_back(graph.tensor(index).id);
    return found;
  }
  Dims shape(uint64_t id) const { return graph.tensor(*graph.find_value(id)).shape.value_or(Dims{-1}); }
};

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Graph, PortsWithTheSameTensorIdAreConnected) {
  TestGraph g;
  g.unary(OpKind::Exp, tensor(1, Dims{2, 3}), tensor(2), "exp");
  g.unary(OpKind::Tanh, tensor(2), tensor(3), "tanh");
  g.graph.finalize();
  const Value& middle = g.graph.value(*g.graph.find_value(2));
  EXPECT_EQ(middle.producer, (Port{0, 0}));
  EXPECT_THAT(middle.consumers, ElementsAre(Port{1, 0}));
  EXPECT_EQ(g.shape(3), (Dims{2, 3}));
}

TEST(Graph, AnOpWithoutANameIsCalledByKindAndId) {
  TestGraph g;
  g.next_op = 17;
  g.unary(OpKind::Exp, tensor(1), tensor(2));
  EXPECT_THAT(g.names(), ElementsAre("Exp_17"));
}

TEST(Graph, DefaultsAreFilledIn) {
  TestGraph g;
  g.add(tensor(1), tensor(2), tensor(3));
  EXPECT_EQ(g.graph.ops()[0].attribute<std::string>("auto_broadcast"), "numpy");
}

TEST(Graph, AnOpThatReadsAValueTwiceIsListedTwice) {
  TestGraph g;
  g.add(tensor(1, Dims{4}), tensor(1, Dims{4}), tensor(2));
  EXPECT_THAT(g.graph.value(*g.graph.find_value(1)).consumers, ElementsAre(Port{0, 0}, Port{0, 1}));
}

TEST(Graph, OpsAreSortedByWhatTheyRead) {
  TestGraph g;
  g.unary(OpKind::Tanh, tensor(3), tensor(4), "c");
  g.unary(OpKind::Tanh, tensor(2), tensor(3), "b");
  g.unary(OpKind::Tanh, tensor(1, Dims{5}), tensor(2), "a");
  g.graph.finalize();
  EXPECT_THAT(g.names(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(g.shape(4), (Dims{5}));
  EXPECT_EQ(g.graph.value(*g.graph.find_value(3)).producer, (Port{1, 0}));
}

TEST(Graph, ATopologicalOrderIsKept) {
  TestGraph g;
  g.unary(OpKind::Exp, tensor(1, Dims{5}), tensor(2), "left");
  g.unary(OpKind::Exp, tensor(10, Dims{5}), tensor(11), "right");
  g.unary(OpKind::Abs, tensor(2), tensor(3), "left2");
  g.add(tensor(11), tensor(3), tensor(4), "join");
  g.graph.finalize();
  EXPECT_THAT(g.names(), ElementsAre("left", "right", "left2", "join"));
}

TEST(Graph, CyclesAreRefusedNamingTheirOps) {
  TestGraph g;
  g.unary(OpKind::Exp, tensor(1), tensor(2), "a");
  g.unary(OpKind::Exp, tensor(2), tensor(3), "b");
  g.unary(OpKind::Exp, tensor(3), tensor(1), "c");
  const std::string error = error_of([&] { g.graph.finalize(); });
  EXPECT_THAT(error, HasSubstr("the graph has a cycle"));
  for (const char* name : {"Exp \"a\"", "Exp \"b\"", "Exp \"c\""}) EXPECT_THAT(error, HasSubstr(name));
}

TEST(Graph, AnOpThatReadsItsOwnOutputIsACycle) {
  TestGraph g;
  g.unary(OpKind::Exp, tensor(1), tensor(1), "self");
  EXPECT_THAT(error_of([&] { g.graph.finalize(); }), HasSubstr("cycle: Exp \"self\" -> Exp \"self\""));
}

TEST(Graph, ATensorHasOneProducer) {
  TestGraph g;
  g.unary(OpKind::Exp, tensor(1), tensor(2), "a");
  EXPECT_EQ(error_of([&] { g.unary(OpKind::Abs, tensor(1), tensor(2), "b"); }),
            "Abs \"b\": output 0: tensor 2 is already produced by Exp \"a\"");
}

TEST(Graph, AnOpIdIsTakenOnce) {
  TestGraph g;
  g.unary(OpKind::Exp, tensor(1), tensor(2), "a");
  g.next_op = 0;
  EXPECT_EQ(error_of([&] { g.unary(OpKind::Abs, tensor(2), tensor(3), "b"); }), "Abs \"b\": op id 0 is used by Exp \"a\"");
}

TEST(Graph, NoOpIsAddedToAFinalizedGraph) {
  TestGraph g;
  g.unary(OpKind::Exp, tensor(1), tensor(2), "a");
  g.graph.finalize();
  EXPECT_THAT(error_of([&] { g.unary(OpKind::Abs, tensor(2), tensor(3), "b"); }), HasSubstr("finalized"));
}

TEST(Graph, ARefusedOpLeavesTheGraphAsItWas) {
  TestGraph g;
  g.unary(OpKind::Exp, tensor(1, Dims{2}), tensor(2), "a");
  g.next_op = 9;
  EXPECT_NE(error_of([&] { g.unary(OpKind::Elu, tensor(2, Dims{7}), tensor(3), "b"); }), "");
  EXPECT_EQ(g.graph.ops().size(), 1U);
  EXPECT_EQ(g.graph.values().size(), 2U);
  EXPECT_EQ(g.graph.find_value(3), std::nullopt);
  EXPECT_THAT(g.graph.value(*g.graph.find_value(2)).consumers, IsEmpty());
  EXPECT_EQ(g.graph.tensor(*g.graph.find_value(2)).shape, std::nullopt);
  g.unary(OpKind::Abs, tensor(2), tensor(3), "c");  // the failed op did not reserve its id
  g.graph.finalize();
  EXPECT_EQ(g.shape(3), (Dims{2}));
}

TEST(Graph, PortsOfATensorAgreeAndTheMorePreciseWins) {
  TestGraph g;
  g.unary(OpKind::Exp, tensor(1, Dims{2, kUnknownDim}), tensor(2), "a");
  g.unary(OpKind::Exp, strided(1, {2, 3}, {3, 1}), tensor(3), "b");
  const LogicalTensor& merged = g.graph.tensor(*g.graph.find_value(1));
  EXPECT_EQ(merged.shape, (Dims{2, 3}));
  EXPECT_EQ(merged.layout, LayoutType::strided);
  EXPECT_EQ(merged.strides, (Dims{3, 1}));
}

TEST(Graph, GraphInputsThatDisagreeAreRefused) {
  TestGraph g;
  g.unary(OpKind::Exp, tensor(1, Dims{2, 3}), tensor(2), "a");
  EXPECT_EQ(error_of([&] { g.unary(OpKind::Exp, tensor(1, Dims{2, 4}), tensor(3), "b"); }),
            "Exp \"b\": input 0: tensor 1 has shape [2, 4], allowed is [2, 3], as at another port");
  EXPECT_THAT(error_of([&] { g.unary(OpKind::Exp, tensor(1, Dims{2, 3}, DataType::bf16), tensor(3), "b"); }),
              HasSubstr("type bf16, allowed is f32"));
}

TEST(Graph, StridesOfGraphInputsAgree) {
  TestGraph g;
  g.unary(OpKind::Exp, strided(1, {2, 3}, {3, 1}), tensor(2), "a");
  EXPECT_THAT(error_of([&] { g.unary(OpKind::Exp, strided(1, {2, 3}, {1, 2}), tensor(3), "b"); }),
              HasSubstr("strides [1, 2], allowed is [3, 1]"));
}

// One port has only the shape, the other only the strides.
TEST(Graph, StridesOfAnotherRankThanTheShapeAreRefused) {
  TestGraph g;
  LogicalTensor strides = tensor(0);
  strides.layout = LayoutType::strided;
  strides.strides = {32, 1};
  g.unary(OpKind::ReLU, strides, tensor(1));
  const std::string fault = error_of([&] { g.unary(OpKind::Abs, tensor(0, Dims{64}), tensor(2)); });
  EXPECT_THAT(fault, HasSubstr("strides [32, 1]"));
  EXPECT_THAT(fault, HasSubstr("shape [64]"));
}

TEST(Graph, PropertiesAgree) {
  TestGraph g;
  LogicalTensor constant = tensor(1, Dims{2});
  constant.property = PropertyType::constant;
  LogicalTensor variable = constant;
  variable.property = PropertyType::variable;
  g.unary(OpKind::Exp, constant, tensor(2), "a");
  EXPECT_THAT(error_of([&] { g.unary(OpKind::Exp, variable, tensor(3), "b"); }),
              HasSubstr("property variable, allowed is constant"));
}

TEST(Graph, AConsumerThatDisagreesWithItsProducerIsOverruled) {
  TestGraph g;
  g.unary(OpKind::Exp, tensor(1, Dims{2, 3}), tensor(2, Dims{2, 3}), "a");
  g.unary(OpKind::Abs, strided(2, {1, 1}, {1, 1}), tensor(3), "b");
  g.graph.finalize();
  EXPECT_EQ(g.shape(2), (Dims{2, 3}));
  EXPECT_EQ(g.shape(3), (Dims{2, 3}));
  EXPECT_THAT(g.graph.warnings(), ElementsAre(HasSubstr("tensor 2 has shape [1, 1] at its consumer and [2, 3]")));
}

TEST(Graph, AProducerAddedAfterItsConsumerOverrulesIt) {
  TestGraph g;
  g.unary(OpKind::Abs, tensor(2, Dims{1, 1}), tensor(3), "b");
  g.unary(OpKind::Exp, tensor(1, Dims{2, 3}), tensor(2, Dims{2, 3}), "a");
  g.graph.finalize();
  EXPECT_EQ(g.shape(3), (Dims{2, 3}));
  EXPECT_THAT(g.graph.warnings(), testing::SizeIs(1));
}

TEST(Graph, AnInnerShapeThatItsOpDoesNotMakeIsReplaced) {
  TestGraph g;
  g.unary(OpKind::Exp, tensor(1, Dims{2, 3}), strided(2, {4, 4}, {4, 1}), "a");
  g.unary(OpKind::Abs, tensor(2), tensor(3), "b");
  g.graph.finalize();
  EXPECT_EQ(g.shape(2), (Dims{2, 3}));
  EXPECT_EQ(g.graph.tensor(*g.graph.find_value(2)).strides, (Dims{3, 1}));
  EXPECT_THAT(g.graph.warnings(),
              ElementsAre("Exp \"a\": output dst is given shape [4, 4]; lamina uses the inferred shape [2, 3]"));
}

TEST(Graph, AGraphOutputWhoseShapeItsOpDoesNotMakeIsRefused) {
  for (const bool marked : {false, true}) {
    TestGraph g;
    g.unary(OpKind::Exp, tensor(1, Dims{2, 3}), tensor(2, Dims{4, 4}), "a");
    if (marked) g.end(tensor(2));
    try {
      g.graph.finalize();
      FAIL();
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "Exp \"a\": output dst is given shape [4, 4], allowed is [2, 3]");
      EXPECT_EQ(error.status(), Status::invalid_shape);
    }
  }
}

TEST(Graph, GivenStridesAreKeptAndMissingOnesAreDense) {
  TestGraph g;
  g.unary(OpKind::Exp, strided(1, {2, 3}, {3, 1}), strided(2, {2, 3}, {8, 1}), "a");
  LogicalTensor open = tensor(3);
  open.layout = LayoutType::strided;
  g.unary(OpKind::Abs, tensor(2), open, "b");
  g.unary(OpKind::Abs, tensor(3), tensor(4), "c");
  g.graph.finalize();
  EXPECT_EQ(g.graph.tensor(*g.graph.find_value(2)).strides, (Dims{8, 1}));
  EXPECT_EQ(g.graph.tensor(*g.graph.find_value(3)).strides, (Dims{3, 1}));
  EXPECT_THAT(g.graph.tensor(*g.graph.find_value(4)).strides, IsEmpty());
}

TEST(Graph, UnknownShapesStayUnknown) {
  TestGraph g;
  g.unary(OpKind::Exp, tensor(1), tensor(2), "a");
  g.unary(OpKind::Exp, tensor(3, Dims{kUnknownDim, 4}), tensor(4), "b");
  g.graph.finalize();
  EXPECT_EQ(g.graph.tensor(*g.graph.find_value(2)).shape, std::nullopt);
  EXPECT_EQ(g.shape(4), (Dims{kUnknownDim, 4}));
}

TEST(Graph, ShapesAreInferredAnewAfterAnOverride) {
  TestGraph g;
  g.unary(OpKind::Exp, strided(1, {2, 3}, {3, 1}), strided(2, {2, 3}, {3, 1}), "a");
  g.add(tensor(2), tensor(5, Dims{3}), strided(3, {2, 3}, {3, 1}), "b");
  g.graph.finalize();
  g.graph.set_tensor(*g.graph.find_value(1), strided(1, {7, 3}, {3, 1}));
  g.graph.infer_shapes(true);
  EXPECT_EQ(g.shape(2), (Dims{7, 3}));
  EXPECT_EQ(g.shape(3), (Dims{7, 3}));
  EXPECT_EQ(g.graph.tensor(*g.graph.find_value(3)).strides, (Dims{3, 1}));
  EXPECT_THAT(g.graph.warnings(), IsEmpty());
  g.graph.set_tensor(*g.graph.find_value(1), strided(1, {7, 4}, {4, 1}));
  EXPECT_THAT(error_of([&] { g.graph.infer_shapes(true); }), HasSubstr("Add \"b\": shapes [7, 4] and [3] do not broadcast"));
}

TEST(Graph, InputsAndOutputsAreInOrderOfUse) {
  TestGraph g;
  g.add(tensor(20, Dims{2}), tensor(10, Dims{2}), tensor(30));
  g.add(tensor(10), tensor(30), tensor(40));
  g.end(tensor(30));
  g.unary(OpKind::Exp, tensor(30), tensor(50));
  g.graph.finalize();
  EXPECT_THAT(g.ids(g.graph.inputs()), ElementsAre(20, 10));
  EXPECT_THAT(g.ids(g.graph.outputs()), ElementsAre(40, 30, 50));
}

TEST(Graph, PortsAreFoundByName) {
  TestGraph g;
  const Attributes no_stats{{"keep_stats", false}};
  g.graph.add_op(0, OpKind::LayerNorm, "ln", no_stats, std::vector{tensor(1), tensor(2), tensor(3)}, std::vector{tensor(4)});
  const Op& op = g.graph.ops()[0];
  EXPECT_EQ(g.graph.input(op, "beta")->id, 3U);
  EXPECT_EQ(g.graph.output(op, "dst")->id, 4U);
  EXPECT_EQ(g.graph.output(op, "mean"), nullptr);
  EXPECT_EQ(g.graph.input_value(op, "mean"), kNoValue);
}

TEST(Graph, APortInTheMiddleMayBeLeftOut) {
  TestGraph g;
  std::vector<LogicalTensor> inputs{tensor(1, Dims{2, 8}), tensor(2, Dims{2, 8}), tensor(3, Dims{2}), tensor(4, Dims{2}),
                                    tensor(5, Dims{8})};
  g.graph.add_op(0, OpKind::LayerNormBackward, "lnb", {}, inputs, std::vector{tensor(6), LogicalTensor{}, tensor(7)});
  g.graph.finalize();
  const Op& op = g.graph.ops()[0];
  EXPECT_EQ(g.graph.output(op, "diff_gamma"), nullptr);
  EXPECT_EQ(g.shape(7), (Dims{8}));
}

TEST(Graph, ImpossibleTensorsAreRefused) {
  const auto error = [](const LogicalTensor& src) {
    TestGraph g;
    return error_of([&] { g.unary(OpKind::Exp, src, tensor(2), "a"); });
  };
  EXPECT_EQ(error(tensor(1, Dims(13, 1))), "Exp \"a\": input 0 has rank 13, allowed is 0..12");
  EXPECT_EQ(error(tensor(1, Dims{2, -1})), "Exp \"a\": input 0 has shape [2, -1], allowed is no negative extent");
  EXPECT_EQ(error(strided(1, {2, 3}, {3, -1})), "Exp \"a\": input 0 has strides [3, -1], allowed is no negative stride");
  EXPECT_EQ(error(strided(1, {2, 3}, {3})), "Exp \"a\": input 0 has 1 strides, allowed is 2, one per extent");
  EXPECT_THAT(error(tensor(1, Dims{INT64_MAX, 4})), HasSubstr("more elements than 64 bits can count"));
  EXPECT_THAT(error(tensor(1, Dims{INT64_MAX, 4, 0})), HasSubstr("more elements than 64 bits can count"));
  EXPECT_THAT(error(strided(1, {2}, {int64_t{1} << 62})), HasSubstr("more bytes than 64 bits can count"));
  EXPECT_EQ(error(tensor(1, Dims(12, 1))), "");
  EXPECT_EQ(error(tensor(1, Dims{0, 3})), "");
  EXPECT_EQ(error(tensor(1, Dims{})), "");
}

TEST(Graph, StridesThatSayNothingAreDropped) {
  TestGraph g;
  g.unary(OpKind::Exp, strided(1, {2, 3}, {kUnknownDim}), tensor(2), "a");
  EXPECT_THAT(g.graph.tensor(*g.graph.find_value(1)).strides, IsEmpty());
}

TEST(Graph, DeepGraphsNeedNoRecursion) {
  TestGraph g;
  const int depth = 100000;
  g.graph.add_op(depth, OpKind::End, "", {}, std::vector{tensor(static_cast<uint64_t>(depth))}, {});
  for (int i = depth; i-- > 0;) {
    const auto id = static_cast<uint64_t>(i);
    g.graph.add_op(id, OpKind::Exp, "e", {}, std::vector{tensor(id, i == 0 ? std::optional(Dims{3}) : std::nullopt)},
                   std::vector{tensor(id + 1)});
  }
  g.graph.finalize();
  EXPECT_EQ(g.shape(static_cast<uint64_t>(depth)), (Dims{3}));
}

// ---- constants

TEST(GraphConstants, AreRoundedToTheTypeOfTheTensor) {
  TestGraph t;
  t.graph.add_op(0, OpKind::Add, "", {}, std::vector{tensor(0, Dims{2}), tensor(1, Dims{}, DataType::bf16)},
                 std::vector{tensor(2, Dims{2})});
  t.graph.set_constant(1, 1e-5);
  const Value& value = t.graph.value(*t.graph.find_value(1));
  EXPECT_EQ(value.constant, round_to(DataType::bf16, 1e-5));
  EXPECT_EQ(value.tensor.property, PropertyType::constant);
}

TEST(GraphConstants, HaveOneValueForGood) {
  TestGraph t;
  t.add(tensor(0, Dims{2}), tensor(1, Dims{}), tensor(2));
  t.graph.set_constant(1, 2);
  t.graph.set_constant(1, 2);
  EXPECT_EQ(error_of([&] { t.graph.set_constant(1, 3); }),
            "constant tensor 1 is given the value 3, allowed is 2, its earlier value; another value needs another id");
  EXPECT_EQ(error_of([&] { t.unary(OpKind::Abs, tensor(0, Dims{2}), tensor(1, Dims{}), "abs"); }),
            "Abs \"abs\": output 0: tensor 1 is a constant with a known value, allowed is a tensor without one");
  EXPECT_EQ(t.graph.value(*t.graph.find_value(1)).producer.op, -1);
  t.graph.finalize();
  EXPECT_EQ(error_of([&] { t.graph.set_constant(1, 2); }), "constant tensor 1: the graph is finalized, no value can be given");
}

}  // namespace
}  // namespace lamina
