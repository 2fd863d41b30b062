// Positions of ops, frames and the border of an explained graph.
#include "pictures/graph_layout.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "interface/explained_graph.h"
#include "interface/status.h"
#include "pictures/words.h"

namespace lamina::pictures {
namespace {

// 0 ──> op 0 ──> 1 ──> op 1 ──> 2, and 3, which both ops read; each op is a separate partition.
ExplainedGraph two_partitions() {
  ExplainedGraph graph;
  graph.tensors = {{.id = 0, .text = "f32[8]", .producer = -1, .consumers = {0}},
                   {.id = 1, .text = "f32[8]", .producer = 0, .consumers = {1}},
                   {.id = 2, .text = "f32[8]", .producer = 1, .consumers = {}, .is_output = true},
                   {.id = 3, .text = "f32[]", .producer = -1, .consumers = {0, 1}}};
  for (size_t i = 0; i < 2; ++i) {
    ExplainedOp op;
    op.id = i;
    op.kind = "Add";
    op.name = join("sum", i);
    op.inputs = {{"src_0", static_cast<int>(i)}, {"src_1", 3}};
    op.outputs = {{"dst", static_cast<int>(i) + 1}};
    op.partition = i;
    graph.ops.push_back(op);
    ExplainedPartition partition;
    partition.id = i;
    partition.ops = {i};
    graph.partitions.push_back(partition);
  }
  return graph;
}

bool holds(const Box& outer, const Box& inner) {
  return outer.at.x <= inner.at.x && outer.at.y <= inner.at.y &&
         inner.at.x + inner.size.width <= outer.at.x + outer.size.width &&
         inner.at.y + inner.size.height <= outer.at.y + outer.size.height;
}

TEST(GraphLayout, FramesHoldTheirOpsAndWhatTheyAloneTakeAndGive) {
  const GraphLayout layout = lay_out(two_partitions());
  ASSERT_EQ(layout.ops.size(), 2u);
  ASSERT_EQ(layout.partitions.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(holds(layout.partitions[i], layout.ops[i]));
  EXPECT_FALSE(holds(layout.partitions[0], layout.ops[1]));
  ASSERT_EQ(layout.border.size(), 3u);  // 0 and 3 are inputs, 2 is an output
  for (const BorderBox& border : layout.border) {
    EXPECT_EQ(border.is_output, border.tensor == 2);
    EXPECT_EQ(holds(layout.partitions[0], border.box), border.tensor == 0);
    EXPECT_EQ(holds(layout.partitions[1], border.box), border.tensor == 2);
  }
}

TEST(GraphLayout, HasALineForEveryPortThatReads) {
  const GraphLayout layout = lay_out(two_partitions());
  ASSERT_EQ(layout.lines.size(), 5u);  // four ports, and the border's output
  for (const Line& line : layout.lines) {
    ASSERT_GE(line.points.size(), 2u);
    for (size_t i = 1; i < line.points.size(); ++i) EXPECT_GE(line.points[i].y, line.points[i - 1].y);
    if (line.to_op < 0) continue;
    const Box& to = layout.ops[static_cast<size_t>(line.to_op)];
    EXPECT_DOUBLE_EQ(line.points.back().y, to.at.y);
    EXPECT_GT(line.points.back().x, to.at.x);
    EXPECT_LT(line.points.back().x, to.at.x + to.size.width);
  }
}

// A chain of four ops in one partition: kernel 0 computes the first two, kernel 1 the third, kernel 2 the last.
ExplainedGraph three_kernels() {
  ExplainedGraph graph;
  for (size_t i = 0; i <= 4; ++i) {
    ExplainedTensor tensor{.id = i, .text = "f32[8]", .producer = static_cast<int>(i) - 1};
    if (i < 4) tensor.consumers = {i};
    tensor.is_output = i == 4;
    graph.tensors.push_back(tensor);
  }
  const std::vector<size_t> kernel{0, 0, 1, 2};
  graph.partitions.resize(1);
  graph.partitions[0].kernels = {{"first", "", ""}, {"second", "", ""}, {"third", "", ""}};
  for (size_t i = 0; i < 4; ++i) {
    ExplainedOp op;
    op.id = i;
    op.kind = "ReLU";
    op.inputs = {{"src", static_cast<int>(i)}};
    op.outputs = {{"dst", static_cast<int>(i) + 1}};
    op.kernels = {kernel[i]};
    graph.ops.push_back(op);
    graph.partitions[0].ops.push_back(i);
  }
  return graph;
}

// Returns the ops inside a box.
std::vector<size_t> ops_in(const GraphLayout& layout, const Box& box) {
  std::vector<size_t> ops;
  for (size_t op = 0; op < layout.ops.size(); ++op)
    if (holds(box, layout.ops[op])) ops.push_back(op);
  return ops;
}

TEST(GraphLayout, KernelsAreBoxesInsideTheirPartition) {
  const GraphLayout layout = lay_out(three_kernels());
  ASSERT_EQ(layout.steps.size(), 3u);
  const std::vector<std::vector<size_t>> expected{{0, 1}, {2}, {3}};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(layout.steps[i].kernels, std::vector<size_t>{i});
    EXPECT_EQ(layout.steps[i].tiles, -1);
    EXPECT_TRUE(holds(layout.partitions[0], layout.steps[i].box));
    EXPECT_EQ(ops_in(layout, layout.steps[i].box), expected[i]);
  }
  EXPECT_LE(layout.steps[0].box.at.y + layout.steps[0].box.size.height, layout.steps[1].box.at.y);
}

TEST(GraphLayout, ATileRegionIsABoxAroundItsKernels) {
  ExplainedGraph graph = three_kernels();
  graph.partitions[0].tiles = {{"not tiled: a product", ""}, {"tiled: 2 tiles of 4 rows", "", {0, 1, 2}}};
  const GraphLayout layout = lay_out(graph);
  ASSERT_EQ(layout.steps.size(), 4u);
  EXPECT_EQ(layout.steps[0].tiles, 1);
  EXPECT_EQ(ops_in(layout, layout.steps[0].box), (std::vector<size_t>{0, 1, 2}));
  EXPECT_TRUE(holds(layout.steps[0].box, layout.steps[1].box));
  EXPECT_TRUE(holds(layout.steps[0].box, layout.steps[2].box));
  EXPECT_FALSE(holds(layout.steps[0].box, layout.steps[3].box));
}

TEST(GraphLayout, KernelsThatShareOpsOrLieAroundAnotherOneHaveOneBox) {
  ExplainedGraph graph = three_kernels();
  graph.ops[1].kernels = {0, 1};
  GraphLayout layout = lay_out(graph);
  ASSERT_EQ(layout.steps.size(), 2u);
  EXPECT_EQ(layout.steps[0].kernels, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(ops_in(layout, layout.steps[0].box), (std::vector<size_t>{0, 1, 2}));
  graph = three_kernels();
  graph.ops[3].kernels = {0};  // kernel 1 is between its ops
  layout = lay_out(graph);
  ASSERT_EQ(layout.steps.size(), 1u);
  EXPECT_EQ(layout.steps[0].kernels, (std::vector<size_t>{0, 1}));
}

TEST(GraphLayout, WithoutKernelsThereIsNoBoxInAPartition) { EXPECT_TRUE(lay_out(two_partitions()).steps.empty()); }

TEST(GraphLayout, ShortensTextsBetweenLetters) {
  EXPECT_EQ(shortened("norm", 4), "norm");
  EXPECT_EQ(shortened("norms", 4), "nor\xE2\x80\xA6");
  EXPECT_EQ(shortened("\xC3\xA4\xC3\xA4\xC3\xA4", 2), "\xC3\xA4\xE2\x80\xA6");
}

TEST(Words, SayFiguresWithUnits) {
  EXPECT_EQ(microseconds_text(0.341), "0.341 \xC2\xB5s");
  EXPECT_EQ(microseconds_text(2408.4), "2.41 ms");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(2'560'000), "2.56 MB");
  EXPECT_EQ(escaped("<a href='x'>\"&\n"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp; ");
}

}  // namespace
}  // namespace lamina::pictures
