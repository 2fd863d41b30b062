// Where ops, frames and the border of an explained graph lie.
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

// 0 ──> op 0 ──> 1 ──> op 1 ──> 2, and 3 that both read; each op a partition of its own.
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
  ASSERT_EQ(layout.border.size(), 3u);  // 0 and 3 are taken, 2 is given
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
