// `lamina show`: the contents of the picture, and errors.
#include "lamina/show.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driver_process.h"
#include "html.h"
#include "interface/json/json.h"
#include "support/graph_builder.h"

namespace lamina::driver {
namespace {

using lamina::testing::GraphBuilder;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using testing::fault_of_page;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using testing::read_text;
using ::testing::StartsWith;
using testing::Workspace;
using Json = nlohmann::json;

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

// Sets PATH while an object of this class exists.
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
  EXPECT_THAT(dot, HasSubstr("label=\"partition 0\\nlamina_layer_norm_relu_f32_"));  // the name of the kernel
  EXPECT_EQ(w.file_count(), 4u);  // the graph, the picture, stdout and stderr: no temporary file
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
  EXPECT_EQ(outcome.err,
            "-o " + w.path("g.png") + ": the name of a picture ends in .html, .svg or .dot; else it is a folder, FOLDER/\n");
  EXPECT_EQ(w.file_count(), 3u);
}

TEST(Show, SaysThatSvgNeedsGraphviz) {
  const Workspace w("show");
  const std::string file = w.write("g.json", norm_and_relu());
  const Path nowhere("/nonexistent");
  const Outcome outcome = w.run("show " + file + " -o " + w.path("g.svg"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("g.svg: an SVG is drawn by Graphviz' dot, which is not in PATH; install Graphviz"),
                                 HasSubstr(".html")));
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

// ---- the page

TEST(ShowPage, HoldsEveryOpAndPartitionWithWhatExplainTells) {
  const Workspace w("show");
  const std::string file = w.write("g.json", norm_and_relu());
  const Path nowhere("/nonexistent");  // no Graphviz
  const Outcome outcome = w.run("show " + file + " --policy debug -o " + w.path("g.html"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, w.path("g.html") + ": " + file + ": 2 ops, 2 partitions, backend cpu\n");
  const std::string page = read_text(w.path("g.html"));
  EXPECT_EQ(fault_of_page(page), "");
  EXPECT_EQ(count_of(page, "class=\"op\""), 2u);
  EXPECT_EQ(count_of(page, "class=\"frame\""), 2u);
  EXPECT_EQ(count_of(page, "<li><button type=\"button\" data-partition="), 2u);
  EXPECT_THAT(page, AllOf(HasSubstr("aria-label=\"op 0 LayerNorm &quot;norm&quot;, makes f32[8, 64], partition 0\""),
                          HasSubstr("[\"begin_norm_axis\",\"-1\"]"), HasSubstr("\"code\":\"alone.policy_debug\""),
                          HasSubstr("\"name\":\"lamina_layer_norm_f32_")));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("http://www.w3.org/1999")), Not(HasSubstr("src=")),
                          Not(HasSubstr("href="))));  // no network access
}

TEST(ShowPage, EscapesNames) {
  const Workspace w("show");
  const std::string name = "<b>&\"'</script><script>";
  const std::string file = w.write("g.json", norm_and_relu(name));
  ASSERT_EQ(w.run("show " + file + " -o " + w.path("g.html")).code, 0);
  const std::string page = read_text(w.path("g.html"));
  EXPECT_EQ(fault_of_page(page), "");
  EXPECT_EQ(count_of(page, "<script"), 2u);  // the data and the program
  EXPECT_THAT(page, AllOf(HasSubstr("&lt;b&gt;&amp;&quot;&#39;&lt;/script&gt;"), HasSubstr("\\u003cb>&\\\"'\\u003c/script>")));
}

TEST(ShowPage, TellsTheTimesOfAReport) {
  const Workspace w("show");
  const std::string file = w.write("g.json", norm_and_relu());
  ASSERT_EQ(w.run("replay " + file + " --bench --check --repeat 0.01 --report " + w.path("r.json")).code, 0);
  const std::string report = read_text(w.path("r.json"));
  const size_t at = report.rfind("\"median_us\": ") + 13;
  w.write("r.json", report.substr(0, at) + "1234.5" + report.substr(report.find(',', at)));
  ASSERT_EQ(w.run("show " + file + " --report " + w.path("r.json") + " -o " + w.path("g.html")).code, 0);
  const std::string page = read_text(w.path("g.html"));
  EXPECT_EQ(fault_of_page(page), "");
  EXPECT_THAT(page, AllOf(HasSubstr("partition 0 \xC2\xB7 1.23 ms (100 %)"), HasSubstr("\"median_us\":1234.5"),
                          HasSubstr("\"verdict\":\"ok\""), HasSubstr("\"required_bytes\":4608")));
  ASSERT_EQ(w.run("show " + file + " --report " + w.path("r.json") + " -o " + w.path("g.dot")).code, 0);
  EXPECT_THAT(read_text(w.path("g.dot")), HasSubstr("label=\"partition 0, 1.23 ms (100 %)\\n"));
}

TEST(ShowPage, RefusesReportsOfOtherGraphs) {
  const Workspace w("show");
  const std::string file = w.write("g.json", norm_and_relu());
  ASSERT_EQ(w.run("replay " + file + " --report " + w.path("r.json")).code, 0);
  const auto refused = [&](const std::string& more) {
    const Outcome outcome = w.run("show " + file + " --report " + more + " -o " + w.path("g.html"));
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  EXPECT_THAT(
      refused(w.path("r.json") + " --policy debug"),
      HasSubstr("r.json: is a report of 1 partitions, the graph has 2: allowed is one of the same graph, engine and policy"));
  EXPECT_THAT(refused(w.write("text.json", "{")), HasSubstr("text.json: is not JSON"));
  EXPECT_THAT(refused(w.write("other.json", "{\"files\": 3}")), HasSubstr("other.json: is a report without files"));
  EXPECT_THAT(refused(file), HasSubstr("is neither a report of `lamina replay --report`, which has \"files\", nor a profile of "
                                       "`lamina profile --json`, which has \"machine\""));
  EXPECT_THAT(refused(w.path("nothing.json")), HasSubstr("nothing.json"));
}

// A product and a norm over its rows, which run in tiles, and a sum over the columns: two steps.
std::string tiles_and_sum() {
  GraphBuilder g;
  const auto product = g.op(OpKind::MatMul, {g.input(f32, {512, 64}), g.input(f32, {64, 64})});
  const auto norm = g.op(OpKind::SoftMax, {product}, {{"axis", int64_t{1}}});
  g.op(OpKind::ReduceSum, {g.op(OpKind::Exp, {norm})}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", false}});
  return write_graph_json(g.finish());
}

TEST(ShowPage, TellsTheTimesOfTheStepsOfAProfile) {
  const Workspace w("show");
  const std::string file = w.write("g.json", tiles_and_sum());
  ASSERT_EQ(w.run("profile " + file + " --threads 1 --repeat 0.01 --json " + w.path("p.json")).code, 0);
  ASSERT_EQ(w.run("show " + file + " --report " + w.path("p.json") + " -o " + w.path("g.html")).code, 0);
  const std::string page = read_text(w.path("g.html"));
  EXPECT_EQ(fault_of_page(page), "");
  const Json profile = Json::parse(read_text(w.path("p.json")));
  const size_t steps = profile.at("partitions").at(0).at("steps").size();
  EXPECT_GE(count_of(page, " timed\" style=\"--part:"),
            2 * steps);  // a box and its heading for each, and those inside of tiles
  EXPECT_THAT(page, AllOf(HasSubstr("\"bound_us\":"), HasSubstr("steps coloured by their time"), HasSubstr("--part:100.0%"),
                          ContainsRegex("class=\"kernels\"[^>]*>[0-9.]+ [^ ]*s \\([0-9.]+ %\\)")));
  ASSERT_EQ(w.run("show " + file + " --report " + w.path("p.json") + " -o " + w.path("g.dot")).code, 0);
  EXPECT_THAT(read_text(w.path("g.dot")), ContainsRegex("\\\\n[0-9.]+ [^ ]*s \\([0-9.]+ %\\): "));
}

TEST(ShowPage, AProfileWithoutCodeTellsTheTimesOfPartitions) {
  const Workspace w("show");
  const std::string file = w.write("g.json", norm_and_relu());
  ASSERT_EQ(w.run("profile " + file + " --repeat 0.01 --json " + w.path("p.json")).code, 0);
  ASSERT_EQ(w.run("show " + file + " --no-compile --report " + w.path("p.json") + " -o " + w.path("g.html")).code, 0);
  EXPECT_THAT(read_text(w.path("g.html")), AllOf(HasSubstr("s (100 %)"), Not(HasSubstr("timed\""))));
}

TEST(ShowPage, RefusesProfilesOfOtherGraphs) {
  const Workspace w("show");
  const std::string file = w.write("g.json", norm_and_relu());
  ASSERT_EQ(w.run("profile " + file + " --repeat 0.01 --json " + w.path("p.json")).code, 0);
  const std::string profile = read_text(w.path("p.json"));
  const auto refused = [&](const std::string& text, const std::string& more = "") {
    const Outcome outcome =
        w.run("show " + file + more + " --report " + w.write("given.json", text) + " -o " + w.path("g.html"));
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  const auto changed = [&](const auto& change) {
    Json json = Json::parse(profile);
    change(json);
    return json.dump();
  };
  EXPECT_THAT(refused(profile, " --policy debug"),
              HasSubstr("given.json: is a profile without partition 0: LayerNorm: allowed is a profile of the same graph, with "
                        "the same engine, policy and overrides"));
  EXPECT_THAT(refused(changed([](Json& json) { json["partitions"][0]["steps"].clear(); })),
              HasSubstr("given.json: has 0 steps, the graph's has 1, in partition 0: LayerNorm + ReLU: allowed"));
  EXPECT_THAT(refused(changed([](Json& json) { json["partitions"][0]["steps"][0]["name"] = "another"; })),
              HasSubstr("given.json: has another as its step 0, the graph's has lamina_"));
  EXPECT_THAT(refused(changed([](Json& json) { json["partitions"][0]["steps"][0].erase("us"); })),
              HasSubstr("given.json: is a profile that lacks \"us\""));
  EXPECT_THAT(refused(changed([](Json& json) { json["partitions"][0]["steps"][0]["us"] = "long"; })),
              HasSubstr("given.json: is a profile whose \"us\" is not a number"));
  EXPECT_THAT(refused(changed([](Json& json) { json["partitions"] = 3; })),
              HasSubstr("given.json: is a profile whose \"partitions\" is not a list"));
}

TEST(ShowPage, IsWrittenForEachFile) {
  const Workspace w("show");
  const std::string a = w.write("a.json", norm_and_relu()), b = w.write("b.json", norm_and_relu("other"));
  ASSERT_EQ(w.run("show " + a + " " + b + " -o " + w.path("pages/")).code, 0);
  EXPECT_EQ(fault_of_page(read_text(w.path("pages/a.html"))), "");
  EXPECT_THAT(read_text(w.path("pages/b.html")), HasSubstr("other"));
  EXPECT_EQ(w.run("show " + a + " " + b + " -o " + w.path("both.html")).err,
            "-o " + w.path("both.html") + ": there are 2 files, allowed is a folder\n");
}

TEST(ShowPage, NeedsNoCompilation) {
  const Workspace w("show");
  const std::string file = w.write("g.json", norm_and_relu());
  ASSERT_EQ(w.run("show " + file + " --no-compile -o " + w.path("g.html")).code, 0);
  EXPECT_THAT(read_text(w.path("g.html")), AllOf(HasSubstr("\"compiled\":false"), Not(HasSubstr("lamina_layer_norm"))));
}

TEST(ShowPage, SaysWhichPartitionTheEngineCannotRun) {
  const Workspace w("show");
  GraphBuilder g;
  g.op(OpKind::Wildcard, {g.op(OpKind::Abs, {g.input(f32, {4, 8})})});
  const std::string file = w.write("g.json", write_graph_json(g.finish()));
  ASSERT_EQ(w.run("show " + file + " -o " + w.path("unknown.html")).code, 0);
  EXPECT_THAT(read_text(w.path("unknown.html")),
              AllOf(HasSubstr("1 partition that this engine does not run"), HasSubstr("refused\" data-partition=\"1\"")));
}

}  // namespace
}  // namespace lamina::driver
