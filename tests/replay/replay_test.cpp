// The driver from end to end: exit codes, messages, files, overrides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <regex>
#include <set>

#include "driver_process.h"
#include "interface/json/json.h"
#include "lamina/npy.h"
#include "support/graph_builder.h"

namespace lamina::driver {
namespace {

namespace fs = std::filesystem;
using lamina::testing::GraphBuilder;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::Outcome;
using testing::read_text;
using ::testing::StartsWith;
using testing::Workspace;

constexpr DataType f32 = DataType::f32;

// LayerNorm over [4, 32], tensors 0, 1, 2 in and 3 out.
std::string layer_norm_text() {
  GraphBuilder g;
  const auto src = g.input(f32, {4, 32});
  const auto gamma = g.input(f32, {32});
  const auto beta = g.input(f32, {32});
  g.named("ln").op(OpKind::LayerNorm, {src, gamma, beta}, {{"keep_stats", false}});
  return write_graph_json(g.finish());
}

std::string small_chain_text() {
  GraphBuilder g;
  const auto x = g.input(f32, {8, 64});
  const auto sum = g.op(OpKind::Add, {x, g.input(f32, {8, 64})});
  const auto normed = g.op(OpKind::LayerNorm, {sum, g.input(f32, {64}), g.input(f32, {64})}, {{"keep_stats", false}});
  g.op(OpKind::ReLU, {normed});
  return write_graph_json(g.finish());
}

std::vector<std::string> examples() {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(fs::path(LAMINA_SOURCE_DIR) / "examples" / "graphs"))
    files.push_back(entry.path().string());
  return files;
}

// ---- good input

class ReplayOnEngine : public ::testing::TestWithParam<std::string> {};

TEST_P(ReplayOnEngine, ExamplesAreRight) {
  const Workspace w("examples");
  for (const std::string& file : examples()) {
    const Outcome outcome = w.run("replay " + file + " --check --engine " + GetParam());
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("\nok "));
  }
}

TEST_P(ReplayOnEngine, DebugPolicyGivesTheSameVerdict) {
  const Workspace w("debug");
  const Outcome outcome =
      w.run("replay " + w.write("chain.json", small_chain_text()) + " --check --policy debug --engine " + GetParam());
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("0: Add"), HasSubstr("1: LayerNorm"), HasSubstr("2: ReLU")));
}

TEST_P(ReplayOnEngine, OverridesChangeShapeTypeAndAttribute) {
  const Workspace w("overrides");
  const std::string file = w.write("ln.json", layer_norm_text());
  const std::string engine = " --check --engine " + GetParam();
  for (const std::string options :
       {"--set-shape 0:3x5x32", "--set-shape 0:7x16,1:16,2:16",
        "--set-shape 0:2x3x4,1:3x4,2:3x4 --set-attr 0:begin_norm_axis=1", "--set-attr ln:epsilon=0.5", "--set-dtype all:bf16",
        "--set-dtype all:f16 --set-shape 0:1x32", "--set-shape 0:0x32"}) {
    const Outcome outcome = w.run("replay " + options + " " + file + engine);
    EXPECT_EQ(outcome.code, 0) << options << '\n' << outcome.out << outcome.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, ReplayOnEngine, ::testing::Values("cpu", "reference"),
                         [](const auto& engine) { return engine.param; });

TEST(Replay, WritesAReportAndATable) {
  const Workspace w("report");
  const std::string file = w.write("chain.json", small_chain_text());
  const Outcome outcome =
      w.run("replay " + file + " --check --bench --repeat 0.02 --engine cpu --report " + w.path("deep/report.json"));
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("verdict"), HasSubstr("of allowed"), HasSubstr("median us"), HasSubstr("GB/s")));
  EXPECT_THAT(read_text(w.path("deep/report.json")),
              AllOf(HasSubstr("\"verdict\": \"ok\""), HasSubstr("\"kinds\": [\"Add\", \"LayerNorm\", \"ReLU\"]"),
                    HasSubstr("\"backend\": \"cpu\""), ContainsRegex("\"cached_compile_ms\": [0-9]"),
                    ContainsRegex("\"median_us\": [0-9]"), ContainsRegex("\"gb_per_s\": [0-9]"), HasSubstr("\"worst_error\"")));
}

// Two steps, a product and a norm: the intermediate value needs memory in addition to the ports.
TEST(Replay, TheReportTellsOfMemory) {
  const Workspace w("memory");
  GraphBuilder g;
  const auto product = g.op(OpKind::MatMul, {g.input(f32, {40, 64}), g.input(f32, {64, 80})});
  g.op(OpKind::SoftMax, {product}, {{"axis", int64_t{-1}}});
  const std::string file = w.write("product.json", write_graph_json(g.finish()));
  ASSERT_EQ(w.run("replay " + file + " --engine cpu --report " + w.path("report.json")).code, 0);
  const std::string report = read_text(w.path("report.json"));
  const auto bytes_in = [&](const std::string& name) {
    std::smatch found;
    return std::regex_search(report, found, std::regex('"' + name + "\": ([0-9]+)")) ? std::stoll(found[1]) : -1;
  };
  EXPECT_EQ(bytes_in("required_bytes"), 4 * (40 * 64 + 64 * 80 + 40 * 80));
  EXPECT_GE(bytes_in("workspace_bytes"), bytes_in("arena_bytes"));
  EXPECT_GT(bytes_in("workspace_bytes"), 0);
  EXPECT_EQ(bytes_in("peak_bytes"), bytes_in("required_bytes") + bytes_in("workspace_bytes"));
}

TEST(Replay, ReadsInputsAndWritesOutputs) {
  const Workspace w("files");
  const std::string file = w.write("ln.json", layer_norm_text());
  EXPECT_EQ(w.run("replay " + file + " --engine reference --out " + w.path("first")).code, 0);
  EXPECT_TRUE(fs::exists(w.path("first/3.npy")));
  EXPECT_FALSE(fs::exists(w.path("first/0.npy")));

  LogicalTensor tensor;
  tensor.id = 0;
  tensor.dtype = f32;
  tensor.shape = Dims{4, 32};
  Buffer src(tensor);
  for (int64_t i = 0; i < 128; ++i) src.store(i, static_cast<double>(i % 7));
  fs::create_directories(w.path("in"));
  {
    std::ofstream out(w.path("in/0.npy"), std::ios::binary);
    write_npy(out, src);
  }
  const std::string run = "replay " + file + " --in " + w.path("in") + " --seed 5 --out ";
  EXPECT_EQ(w.run(run + w.path("second") + " --engine reference").code, 0);
  EXPECT_EQ(w.run(run + w.path("third") + " --engine reference").code, 0);
  EXPECT_NE(read_text(w.path("second/3.npy")), read_text(w.path("first/3.npy")));
  EXPECT_EQ(read_text(w.path("second/3.npy")), read_text(w.path("third/3.npy")));
}

TEST(Replay, OutputsDoNotDependOnThreads) {
  const Workspace w("threads");
  const std::string file = w.write("chain.json", small_chain_text());
  EXPECT_EQ(w.run("replay " + file + " --engine cpu --threads 1 --out " + w.path("one")).code, 0);
  EXPECT_EQ(w.run("replay " + file + " --engine cpu --threads 5 --out " + w.path("five")).code, 0);
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(w.path("one"))) names.insert(entry.path().filename().string());
  EXPECT_EQ(names.size(), 1U);
  for (const std::string& name : names) EXPECT_EQ(read_text(w.path("one/" + name)), read_text(w.path("five/" + name)));
}

TEST(Replay, SeveralFilesGetFoldersOfTheirOwn) {
  const Workspace w("several");
  const std::string files = w.write("a.json", layer_norm_text()) + " " + w.write("b.json", small_chain_text());
  const Outcome outcome = w.run("replay " + files + " --engine reference --check --out " + w.path("out"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(fs::exists(w.path("out/a/3.npy")));
  EXPECT_TRUE(fs::exists(w.path("out/b")));
  EXPECT_THAT(outcome.out, HasSubstr("2 files: 2 ok"));
}

// ---- what the engine cannot do

TEST(Replay, AnUnsupportedOpIsNamedAndExitsWithOne) {
  const Workspace w("unsupported");
  GraphBuilder g;
  const auto x = g.input(f32, {8, 8});
  const auto unknown = g.named("mystery").multi(OpKind::Wildcard, {x}, {}, {f32});
  g.op(OpKind::ReLU, {unknown.front()});
  Graph graph = g.finish();
  std::string text = write_graph_json(graph);
  const Outcome outcome = w.run("replay --engine cpu --check --out " + w.path("out") + " " + w.write("wild.json", text));
  EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("wild.json: op 0 (Wildcard \"mystery\"): not supported by the cpu backend: "));
  EXPECT_THAT(outcome.out, HasSubstr("\nnot run "));  // the partition that contains the ReLU
  EXPECT_FALSE(fs::exists(w.path("out")));
}

TEST(Replay, AnEngineThatIsNotThereIsBadUsage) {
  const Workspace w("gpu");
  const std::string file = w.write("ln.json", layer_norm_text());
  const Outcome far = w.run("replay --engine gpu --device opencl:1000 " + file);
  EXPECT_EQ(far.code, 2) << far.err;
  EXPECT_THAT(far.err, ::testing::AnyOf(HasSubstr("--engine gpu: no GPU can be used: OpenCL: "),
                                        HasSubstr("\"opencl:1000\": the number must be")));
  const Outcome strange = w.run("replay --engine gpu --device metal " + file);
  EXPECT_EQ(strange.code, 2);
  EXPECT_THAT(strange.err, HasSubstr("device \"metal\": allowed is cuda, opencl, or one of them with a number, as in cuda:1"));
}

// ---- bad input

struct BadCase {
  std::string name, options, text, message;
};

class ReplayRefuses : public ::testing::TestWithParam<BadCase> {};

TEST_P(ReplayRefuses, WithOneSentenceAndNothingWritten) {
  const Workspace w("bad_" + GetParam().name);
  const std::string file = w.write("graph.json", GetParam().text);
  const Outcome outcome = w.run("replay " + GetParam().options + " --engine reference --out " + w.path("out") + " --report " +
                                w.path("report.json") + " " + file);
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().message));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(w.file_count(), 3U) << "only the graph and the two captured streams";
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

INSTANTIATE_TEST_SUITE_P(
    BadInput, ReplayRefuses,
    ::testing::Values(
        BadCase{"axis", "--set-attr 0:begin_norm_axis=5", layer_norm_text(),
                "graph.json: op 0 (LayerNorm \"ln\"): attribute begin_norm_axis is 5, allowed is -2..1"},
        BadCase{"epsilon", "--set-attr ln:epsilon=-1", layer_norm_text(),
                "graph.json: op 0 (LayerNorm \"ln\"): attribute epsilon is -1"},
        BadCase{"truncated", "", layer_norm_text().substr(0, 900), "graph.json: line "},
        BadCase{"empty", "", "", "graph.json: line 1, column 1: "},
        BadCase{"no_ops", "", R"({"graph": []})", "graph.json: the graph has no op"},
        BadCase{"gamma_shape", "--set-shape 1:31", layer_norm_text(),
                "graph.json: op 0 (LayerNorm \"ln\"): input gamma has shape [31]"},
        BadCase{"kind", "", with(layer_norm_text(), "\"LayerNorm\"", "\"LayerNrm\""), "graph.json: op 0: kind is \"LayerNrm\""},
        BadCase{"shape_syntax", "--set-shape 0:4xx", layer_norm_text(), "graph.json: --set-shape 0:4xx: extent \"\""},
        BadCase{"shape_of_output", "--set-shape 3:4x4", layer_norm_text(), "tensor 3 is produced by op 0"},
        BadCase{"shape_of_nothing", "--set-shape 33:4x4", layer_norm_text(), "the graph has no tensor 33"},
        BadCase{"attribute_name", "--set-attr 0:epsilom=1", layer_norm_text(), "LayerNorm has no attribute epsilom"},
        BadCase{"attribute_op", "--set-attr nobody:epsilon=1", layer_norm_text(), "no op with id or name \"nobody\""},
        BadCase{"attribute_value", "--set-attr 0:epsilon=much", layer_norm_text(), "\"much\" is not a number"},
        BadCase{"dtype", "--set-dtype all:f99", layer_norm_text(), "\"f99\" is not a type"},
        BadCase{"dtype_of_one", "--set-dtype 0:s32", layer_norm_text(),
                "graph.json: op 0 (LayerNorm \"ln\"): input src is s32"},
        BadCase{"in_folder", "--in no/such/folder", layer_norm_text(), "--in no/such/folder: is not a directory"}),
    [](const auto& bad) { return bad.param.name; });

TEST(Replay, UsageErrorsExitWithTwo) {
  const Workspace w("usage");
  for (const std::string arguments :
       {"", "replay", "frobnicate", "replay --threads -3 x.json", "replay --engine tpu x.json", "replay --repeat soon x.json",
        "replay no/such/file.json", "ops Frobnicate", "explain", "replay /"})
    EXPECT_EQ(w.run(arguments).code, 2) << arguments;
}

TEST(Replay, AWrongNpyIsNamedWithItsTensor) {
  const Workspace w("npy");
  fs::create_directories(w.path("in"));
  w.write("in/1.npy", "not numpy");
  const Outcome outcome = w.run("replay --engine reference --in " + w.path("in") + " " + w.write("ln.json", layer_norm_text()));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("1.npy: is not a .npy file"));
}

// ---- explain and ops

TEST(Explain, TellsPartitionKernelAndReasons) {
  const Workspace w("explain");
  const std::string file = w.write("chain.json", small_chain_text());
  const Outcome outcome = w.run("explain --engine cpu " + file);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("partition 0: Add"), HasSubstr("kernel: "), HasSubstr("[fused."), HasSubstr("op 1 LayerNorm")));
  const Outcome kernels = w.run("explain --kernels --engine cpu " + file);
  EXPECT_THAT(kernels.out, AllOf(HasSubstr("= moments %"), HasSubstr("walk 0: computes %0"), HasSubstr("for moments %")));
}

// Twelve layers of a network are one explanation.
TEST(Explain, FoldsWhatIsRepeated) {
  const Workspace w("explain_fold");
  GraphBuilder g;
  auto x = g.input(f32, {8, 16});
  for (int layer = 0; layer < 12; ++layer) x = g.op(OpKind::SoftMax, {x}, {{"axis", int64_t{layer % 2}}});
  for (int op = 0; op < 5; ++op) x = g.op(OpKind::Tanh, {x});
  const Outcome outcome = w.run("explain --engine cpu " + w.write("layers.json", write_graph_json(g.finish())));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("partition 3: kernels and reasons as of partition 1, with op 3"),
                                 HasSubstr("4 more, with the same reasons: ops 13, 14, 15, 16")));
}

TEST(Completion, KnowsEverySubcommandAndOption) {
  const Workspace w("completion");
  for (const std::string kind : {"bash", "zsh", "fish", "man"}) {
    const Outcome outcome = w.run("completion " + kind);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("replay"), HasSubstr("export"), HasSubstr(kind == "man" ? "\\-\\-set\\-shape" : "set-shape")))
        << kind;
  }
  EXPECT_EQ(w.run("completion tcsh").code, 2);
}

TEST(CommandLine, AMistypedSubcommandGetsASuggestion) {
  const Workspace w("mistyped");
  const Outcome near = w.run("replya x.json"), far = w.run("benchmark x.json");
  EXPECT_EQ(near.code, 2);
  EXPECT_THAT(near.err, HasSubstr("there is no subcommand 'replya'; did you mean 'replay'?"));
  EXPECT_EQ(far.code, 2);
  EXPECT_THAT(far.err, HasSubstr("there is no subcommand 'benchmark'; `lamina --help` lists them"));
}

TEST(Ops, PrintsASchema) {
  const Workspace w("ops");
  const Outcome one = w.run("ops LayerNorm");
  EXPECT_EQ(one.code, 0);
  EXPECT_THAT(one.out, AllOf(HasSubstr("formula: dst = gamma"), HasSubstr("begin_norm_axis  s64"), HasSubstr("default -1"),
                             HasSubstr("only when use_affine is true")));
  const Outcome all = w.run("ops");
  EXPECT_THAT(all.out, AllOf(HasSubstr("LayerNormGrad"), HasSubstr("Wildcard")));
  EXPECT_THAT(w.run("ops layer").err, HasSubstr("LayerNorm"));
}

TEST(Tune, KeepsTheScheduleOfAGpu) {
  const Workspace w("tune_gpu");
  GraphBuilder g;
  g.op(OpKind::SoftMax, {g.input(f32, {40, 16})}, {{"axis", int64_t{1}}});
  const std::string file = w.write("softmax.json", write_graph_json(g.finish()));
  const std::string folder = w.path("cache"), gpu = " --engine gpu --device opencl " + file;
  const auto run = [&](const std::string& arguments) { return w.run(arguments, "LAMINA_CACHE_DIR=" + folder); };
  const Outcome tuned = run("tune --budget 1" + gpu);
  if (tuned.code == 2) GTEST_SKIP() << tuned.err;
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_THAT(tuned.out, ContainsRegex("SoftMax: 1 kernel timed\n    lamina_softmax_f32\n      measured: packed, "));
  EXPECT_THAT(run("tune" + gpu).out,
              ContainsRegex("SoftMax: 0 kernels timed\n    lamina_softmax_f32\n      measured: packed, "));
  EXPECT_THAT(run("explain" + gpu).out, ContainsRegex("kernel: lamina_softmax_f32 \\(measured: packed, "));
  EXPECT_EQ(run("replay --check" + gpu).code, 0);
}

// A kernel with column sums becomes two kernels of one step: later kernels in the list keep their own schedules.
TEST(Explain, TellsTheStepsOfAGpuWithTheirSchedules) {
  const Workspace w("explain_gpu");
  GraphBuilder g;
  const auto x = g.input(f32, {40, 16});
  const auto diff = g.op(OpKind::MatMul, {g.input(f32, {40, 64}), g.input(f32, {64, 16}), kNoTensor});
  const auto statistics = [&] { return g.input(f32, {40}); };
  const auto grads =
      g.multi(OpKind::LayerNormBackward, {x, diff, statistics(), statistics(), g.input(f32, {16})}, {}, {f32, f32, f32});
  g.op(OpKind::MatMul, {grads.front(), g.input(f32, {16, 100}), kNoTensor});
  const std::string file = w.write("steps.json", write_graph_json(g.finish()));
  const Outcome outcome = w.run("explain --engine gpu --device opencl " + file);
  if (outcome.code == 2) GTEST_SKIP() << outcome.err;
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("1 partition, backend opencl"));
  EXPECT_THAT(outcome.out, ContainsRegex("kernel: lamina_matmul_f32 \\(tiles of 64 x 16\\)\n"
                                         "[^\n]* kernel: lamina_layer_norm_backward_f32 \\(packed columns\\)\n"
                                         "[^\n]* kernel: lamina_layer_norm_backward_f32_columns \\(packed columns\\)\n"
                                         "[^\n]* kernel: lamina_matmul_f32 \\(tiles of 64 x 64\\)\n"));
}

}  // namespace
}  // namespace lamina::driver
