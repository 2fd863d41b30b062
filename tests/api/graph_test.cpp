// Building graphs: ops, attributes, finalizing, partitions and their ports, and error messages.
#include "api_fixture.h"

namespace api_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<size_t> ids_of(const std::vector<logical_tensor>& tensors) {
  std::vector<size_t> ids;
  for (const logical_tensor& t : tensors) ids.push_back(t.get_id());
  return ids;
}

op layer_norm(size_t id, const logical_tensor& src, const logical_tensor& dst) {
  return op(id, op::kind::LayerNorm, {src}, {dst}, "ln")
      .set_attr(op::attr::use_affine, false)
      .set_attr(op::attr::keep_stats, false);
}

TEST(Op, KeepsIdAndKind) {
  const op o(17, op::kind::GELU);
  EXPECT_EQ(o.get_id(), 17u);
  EXPECT_EQ(o.get_kind(), op::kind::GELU);
}

TEST(Op, RefusesAttributesOfAnotherType) {
  op o(0, op::kind::LayerNorm, "ln0");
  EXPECT_THAT(failure_of([&] { o.set_attr(op::attr::epsilon, int64_t{1}); }),
              FailsWith(lamina_invalid_arguments, "LayerNorm \"ln0\": attribute epsilon is given as s64, allowed is f32"));
  EXPECT_THAT(failure_of([&] { o.set_attr(op::attr::use_affine, std::string("yes")); }),
              FailsWith(lamina_invalid_arguments, "use_affine is given as string, allowed is bool"));
  EXPECT_THAT(failure_of([&] { o.set_attr(op::attr::begin_norm_axis, std::vector<int64_t>{1, 2}); }),
              FailsWith(lamina_invalid_arguments, "begin_norm_axis is given as 2 values of s64[], allowed is s64"));
  EXPECT_THAT(failure_of([&] { o.set_attr(static_cast<op::attr>(31), 1.0f); }),
              FailsWith(lamina_invalid_arguments, "op attribute is 31, which does not exist"));
}

TEST(Op, RefusesKindsThatDoNotExist) {
  EXPECT_THAT(failure_of([] { op(0, static_cast<op::kind>(300)); }), FailsWith(lamina_invalid_arguments, "op kind is 300"));
}

TEST(Graph, RefusedOpIsNamedAndLeavesTheGraphAsItWas) {
  graph g(engine::kind::cpu);
  op bad = layer_norm(0, f32(0, {2, 3, 8}), f32(1, {2, 3, 8}));
  bad.set_attr(op::attr::begin_norm_axis, 5);
  const Failure failure = failure_of([&] { g.add_op(bad); });
  EXPECT_NE(failure.status, lamina_success);
  EXPECT_THAT(failure.sentence, HasSubstr("LayerNorm \"ln\""));
  EXPECT_THAT(failure.sentence, HasSubstr("begin_norm_axis is 5"));

  EXPECT_NE(g.add_op(bad, false), lamina::status::success);  // reports a status instead of throwing
  EXPECT_THAT(lamina_last_error(), HasSubstr("begin_norm_axis is 5"));

  EXPECT_EQ(g.add_op(relu(f32(0, {2}), f32(1, {2}))), lamina::status::success);
  g.finalize();
  EXPECT_EQ(g.get_partitions().size(), 1u);
}

TEST(Graph, RefusesGammaMissingWhereUseAffineWantsIt) {
  graph g(engine::kind::cpu);
  op bad(0, op::kind::LayerNorm, {f32(0, {2, 8})}, {f32(1, {2, 8})}, "ln");
  bad.set_attr(op::attr::keep_stats, false);
  EXPECT_THAT(failure_of([&] { g.add_op(bad); }).sentence, HasSubstr("gamma"));
}

TEST(Graph, TwoProducersOfOneTensorAreRefusedWhenFinalizing) {
  graph g(engine::kind::cpu);
  EXPECT_THAT(failure_of([&] {
                g.add_op(op(0, op::kind::ReLU, {f32(0, {2})}, {f32(1, {2})}));
                g.add_op(op(1, op::kind::ReLU, {f32(0, {2})}, {f32(1, {2})}));
                g.finalize();
              }).sentence,
              HasSubstr("tensor 1"));
}

TEST(Graph, PartitionsNeedAFinalizedGraph) {
  graph g(engine::kind::cpu);
  g.add_op(relu(f32(0, {2}), f32(1, {2})));
  EXPECT_FALSE(g.is_finalized());
  EXPECT_THAT(failure_of([&] { g.get_partitions(); }), FailsWith(lamina_invalid_graph, "finalize"));
  g.finalize();
  EXPECT_TRUE(g.is_finalized());
  EXPECT_EQ(g.get_partitions().size(), 1u);
}

// Partitioning a gpu graph needs no device; an engine without a device names the libraries that were tried.
TEST(Graph, OfTheGpuIsPartitionedWithoutADevice) {
  graph g(engine::kind::gpu);
  g.add_op(relu(f32(0, {2}), f32(1, {2})));
  g.finalize();
  ASSERT_EQ(g.get_partitions().size(), 1u);
  EXPECT_TRUE(g.get_partitions()[0].is_supported());
  const size_t count = engine::get_count(engine::kind::gpu);
  const Failure failure = failure_of([&] { engine(engine::kind::gpu, count); });
  if (count == 0) {
    EXPECT_THAT(failure, FailsWith(lamina_unimplemented, "no GPU can be used: CUDA: "));
  } else {
    EXPECT_THAT(failure, FailsWith(lamina_invalid_arguments, "engine index is"));
  }
}

TEST(Graph, FpMathModeIsKept) {
  graph g(engine::kind::cpu, lamina::fpmath_mode::bf16);
  g.set_fpmath_mode(lamina::fpmath_mode::tf32, true);
  lamina::fpmath_mode mode{};
  bool apply_to_int = false;
  g.get_fpmath_mode(mode, apply_to_int);
  EXPECT_EQ(mode, lamina::fpmath_mode::tf32);
  EXPECT_TRUE(apply_to_int);
}

TEST(Graph, EmptyGraphHasNoPartitions) { EXPECT_TRUE(partitions_of({}).empty()); }

TEST(Partition, FusesAndTellsItsPortsInOrderOfUse) {
  // src -> LayerNorm -> Multiply -> dst; gate is an input of the Multiply
  const auto src = f32(10, {4, 8}), normed = f32(11, {4, 8}), gate = f32(12, {4, 8}), dst = f32(13, {4, 8});
  const partition p = only_partition_of({layer_norm(5, src, normed), op(6, op::kind::Multiply, {normed, gate}, {dst}, "mul")});
  EXPECT_TRUE(p.is_supported());
  EXPECT_THAT(p.get_ops(), ElementsAre(5, 6));
  EXPECT_EQ(p.get_ops_num(), 2u);
  EXPECT_THAT(ids_of(p.get_input_ports()), ElementsAre(10, 12));
  EXPECT_THAT(ids_of(p.get_output_ports()), ElementsAre(13));
  EXPECT_EQ(p.get_engine_kind(), engine::kind::cpu);
  EXPECT_THAT(p.get_input_ports().at(0).get_dims(), ElementsAre(4, 8));
}

TEST(Partition, PolicyDebugKeepsOpsApart) {
  const auto src = f32(10, {4, 8}), normed = f32(11, {4, 8}), dst = f32(13, {4, 8});
  const std::vector<op> ops = {layer_norm(5, src, normed), op(6, op::kind::ReLU, {normed}, {dst}, "relu")};
  EXPECT_EQ(partitions_of(ops, partition::policy::fusion).size(), 1u);
  EXPECT_EQ(partitions_of(ops, partition::policy::debug).size(), 2u);
}

TEST(Partition, OutlivesItsGraphAndHasAnIdOfItsOwn) {
  const partition a = only_partition_of({relu(f32(0, {2}), f32(1, {2}))});
  const partition b = only_partition_of({relu(f32(0, {2}), f32(1, {2}))});
  EXPECT_NE(a.get_id(), b.get_id());
  EXPECT_EQ(a.get_ops_num(), 1u);
}

TEST(Partition, OfOneOpNeedsNoGraph) {
  const partition p(relu(f32(0, {2}), f32(1, {2})), engine::kind::cpu);
  EXPECT_TRUE(p.is_supported());
  EXPECT_THAT(ids_of(p.get_output_ports()), ElementsAre(1));
}

TEST(Partition, WildcardIsNotSupportedAndCompileSaysSo) {
  const auto src = f32(0, {2}), dst = f32(1, {2});
  const partition p = only_partition_of({op(0, op::kind::Wildcard, {src}, {dst}, "mystery")});
  EXPECT_FALSE(p.is_supported());
  EXPECT_THAT(failure_of([&] { p.compile({src}, {dst}, engine(engine::kind::cpu, 0)); }),
              FailsWith(lamina_unimplemented, "Wildcard"));
}

// ---- constants

TEST(Graph, ConstantsAreCheckedAgainstTheGraph) {
  graph g(engine::kind::cpu);
  EXPECT_THAT(failure_of([&] { g.set_constant(1, 2.0); }),
              FailsWith(lamina_invalid_graph, "constant tensor 1 is read by no op"));
  g.add_op(op(0, op::kind::Add, {f32(0, {2}), f32(1, {1})}, {f32(2, {2})}, "sum"));
  g.set_constant(1, 2.0);
  EXPECT_THAT(failure_of([&] { g.set_constant(2, 2.0); }),
              FailsWith(lamina_invalid_graph, "constant tensor 2 is produced by Add \"sum\""));
  EXPECT_THAT(failure_of([&] { g.set_constant(1, 3.0); }), FailsWith(lamina_invalid_graph, "allowed is 2, its earlier value"));
  g.finalize();
  EXPECT_EQ(g.get_partitions().size(), 1u);
}

}  // namespace
}  // namespace api_test
