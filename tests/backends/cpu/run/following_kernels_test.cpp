// Elementwise kernels that run on the parts of a convolution or product as soon as these are written give the bits that they
// give after the whole step.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/library/library_check.h"
#include "kernels/plan.h"
#include "passes/fusion/fuse.h"
#include "support/convolution_graphs.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16;

kernel::Plan plan_of(const Graph& graph) {
  const std::vector<FusionGroup> groups = fuse(graph, std::vector<bool>(graph.ops().size(), true), true);
  return kernel::make_plan(graph, graph.inputs(), graph.outputs(), groups, one_by_one(groups.size()),
                           *cpu_backend().plan_target());
}

int count_of_following(const kernel::Plan& plan) {
  int count = 0;
  for (const kernel::PlanStep& step : plan.steps) {
    const auto* const generated = std::get_if<kernel::KernelStep>(&step);
    count += generated != nullptr && generated->follows_parts ? 1 : 0;
  }
  return count;
}

kernel::Plan with_whole_steps(kernel::Plan plan) {
  for (kernel::PlanStep& step : plan.steps)
    if (auto* const generated = std::get_if<kernel::KernelStep>(&step)) generated->follows_parts = false;
  return plan;
}

std::vector<Buffer> run(const kernel::Plan& plan, const LibraryRun& given) {
  const auto executable = cpu_backend().compile(std::make_shared<const kernel::Plan>(plan));
  std::vector<const void*> in;
  for (const LogicalTensor& tensor : given.inputs) in.push_back(given.buffers.at(tensor.id).data());
  std::vector<Buffer> buffers;
  std::vector<void*> out;
  for (const LogicalTensor& tensor : given.outputs) out.push_back(buffers.emplace_back(buffer_for(tensor)).data());
  executable->execute({}, in, out);
  return buffers;
}

// `following`: the kernels that may follow.
void expect_same_bits(const Graph& graph, int following, double error = 1e-4) {
  const LibraryRun given = expect_library_matches_reference(graph, error);
  const kernel::Plan plan = plan_of(with_strides(graph));
  EXPECT_EQ(count_of_following(plan), following);
  const std::vector<Buffer> in_parts = run(plan, given), whole = run(with_whole_steps(plan), given);
  for (size_t o = 0; o < whole.size(); ++o) EXPECT_TRUE(in_parts[o] == whole[o]) << "output " << o;
}

uint64_t per_channel(GraphBuilder& g, const ConvolutionCase& c, bool per_image) {
  Dims shape(c.space.size() + 2, 1);
  shape.back() = c.dst_channels;
  if (per_image) shape[0] = c.batch;
  return g.input(c.dtype, shape);
}

// A residual block's end: the sum's other operand is as large as the result. Then a factor per channel or per image and
// channel.
Graph after_convolution(const ConvolutionCase& c) {
  GraphBuilder g;
  const uint64_t made = add_op(g, c);
  const uint64_t sum = g.op(OpKind::Add, {g.op(OpKind::HardSwish, {made}), g.input(c.dtype, shape_of(g, made))});
  const uint64_t scaled = g.op(OpKind::Multiply, {sum, per_channel(g, c, false)});
  g.op(OpKind::Sigmoid, {g.op(OpKind::Multiply, {scaled, per_channel(g, c, true)})});
  return g.finish();
}
Graph relu_after(const ConvolutionCase& c) {
  GraphBuilder g;
  g.op(OpKind::ReLU, {add_op(g, c)});
  return g.finish();
}

TEST(FollowingKernels, HaveTheBitsOfWholeStepsAfterConvolutions) {
  const Dims one{1, 1}, none{0, 0};
  for (const int64_t batch : {1, 3}) {
    for (const ConvolutionCase& c :
         {ConvolutionCase{
              .src_channels = 40, .dst_channels = 72, .space = {28, 27}, .kernel = one, .pads_begin = none, .pads_end = none},
          ConvolutionCase{
              .src_channels = 96, .dst_channels = 576, .space = {7, 7}, .kernel = one, .pads_begin = none, .pads_end = none},
          ConvolutionCase{.src_channels = 16, .dst_channels = 20, .space = {33, 31}},
          ConvolutionCase{.src_channels = 160, .dst_channels = 144, .space = {7, 7}},
          ConvolutionCase{.src_channels = 48, .dst_channels = 48, .groups = 48, .space = {30, 29}, .strides = {2, 1}},
          ConvolutionCase{.src_channels = 24, .dst_channels = 48, .groups = 12, .space = {30, 29}},
          ConvolutionCase{
              .kind = OpKind::ConvTranspose, .src_channels = 24, .dst_channels = 32, .space = {20, 21}, .strides = {2, 2}},
          ConvolutionCase{.src_channels = 16,
                          .dst_channels = 24,
                          .space = {400},
                          .kernel = {3},
                          .strides = {1},
                          .pads_begin = {1},
                          .pads_end = {1},
                          .dilations = {1}}}) {
      SCOPED_TRACE(join(batch, " images, ", c.src_channels, " to ", c.dst_channels, " channels, ", c.groups, " groups"));
      ConvolutionCase of = c;
      of.batch = batch;
      expect_same_bits(after_convolution(of), 1);
      expect_same_bits(relu_after(of), 1);
    }
  }
}

TEST(FollowingKernels, HaveTheBitsOfWholeStepsAfterProducts) {
  for (const Dims& rows : {Dims{197}, Dims{3, 50}, Dims{2, 3, 64}}) {
    GraphBuilder g;
    Dims shape = rows;
    shape.push_back(96);
    const uint64_t made = g.op(OpKind::MatMul, {g.input(f32, shape), g.input(f32, {96, 384})});
    g.op(OpKind::GELU, {g.op(OpKind::Add, {made, g.input(f32, {384})})});
    expect_same_bits(g.finish(), 1);
  }
}

// The product is computed as its transpose.
TEST(FollowingKernels, HaveTheBitsOfWholeStepsAfterTransposedProducts) {
  for (const DataType dtype : {f32, bf16}) {
    GraphBuilder g;
    const uint64_t made = g.op(OpKind::MatMul, {g.input(dtype, {64, 96}), g.input(dtype, {1100, 96})}, {{"transpose_b", true}});
    g.op(OpKind::GELU, {g.op(OpKind::Add, {made, g.input(dtype, {1100})})});
    expect_same_bits(g.finish(), 1, dtype == f32 ? 1e-4 : 2e-2);
  }
}

size_t count_of_steps(const kernel::Plan& plan) {
  return cpu_backend().compile(std::make_shared<const kernel::Plan>(plan))->info().steps.size();
}

// convolution ── Clamp ── convolution, with constant weights: one tap, over several blocks of k, or with strides; of each
// channel by itself; of few channels.
TEST(FollowingKernels, AreComputedByAConvolutionWhoseResultTheyReplace) {
  const Dims one{1, 1}, none{0, 0};
  for (const ConvolutionCase& c :
       {ConvolutionCase{
            .src_channels = 40, .dst_channels = 72, .space = {28, 27}, .kernel = one, .pads_begin = none, .pads_end = none},
        ConvolutionCase{
            .src_channels = 2700, .dst_channels = 88, .space = {7, 7}, .kernel = one, .pads_begin = none, .pads_end = none},
        ConvolutionCase{.src_channels = 128, .dst_channels = 136, .space = {13, 14}, .strides = {2, 2}},
        ConvolutionCase{.src_channels = 56, .dst_channels = 56, .groups = 56, .space = {14, 15}},
        ConvolutionCase{.src_channels = 3, .dst_channels = 40, .space = {30, 31}, .strides = {2, 2}}}) {
    for (const bool has_bias : {false, true}) {
      SCOPED_TRACE(join(c.src_channels, " to ", c.dst_channels, " channels, ", c.groups, " groups", has_bias ? ", bias" : ""));
      GraphBuilder g;
      const uint64_t bias = has_bias ? g.input(f32, {c.dst_channels}) : kNoTensor;
      const uint64_t made =
          g.op(OpKind::Convolution, {g.input(f32, src_shape(c)), g.constant(f32, weights_shape(c)), bias}, attributes_of(c));
      const uint64_t clamped = g.op(OpKind::Clamp, {made}, {{"min", -0.25F}, {"max", 0.5F}});
      const ConvolutionCase next{
          .src_channels = c.dst_channels, .dst_channels = 8, .kernel = one, .pads_begin = none, .pads_end = none};
      g.op(OpKind::Convolution, {clamped, g.constant(f32, weights_shape(next))}, attributes_of(next));
      const Graph graph = g.finish();
      expect_same_bits(graph, 1);
      EXPECT_EQ(count_of_steps(plan_of(with_strides(graph))), 2U);
    }
  }
}

// Two convolutions with ReLUs, whose results are parts of a concatenation. `is_read_twice`: another op reads those of the
// convolutions, too.
Graph joined(const ConvolutionCase& c, bool is_read_twice) {
  GraphBuilder g;
  const uint64_t x = g.input(f32, src_shape(c));
  std::vector<uint64_t> parts;
  for (int i = 0; i < 2; ++i) {
    const uint64_t made = g.op(OpKind::Convolution, {x, g.constant(f32, weights_shape(c))}, attributes_of(c));
    const uint64_t part = parts.emplace_back(g.op(OpKind::ReLU, {made}));
    Dims whole = shape_of(g, made);
    whole.back() *= 2;
    LogicalTensor& tensor = g.tensor(part);
    tensor.shape = shape_of(g, made), tensor.layout = LayoutType::strided, tensor.strides = dense_strides(whole);
    if (is_read_twice) g.op(OpKind::ReduceMax, {made}, {{"axes", Dims{1, 2}}, {"keep_dims", true}});
  }
  const uint64_t both = g.op(OpKind::Concat, parts, {{"axis", int64_t{3}}});
  const ConvolutionCase next{.batch = c.batch,
                             .src_channels = 2 * c.dst_channels,
                             .dst_channels = 8,
                             .kernel = {1, 1},
                             .pads_begin = {0, 0},
                             .pads_end = {0, 0}};
  g.op(OpKind::Convolution, {both, g.constant(f32, weights_shape(next))}, attributes_of(next));
  return g.finish();
}

TEST(FollowingKernels, AreComputedByAConvolutionThatWritesAPart) {
  const Dims one{1, 1}, none{0, 0};
  for (const int64_t batch : {1, 2}) {
    for (const ConvolutionCase& c :
         {ConvolutionCase{
              .src_channels = 40, .dst_channels = 72, .space = {28, 27}, .kernel = one, .pads_begin = none, .pads_end = none},
          ConvolutionCase{.src_channels = 56, .dst_channels = 56, .groups = 56, .space = {14, 15}},
          ConvolutionCase{.src_channels = 3, .dst_channels = 40, .space = {30, 31}, .strides = {2, 2}}}) {
      SCOPED_TRACE(join(batch, " images, ", c.src_channels, " to ", c.dst_channels, " channels"));
      ConvolutionCase of = c;
      of.batch = batch;
      const Graph graph = joined(of, false);
      expect_same_bits(graph, 2);
      EXPECT_EQ(count_of_steps(plan_of(with_strides(graph))), 3U);
      const kernel::Plan twin = plan_of(with_strides(joined(of, true)));
      EXPECT_EQ(count_of_steps(twin), twin.steps.size());
      expect_same_bits(joined(of, true), count_of_following(twin));
    }
  }
}

// Kernels that read other elements of the result, or its channels in another place, wait for all of it.
TEST(FollowingKernels, WaitForTheWholeResultOtherwise) {
  GraphBuilder reduced;
  const uint64_t made = add_op(reduced, {});
  reduced.op(OpKind::ReduceMean, {made}, {{"axes", Dims{1, 2}}, {"keep_dims", true}});
  expect_same_bits(reduced.finish(), 0);
  GraphBuilder moved;
  moved.op(OpKind::Exp, {moved.op(OpKind::StaticTranspose, {add_op(moved, {})}, {{"order", Dims{0, 3, 1, 2}}})});
  expect_same_bits(moved.finish(), 0);
}

// Channels are last in memory, not in the shape, as models with channels first are compiled.
TEST(FollowingKernels, HaveTheBitsOfWholeStepsInAnyOrderOfAxes) {
  const auto channels_last = [](const Dims& shape) {
    return Dims{shape[1] * shape[2] * shape[3], 1, shape[3] * shape[1], shape[1]};
  };
  for (const ConvolutionCase& c : {ConvolutionCase{.src_channels = 40,
                                                   .dst_channels = 72,
                                                   .space = {28, 27},
                                                   .kernel = {1, 1},
                                                   .pads_begin = {0, 0},
                                                   .pads_end = {0, 0}},
                                   ConvolutionCase{.src_channels = 16, .dst_channels = 20, .space = {33, 31}}}) {
    ConvolutionCase of = c;
    of.channels_last = false;
    const Dims src = src_shape(of), dst = dst_shape(of);
    GraphBuilder g;
    const uint64_t made =
        g.op(OpKind::Convolution, {g.input(f32, src, channels_last(src)), g.input(f32, weights_shape(of))}, attributes_of(of));
    const uint64_t result = g.op(OpKind::HardSwish, {made});
    for (const uint64_t id : {made, result}) {
      LogicalTensor& tensor = g.tensor(id);
      tensor.shape = dst, tensor.strides = channels_last(dst), tensor.layout = LayoutType::strided;
    }
    expect_same_bits(g.finish(), 1);
  }
}

TEST(FollowingKernels, ConvertTheResult) {
  GraphBuilder g;
  const uint64_t made = add_op(g, {.src_channels = 32, .dst_channels = 64, .space = {20, 20}});
  g.op(OpKind::TypeCast, {g.op(OpKind::ReLU, {made})}, {}, bf16);
  expect_same_bits(g.finish(), 1, 2e-2);
}

}  // namespace
}  // namespace lamina::testing
