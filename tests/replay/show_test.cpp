// `lamina show`: what the picture says, and what is refused.
#include "lamina/show.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "driver_process.h"
#include "interface/json/json.h"
#include "support/graph_builder.h"

namespace lamina::driver {
namespace {

using lamina::testing::GraphBuilder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using testing::read_text;
using ::testing::StartsWith;
using testing::Workspace;

constexpr DataType f32 = DataType::f32;

// 0 [8, 64] -> LayerNorm "norm" -> 3 -> ReLU "relu" -> 4
std::string norm_and_relu(const std::string& name_of_norm = "norm") {
  GraphBuilder g;
  const auto x = g.input(f32, {8, 64});
  const auto gamma = g.input(f32, {64});
  const auto beta = g.input(f32, {64});
  const auto normed = g.named(name_of_norm).op(OpKind::LayerNorm, {x, gamma, beta}, {{"keep_stats", false}});
  g.named("relu").op(OpKind::ReLU, {normed});
  return write_graph_json(g.finish());
}

// PATH as given, as long as this lives.
class Path {
 public:
  explicit Path(const char* value) : before_(std::getenv("PATH")) { setenv("PATH", value, 1); }
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;
  ~Path() { setenv("PATH", before_.c_str(), 1); }

 private:
  std::string before_;
};

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Show, DrawsOpsInTheirPartitionAndTensorsOnEdges) {
  const Workspace w("show");
  const std::string file = w.write("g.json", norm_and_relu());
  const Outcome outcome = w.run("show " + file + " -o " + w.path("g.dot"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, w.path("g.dot") + ": " + file + ": 2 ops, 1 partition, backend cpu\n");
  const std::string dot = read_text(w.path("g.dot"));
  EXPECT_THAT(dot, StartsWith("digraph lamina {\n"));
  EXPECT_THAT(dot,
              AllOf(HasSubstr("op_0 [label=\"0 LayerNorm \\\"norm\\\"\"]"), HasSubstr("op_1 [label=\"1 ReLU \\\"relu\\\"\"]"),
                    HasSubstr("op_0 -> op_1 [label=\"3\\nf32[8, 64]\"]")));
  EXPECT_THAT(dot, AllOf(HasSubstr("value_0 -> op_0;"), HasSubstr("op_1 -> value_4;"), HasSubstr("label=\"legend\"")));
  EXPECT_EQ(count_of(dot, "label=\"partition "), 1u);
  EXPECT_EQ(w.file_count(), 4u);  // the graph, the picture, what was printed: no temporary file
}

TEST(Show, ColoursEachPartitionInItsOwnWay) {
  const Workspace w("show");
  const std::string file = w.write("g.json", norm_and_relu());
  ASSERT_EQ(w.run("show " + file + " --policy debug -o " + w.path("g.dot")).code, 0);
  const std::string dot = read_text(w.path("g.dot"));
  EXPECT_EQ(count_of(dot, "label=\"partition "), 2u);
  EXPECT_THAT(dot, AllOf(HasSubstr("fillcolor=\"#cfe2f3\""), HasSubstr("fillcolor=\"#d9ead3\"")));
}

TEST(Show, SaysWhichPartitionTheEngineCannotRun) {
  const Workspace w("show");
  GraphBuilder g;
  g.op(OpKind::Wildcard, {g.op(OpKind::Abs, {g.input(f32, {4, 8})})});
  const std::string file = w.write("g.json", write_graph_json(g.finish()));
  ASSERT_EQ(w.run("show " + file + " -o " + w.path("unknown.dot")).code, 0);
  EXPECT_EQ(count_of(read_text(w.path("unknown.dot")), "label=\"partition "), 2u);
  EXPECT_EQ(count_of(read_text(w.path("unknown.dot")), "style=\"filled,rounded,dashed\""), 1u);
}

TEST(Show, TakesOverrides) {
  const Workspace w("show");
  const std::string file = w.write("g.json", norm_and_relu());
  ASSERT_EQ(w.run("show " + file + " --set-shape 0:2x64 --set-dtype all:bf16 -o " + w.path("g.dot")).code, 0);
  EXPECT_THAT(read_text(w.path("g.dot")), HasSubstr("[label=\"0\\nbf16[2, 64]\""));
}

TEST(Show, EscapesNames) {
  const Workspace w("show");
  const std::string file = w.write("g.json", norm_and_relu("a\"b\\c"));
  ASSERT_EQ(w.run("show " + file + " -o " + w.path("g.dot")).code, 0);
  EXPECT_THAT(read_text(w.path("g.dot")), HasSubstr("a\\\"b\\\\c"));
}

TEST(Show, RefusesOtherPictures) {
  const Workspace w("show");
  const std::string file = w.write("g.json", norm_and_relu());
  const Outcome outcome = w.run("show " + file + " -o " + w.path("g.png"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "-o " + w.path("g.png") + ": the name of a picture ends in .dot or .svg\n");
  EXPECT_EQ(w.file_count(), 3u);
}

TEST(Show, SaysThatSvgNeedsGraphviz) {
  const Workspace w("show");
  const std::string file = w.write("g.json", norm_and_relu());
  const Path nowhere("/nonexistent");
  const Outcome outcome = w.run("show " + file + " -o " + w.path("g.svg"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("g.svg: an SVG is drawn by Graphviz' dot, which is not in PATH"), HasSubstr(".dot")));
  EXPECT_EQ(w.file_count(), 3u);
}

TEST(Show, DrawsSvgThroughGraphviz) {
  if (std::system("command -v dot >/dev/null 2>&1") != 0) GTEST_SKIP() << "Graphviz' dot is not installed";
  const Workspace w("show");
  const std::string file = w.write("g.json", norm_and_relu());
  const Outcome outcome = w.run("show " + file + " -o " + w.path("g.svg"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(read_text(w.path("g.svg")),
              AllOf(HasSubstr("<svg"), HasSubstr("LayerNorm"), HasSubstr("f32[8, 64]"), HasSubstr("</svg>")));
  EXPECT_EQ(w.file_count(), 4u);
}

}  // namespace
}  // namespace lamina::driver
