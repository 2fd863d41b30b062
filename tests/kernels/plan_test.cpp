// From the groups of a graph to steps: which become kernels, which become library steps, and the memory of each value.
#include "kernels/plan.h"
#include "kernels/step_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interface/status.h"
#include "kernels/lower.h"
#include "support/graph_builder.h"

namespace lamina::kernel {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::GraphBuilder;
using ::testing::HasSubstr;
using ::testing::Pair;
using testing::with_strides;
constexpr DataType f32 = DataType::f32;
using Source = Binding::Source;

std::vector<FusionGroup> groups_of(const Graph& graph, bool fusing = true) {
  return fuse(graph, std::vector<bool>(graph.ops().size(), true), fusing);
}

Plan plan_of(const Graph& graph, const PlanTarget& target = {.name = "test"}, bool fusing = true) {
  return make_plan(graph, graph.inputs(), graph.outputs(), groups_of(graph, fusing),
                   one_by_one(groups_of(graph, fusing).size()), target);
}

struct Library final : LibraryCapabilities {
  std::string why_unsupported(const Graph&, const Op&) const override { return why_not; }
  bool takes_type(const Op&, DataType dtype) const override { return dtype != narrow; }
  std::string why_not = {};
  DataType narrow = DataType::undef;  // a type that it does not take
};

PlanTarget with_library(const Library& library) { return {.name = "test", .library = &library}; }

std::vector<Source> sources_of(const PlanStep& step) {
  std::vector<Source> sources;
  for (const Binding& binding : args_of(step)) sources.push_back(binding.source);
  return sources;
}

// x -> Abs -> Exp -> Sqrt -> Tanh, [4, 64] of f32.
Graph chain() {
  GraphBuilder g;
  uint64_t value = g.input(f32, {4, 64});
  for (const OpKind kind : {OpKind::Abs, OpKind::Exp, OpKind::Sqrt, OpKind::Tanh}) value = g.op(kind, {value});
  return with_strides(g.finish());
}

TEST(Plan, AFusedChainIsOneKernelFromInputToOutput) {
  const Plan plan = plan_of(chain());
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_THAT(sources_of(plan.steps[0]), ElementsAre(Source::input, Source::output));
  EXPECT_EQ(plan.arena_bytes, 0u);
  EXPECT_EQ(plan.required_bytes, 2 * 4 * 64 * 4);
  EXPECT_THAT(plan.inplace_ports(), ElementsAre(Pair(0u, 0u)));
}

//   x ── StaticReshape ── Exp, each a group of its own
TEST(Plan, AReshapeOfAnInputNeedsNoStep) {
  GraphBuilder g;
  const auto x = g.input(f32, {4, 64});
  g.op(OpKind::Exp, {g.op(OpKind::StaticReshape, {x}, {{"shape", std::vector<int64_t>{2, 128}}, {"special_zero", false}})});
  const Plan plan = plan_of(with_strides(g.finish()), {.name = "test"}, false);
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_THAT(sources_of(plan.steps[0]), ElementsAre(Source::input, Source::output));
  EXPECT_EQ(plan.arena_bytes, 0u);
}

//   x ── Exp ── StaticReshape ──> out;  the producer writes to the output
TEST(Plan, AReshapeToAnOutputNeedsNoStep) {
  GraphBuilder g;
  const auto y = g.op(OpKind::Exp, {g.input(f32, {4, 64})});
  g.op(OpKind::StaticReshape, {y}, {{"shape", std::vector<int64_t>{256}}, {"special_zero", false}});
  const Plan plan = plan_of(with_strides(g.finish()), {.name = "test"}, false);
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_THAT(sources_of(plan.steps[0]), ElementsAre(Source::input, Source::output));
}

// Of two outputs with the same elements, one is copied; so is an input that is an output under another shape.
TEST(Plan, AReshapeThatNeedsMemoryOfItsOwnIsACopy) {
  const Attributes flat{{"shape", std::vector<int64_t>{256}}, {"special_zero", false}};
  GraphBuilder two;
  const auto y = two.op(OpKind::Exp, {two.input(f32, {4, 64})});
  two.op(OpKind::StaticReshape, {y}, flat);
  two.op(OpKind::StaticReshape, {y}, flat);
  EXPECT_EQ(plan_of(with_strides(two.finish()), {.name = "test"}, false).steps.size(), 2u);
  GraphBuilder through;
  through.op(OpKind::StaticReshape, {through.input(f32, {4, 64})}, flat);
  EXPECT_EQ(plan_of(with_strides(through.finish()), {.name = "test"}, false).steps.size(), 1u);
  GraphBuilder strided;
  strided.op(OpKind::Exp, {strided.op(OpKind::StaticReshape, {strided.input(f32, {4, 64}, {80, 1})}, flat)});
  EXPECT_EQ(plan_of(with_strides(strided.finish()), {.name = "test"}, false).steps.size(), 2u);
}

// A result with the permuted strides of its source has each element where that has it.
TEST(Plan, ATransposeInPlaceNeedsNoStep) {
  GraphBuilder g;
  const auto x = g.input(f32, {4, 6, 64});
  const auto turned = g.op(OpKind::StaticTranspose, {x}, {{"order", std::vector<int64_t>{1, 0, 2}}});
  g.op(OpKind::Exp, {turned});
  Graph dense = with_strides(g.finish());
  EXPECT_EQ(plan_of(dense, {.name = "test"}, false).steps.size(), 2u);
  GraphBuilder h;
  const auto same = h.op(OpKind::StaticTranspose, {h.input(f32, {4, 6, 64})}, {{"order", std::vector<int64_t>{1, 0, 2}}});
  h.tensor(same).shape = {6, 4, 64};
  h.tensor(same).layout = LayoutType::strided;
  h.tensor(same).strides = {64, 384, 1};
  h.op(OpKind::Exp, {same});
  EXPECT_EQ(plan_of(with_strides(h.finish()), {.name = "test"}, false).steps.size(), 1u);
}

// The memory of a value lives until the last reader of its views.
TEST(Plan, AViewKeepsItsMemory) {
  GraphBuilder g;
  const Attributes flat{{"shape", std::vector<int64_t>{256}}, {"special_zero", false}};
  const auto a = g.op(OpKind::Exp, {g.input(f32, {4, 64})});
  const auto view = g.op(OpKind::StaticReshape, {a}, flat);
  const auto b = g.op(OpKind::Sqrt, {a});
  const auto c = g.op(OpKind::StaticReshape, {g.op(OpKind::Tanh, {b})}, flat);
  g.op(OpKind::Add, {view, c});
  const Plan plan = plan_of(with_strides(g.finish()), {.name = "test", .alignment = 64}, false);
  ASSERT_EQ(plan.steps.size(), 4u);  // exp, sqrt, tanh, add
  const auto place = [&](size_t step, size_t arg) { return args_of(plan.steps[step])[arg].index; };
  EXPECT_TRUE(place(3, 0) == place(0, 1) || place(3, 1) == place(0, 1));  // add reads what exp wrote
  EXPECT_NE(place(1, 1), place(0, 1));                                    // sqrt does not write over it
  EXPECT_NE(place(2, 1), place(0, 1));
}

TEST(Plan, AStepWritesOverWhatNobodyReadsAfterIt) {
  const Plan plan = plan_of(chain(), {.name = "test", .alignment = 64}, false);
  ASSERT_EQ(plan.steps.size(), 4u);
  EXPECT_THAT(sources_of(plan.steps[1]), ElementsAre(Source::arena, Source::arena));
  EXPECT_EQ(plan.arena_bytes, size_t{4} * 64 * 4);  // three values
  EXPECT_TRUE(plan.inplace_ports().empty());
}

TEST(Plan, AValueThatIsReadLaterIsNotWrittenOver) {
  GraphBuilder g;
  const uint64_t kept = g.op(OpKind::Abs, {g.input(f32, {4, 64})});
  g.op(OpKind::Add, {kept, g.op(OpKind::Sqrt, {g.op(OpKind::Exp, {kept})})});
  const Plan plan = plan_of(with_strides(g.finish()), {.name = "test", .alignment = 64}, false);
  ASSERT_EQ(plan.steps.size(), 4u);
  EXPECT_EQ(plan.arena_bytes, size_t{2} * 4 * 64 * 4);
  const auto &exp = args_of(plan.steps[1]), &sqrt = args_of(plan.steps[2]);
  EXPECT_NE(exp[0].index, exp[1].index);
  EXPECT_EQ(sqrt[0].index, sqrt[1].index);
}

TEST(Plan, WhatIsReadAcrossRowsOrInAnotherTypeIsNotWrittenOver) {
  GraphBuilder g;
  const uint64_t wide = g.op(OpKind::Abs, {g.input(f32, {64, 64})});
  const uint64_t turned = g.op(OpKind::StaticTranspose, {wide}, {{"order", std::vector<int64_t>{1, 0}}});
  const uint64_t half = g.op(OpKind::TypeCast, {turned}, {}, DataType::f16);
  g.op(OpKind::Exp, {half}, {}, DataType::f16);
  const Plan plan = plan_of(with_strides(g.finish()), {.name = "test", .alignment = 64}, false);
  ASSERT_EQ(plan.steps.size(), 4u);
  for (const size_t step : {1u, 2u}) EXPECT_NE(args_of(plan.steps[step])[0].index, args_of(plan.steps[step])[1].index) << step;
}

TEST(Plan, APortThatIsInputAndOutputIsRefused) {
  const Graph graph = chain();
  const std::vector<ValueIndex> inputs = graph.inputs();
  try {
    make_plan(graph, inputs, inputs, groups_of(graph), one_by_one(groups_of(graph).size()), {.name = "test"});
    ADD_FAILURE() << "it was planned";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_graph);
    EXPECT_STREQ(error.what(), "tensor 0 is an input and an output of the same partition");
  }
}

// dst = LayerNorm(src x weights), without statistics.
Graph product_and_norm() {
  GraphBuilder g;
  const auto src = g.input(f32, {6, 16}), weights = g.input(f32, {16, 32});
  const auto product = g.op(OpKind::MatMul, {src, weights});
  g.op(OpKind::LayerNorm, {product}, {{"use_affine", false}, {"keep_stats", false}});
  return with_strides(g.finish());
}

TEST(Plan, ALibraryOpIsALibraryStepWithItsTensors) {
  const Library library;
  const Plan plan = plan_of(product_and_norm(), with_library(library));
  ASSERT_EQ(plan.steps.size(), 2u);
  const auto& product = std::get<LibraryStep>(plan.steps[0]);
  EXPECT_EQ(product.op.kind, OpKind::MatMul);
  EXPECT_EQ(product.inputs.size(), 2u);
  EXPECT_EQ(product.outputs.at(0).shape, (Dims{6, 32}));
  EXPECT_THAT(sources_of(plan.steps[0]), ElementsAre(Source::input, Source::input, Source::arena));
  EXPECT_THAT(sources_of(plan.steps[1]), ElementsAre(Source::arena, Source::output));
  EXPECT_EQ(args_of(plan.steps[0])[2].index, args_of(plan.steps[1])[0].index);
  EXPECT_EQ(moved_bytes(plan.steps[0]), 4 * (6 * 16 + 16 * 32 + 6 * 32));
}

// ReLU writes while the product still reads the results of Exp, so its results are in other memory.
TEST(Plan, AnElementwiseKernelMayFollowTheLibraryStepBefore) {
  const Library library;
  GraphBuilder g;
  const uint64_t src = g.op(OpKind::Exp, {g.input(f32, {6, 64})});
  const uint64_t product = g.op(OpKind::MatMul, {src, g.input(f32, {64, 64})});
  g.output(product);
  g.op(OpKind::MatMul, {g.op(OpKind::ReLU, {product}), g.input(f32, {64, 64})});
  PlanTarget target = with_library(library);
  target.alignment = 64;
  const Plan plan = plan_of(with_strides(g.finish()), target);
  ASSERT_EQ(plan.steps.size(), 4u);
  EXPECT_TRUE(std::get<KernelStep>(plan.steps[2]).follows_parts);
  EXPECT_FALSE(std::get<KernelStep>(plan.steps[0]).follows_parts);
  EXPECT_NE(args_of(plan.steps[0]).back().index, args_of(plan.steps[2]).back().index);
  EXPECT_EQ(plan.arena_bytes, size_t{2} * 6 * 64 * 4);
}

// Add may not write over the results of Exp, although no later step reads them: other threads still multiply them.
TEST(Plan, AFollowingKernelDoesNotWriteOverWhatTheLibraryStepReads) {
  const Library library;
  for (const bool is_first : {false, true}) {
    GraphBuilder g;
    const uint64_t src = g.op(OpKind::Exp, {g.input(f32, {64, 64})});
    const uint64_t product = g.op(OpKind::MatMul, {src, g.input(f32, {64, 64})});
    const uint64_t sum = is_first ? g.op(OpKind::Add, {src, product}) : g.op(OpKind::Add, {product, src});
    g.op(OpKind::MatMul, {sum, g.input(f32, {64, 64})});
    const Plan plan = plan_of(with_strides(g.finish()), with_library(library));
    ASSERT_EQ(plan.steps.size(), 4u);
    const auto& add = std::get<KernelStep>(plan.steps[2]);
    EXPECT_TRUE(add.follows_parts);
    EXPECT_NE(add.args.back().index, args_of(plan.steps[0]).back().index);
    EXPECT_EQ(add.args.back().index, args_of(plan.steps[1]).back().index);
  }
}

// The root of the variance is taken once for all rows, before the product.
TEST(Plan, WhatAllRowsShareIsComputedBeforeTheLibraryStep) {
  const Library library;
  GraphBuilder g;
  const uint64_t product = g.op(OpKind::MatMul, {g.input(f32, {256, 64}), g.input(f32, {64, 64})});
  const uint64_t scale = g.op(OpKind::Sqrt, {g.input(f32, {64})});
  const uint64_t scaled = g.op(OpKind::Divide, {product, scale});
  g.op(OpKind::MatMul, {scaled, g.input(f32, {64, 64})});
  PlanTarget target = with_library(library);
  target.computes_ahead = true;
  const Plan plan = plan_of(with_strides(g.finish()), target);
  ASSERT_EQ(plan.steps.size(), 4u);
  EXPECT_THAT(std::get<KernelStep>(plan.steps[0]).kernel.name, HasSubstr("shared"));
  ASSERT_TRUE(std::holds_alternative<LibraryStep>(plan.steps[1]));
  EXPECT_TRUE(std::get<KernelStep>(plan.steps[2]).follows_parts);
  const Binding& shared = args_of(plan.steps[0]).back();
  for (const Binding& arg : args_of(plan.steps[1])) EXPECT_TRUE(arg.source != shared.source || arg.index != shared.index);
}

TEST(Plan, AKernelThatReducesWaitsForTheLibraryStepBefore) {
  const Library library;
  const Plan plan = plan_of(product_and_norm(), with_library(library));
  EXPECT_FALSE(std::get<KernelStep>(plan.steps[1]).follows_parts);
}

TEST(Plan, WithoutALibraryALibraryOpIsRefusedWithTheReason) {
  const Graph graph = product_and_norm();
  EXPECT_THAT(why_no_step(graph, graph.ops()[0], {.name = "test"}), HasSubstr("the test backend has no kernel for MatMul"));
  Library refusing, taking;
  refusing.why_not = "it has no such type";
  EXPECT_EQ(why_no_step(graph, graph.ops()[0], with_library(refusing)), "it has no such type");
  EXPECT_EQ(why_no_step(graph, graph.ops()[0], with_library(taking)), "");
  try {
    plan_of(graph);
    ADD_FAILURE() << "it was planned";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::unimplemented);
    EXPECT_THAT(error.what(), HasSubstr("MatMul \"op0\": the test backend has no kernel for MatMul"));
  }
}

// The planner does not offer loop-nest ops to the library: a library step would not be fused.
TEST(Plan, AnOpThatIsALoopNestIsNoLibraryStep) {
  const Graph norm = product_and_norm();
  Library refusing;
  refusing.why_not = "it has no norms";
  EXPECT_EQ(why_no_step(norm, norm.ops()[1], with_library(refusing)), "");
}

// ---- casts around library steps

// The name of each kernel, or the types of a library step's operands.
std::vector<std::string> steps_of(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlanStep& step : plan.steps) {
    if (const auto* kernel = std::get_if<KernelStep>(&step)) {
      names.push_back(kernel->kernel.name);
      continue;
    }
    const auto& library_step = std::get<LibraryStep>(step);
    std::string& types = names.emplace_back(lamina::name_of(library_step.op.kind));
    for (const auto* tensors : {&library_step.inputs, &library_step.outputs})
      for (const LogicalTensor& tensor : *tensors) types += join(' ', lamina::name_of(tensor.dtype));
  }
  return names;
}

Plan plan_without_f16(GraphBuilder& g) {
  Library library;
  library.narrow = DataType::f16;
  return plan_of(with_strides(g.finish()), with_library(library));
}

constexpr DataType f16 = DataType::f16;

TEST(Casts, JoinTheKernelsThatWriteAndReadTheOperands) {
  GraphBuilder g;
  const auto src = g.op(OpKind::Abs, {g.input(f16, {6, 16})}), weights = g.input(f16, {16, 32});
  g.op(OpKind::ReLU, {g.op(OpKind::MatMul, {src, weights})});
  EXPECT_THAT(steps_of(plan_without_f16(g)),
              ElementsAre("abs_type_cast_type_cast_f16", "type_cast_f16", "MatMul f32 f32 f32", "type_cast_relu_f32"));
}

TEST(Casts, AreKernelsOfTheirOwnForPortsAndBetweenLibrarySteps) {
  GraphBuilder g;
  const auto src = g.input(f16, {16, 16});
  g.op(OpKind::MatMul, {g.op(OpKind::MatMul, {src, src}), src});
  EXPECT_THAT(steps_of(plan_without_f16(g)), ElementsAre("type_cast_f16", "MatMul f32 f32 f32", "type_cast_type_cast_f32",
                                                         "MatMul f32 f32 f32", "type_cast_f32"));
}

// A kernel of its own writes it for both readers.
TEST(Casts, OfAResultWithSeveralReadersAreOneKernel) {
  GraphBuilder g;
  const auto weights = g.input(f16, {16, 16}), product = g.op(OpKind::MatMul, {g.input(f16, {16, 16}), weights});
  g.op(OpKind::MatMul, {product, weights});
  g.op(OpKind::ReduceSum, {product}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}});
  EXPECT_THAT(steps_of(plan_without_f16(g)),
              ElementsAre("type_cast_f16", "type_cast_f16", "MatMul f32 f32 f32", "type_cast_type_cast_f32",
                          "MatMul f32 f32 f32", "type_cast_f32", "reduce_sum_f16"));
}

// The product's operand is read by index, and so is what its result is added to. A table is cast before it is read by index.
TEST(Casts, JoinKernelsThatReadByIndexButNotThoseOfTheirTables) {
  GraphBuilder g;
  const auto gather = [&](uint64_t table, int64_t rows) {
    return g.op(OpKind::Gather, {table, g.input(DataType::s64, {rows})});
  };
  const auto product = g.op(OpKind::MatMul, {gather(g.input(f16, {50, 16}), 6), g.input(f16, {16, 32})});
  g.op(OpKind::Add, {product, gather(g.input(f16, {9, 32}), 6)});
  EXPECT_THAT(steps_of(plan_without_f16(g)),
              ElementsAre("gather_type_cast_type_cast_f16", "type_cast_f16", "MatMul f32 f32 f32", "type_cast_gather_add_f32"));
  GraphBuilder h;
  const auto table = h.op(OpKind::MatMul, {h.input(f16, {6, 16}), h.input(f16, {16, 32})});
  h.op(OpKind::Gather, {table, h.input(DataType::s64, {4})});
  EXPECT_THAT(steps_of(plan_without_f16(h)),
              ElementsAre("type_cast_f16", "type_cast_f16", "MatMul f32 f32 f32", "type_cast_f32", "gather_f16"));
}

TEST(Casts, AreAbsentForTypesThatTheLibraryTakes) {
  GraphBuilder g;
  g.op(OpKind::MatMul, {g.input(DataType::bf16, {6, 16}), g.input(DataType::bf16, {16, 32})});
  EXPECT_THAT(steps_of(plan_without_f16(g)), ElementsAre("MatMul bf16 bf16 bf16"));
}

// ---- lower

std::vector<std::string> kernel_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlanStep& step : plan.steps) names.push_back(std::get<KernelStep>(step).kernel.name);
  return names;
}

TEST(Lower, AKernelIsNamedAfterItsOpsAndTheTypeThatItReads) {
  GraphBuilder g;
  const auto x = g.input(DataType::bf16, {4, 64});
  g.op(OpKind::GELU, {g.op(OpKind::LayerNorm, {x}, {{"use_affine", false}, {"keep_stats", false}})});
  EXPECT_THAT(kernel_names(plan_of(with_strides(g.finish()))), ElementsAre("layer_norm_gelu_bf16"));
}

TEST(Lower, LongChainsEndInACount) {
  GraphBuilder g;
  uint64_t value = g.input(f32, {4, 64});
  for (int i = 0; i < 9; ++i) value = g.op(OpKind::Abs, {value});
  EXPECT_THAT(kernel_names(plan_of(with_strides(g.finish()))), ElementsAre("abs_abs_abs_abs_abs_abs_and_3_more_f32"));
}

// Sums over dims other than the nest's outer ones need a second walk over the tensors, after the group's kernel.
TEST(Lower, SumsOverOtherDimsAreAWalkOfTheirOwn) {
  GraphBuilder g;
  const auto src = g.input(f32, {2, 8, 4, 4}), slope = g.input(f32, {8}), diff_dst = g.input(f32, {2, 8, 4, 4});
  g.multi(OpKind::PReLUBackward, {src, slope, diff_dst}, {{"data_format", std::string("NCX")}}, {f32, f32});
  const Plan plan = plan_of(with_strides(g.finish()));
  EXPECT_THAT(kernel_names(plan), ElementsAre("prelu_backward_f32", "prelu_backward_f32_sums"));
  EXPECT_THAT(sources_of(plan.steps.back()), ::testing::Not(::testing::Contains(Source::arena)));
}

// A gradient of GroupNorm: diff_gamma and diff_beta sum over the batch and over the positions of each channel.
Graph group_norm_backward(const Dims& shape, int64_t groups) {
  GraphBuilder g;
  const auto x = g.input(f32, shape), diff_dst = g.input(f32, shape), gamma = g.input(f32, {shape[1]});
  g.multi(OpKind::GroupNormBackward, {x, diff_dst, g.input(f32, {shape[0], groups}), g.input(f32, {shape[0], groups}), gamma},
          {{"groups", groups}, {"data_format", std::string("NCX")}}, {f32, f32, f32});
  return with_strides(g.finish());
}

TEST(Lower, SumsOfSegmentsReadNoTensorAgain) {
  const PlanTarget sums_segments{.name = "test", .sums_segments = true};
  const Plan plan = plan_of(group_norm_backward({2, 8, 8, 8}, 2), sums_segments);
  ASSERT_THAT(kernel_names(plan), ElementsAre("group_norm_backward_f32", "group_norm_backward_f32_sums"));
  EXPECT_TRUE(std::get<KernelStep>(plan.steps[0]).kernel.has_segment_sum());
  EXPECT_THAT(sources_of(plan.steps[1]), ElementsAre(Source::arena, Source::arena, Source::output, Source::output));
  EXPECT_EQ(std::get<KernelStep>(plan.steps[1]).kernel.extents, Dims({8, 2}));
}

TEST(Lower, SegmentsOfOneRowAreTheResult) {
  const PlanTarget sums_segments{.name = "test", .sums_segments = true};
  EXPECT_EQ(plan_of(group_norm_backward({1, 8, 8, 8}, 2), sums_segments).steps.size(), 1u);
}

TEST(Lower, SegmentsThatAreRowsNeedNoSegmentSums) {
  const Plan plan = plan_of(group_norm_backward({2, 8, 8, 8}, 8));
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_FALSE(std::get<KernelStep>(plan.steps[0]).kernel.has_segment_sum());
  EXPECT_THAT(sources_of(plan.steps[1]), ElementsAre(Source::arena, Source::arena, Source::output, Source::output));
}

TEST(Lower, ShortSegmentsAndOtherBackendsTakeASecondWalk) {
  const PlanTarget sums_segments{.name = "test", .sums_segments = true};
  for (const Plan& plan : {plan_of(group_norm_backward({2, 8, 3, 21}, 2), sums_segments),  // 63 elements
                           plan_of(group_norm_backward({2, 8, 8, 8}, 2))}) {
    ASSERT_EQ(plan.steps.size(), 2u);
    EXPECT_FALSE(std::get<KernelStep>(plan.steps[0]).kernel.has_segment_sum());
    EXPECT_THAT(sources_of(plan.steps[1]), Contains(Source::input));
  }
}

// The first walk omits nodes that it does not need.
TEST(Lower, WhatNobodyAsksForIsNotComputed) {
  GraphBuilder g;
  const auto x = g.input(f32, {4, 64});
  g.multi(OpKind::LayerNorm, {x}, {{"use_affine", false}}, {f32, f32, f32});
  const Graph graph = with_strides(g.finish());
  const auto kept = groups_of(graph);
  std::vector<bool> only_dst(graph.values().size(), false);
  only_dst[static_cast<size_t>(graph.ops()[0].outputs[0])] = true;
  const auto all = lower(graph, kept.at(0), std::vector<bool>(graph.values().size(), true));
  const auto one = lower(graph, kept.at(0), only_dst);
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(all[0].kernel.args.size(), 4u);
  EXPECT_EQ(one[0].kernel.args.size(), 2u);
}

// A stride of 0 along an axis of extent 0 does not make its elements one.
TEST(Casts, OfTensorsWithoutElementsVisitNone) {
  GraphBuilder g;
  const uint64_t src = g.input(DataType::f16, {4, 0}, {3, 0}), weights = g.input(DataType::f16, {0, 5});
  g.op(OpKind::MatMul, {src, weights}, {}, DataType::f16);
  Library library;
  library.narrow = DataType::f16;
  int casts_of_nothing = 0;
  for (const PlanStep& step : plan_of(with_strides(g.finish()), with_library(library)).steps) {
    const auto* const kernel_step = std::get_if<KernelStep>(&step);
    if (kernel_step == nullptr || kernel_step->kernel.args[0].dtype != DataType::f16) continue;
    EXPECT_THAT(kernel_step->kernel.extents, Contains(0)) << print(kernel_step->kernel);
    ++casts_of_nothing;
  }
  EXPECT_EQ(casts_of_nothing, 2);
}

}  // namespace
}  // namespace lamina::kernel
