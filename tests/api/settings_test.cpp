// Settings of the whole process: output, dumps, the mode of new graphs, and the capacity of the compiled-partition cache.
#include <filesystem>

#include "api_fixture.h"

namespace api_test {
namespace {

namespace fs = std::filesystem;
using lamina::fpmath_mode;
using lamina::graph::graph_dump_mode;
using ::testing::HasSubstr;

compiled_partition compile_relu_of(int64_t size, const engine& cpu) {
  return compiled_relu(f32(0, {size}), f32(1, {size}), cpu);
}

class Settings : public ::testing::Test {
 protected:
  void TearDown() override {
    lamina::set_verbose(0);
    lamina::graph::set_dump_mode(graph_dump_mode::none);
    lamina::set_default_fpmath_mode(fpmath_mode::strict);
    lamina::graph::set_compiled_partition_cache_capacity(1024);
  }
  // Returns the output of compiling a ReLU with this unique size.
  std::string output_of_compiling(int64_t size) const {
    ::testing::internal::CaptureStdout();
    compile_relu_of(size, cpu_);
    return ::testing::internal::GetCapturedStdout();
  }
  engine cpu_{engine::kind::cpu, 0};
};

TEST_F(Settings, OutputIsAsAskedForLast) {
  EXPECT_EQ(output_of_compiling(101), "");
  EXPECT_EQ(lamina::set_verbose(1), lamina::status::success);
  const std::string text = output_of_compiling(102);
  EXPECT_THAT(text, HasSubstr("lamina,compile,cpu,"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("lamina,pass,")));
  EXPECT_EQ(lamina::set_verbose(2), lamina::status::success);
  EXPECT_THAT(output_of_compiling(103), HasSubstr("lamina,pass,"));
  EXPECT_EQ(lamina::set_verbose(0), lamina::status::success);
  EXPECT_EQ(output_of_compiling(104), "");
}

TEST_F(Settings, OutputHasThreeLevels) {
  EXPECT_EQ(lamina::set_verbose(3), lamina::status::invalid_arguments);
  EXPECT_THAT(lamina_last_error(), HasSubstr("level is 3, allowed is 0 to 2"));
}

TEST_F(Settings, DumpsAreWrittenWhileTheyAreAskedFor) {
  const fs::path before = fs::current_path();
  std::string folder = (fs::temp_directory_path() / "lamina_settings_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  fs::current_path(folder);
  const auto files = [&] { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); };
  lamina::graph::set_dump_mode(graph_dump_mode::graph | graph_dump_mode::subgraph);
  compile_relu_of(105, cpu_);
  EXPECT_EQ(files(), 2) << "the graph and its partition";
  lamina::graph::set_dump_mode(graph_dump_mode::graph);
  compile_relu_of(106, cpu_);
  EXPECT_EQ(files(), 3);
  lamina::graph::set_dump_mode(graph_dump_mode::none);
  compile_relu_of(107, cpu_);
  EXPECT_EQ(files(), 3);
  fs::current_path(before);
  fs::remove_all(folder);
}

TEST_F(Settings, DumpModesAreBits) {
  EXPECT_THAT(failure_of([] { lamina::graph::set_dump_mode(static_cast<graph_dump_mode>(5)); }),
              FailsWith(lamina_invalid_arguments, "modes is 5, allowed is none, graph, subgraph"));
}

fpmath_mode mode_of(const graph& g) {
  fpmath_mode mode;
  bool apply_to_int;
  g.get_fpmath_mode(mode, apply_to_int);
  return mode;
}

TEST_F(Settings, NewGraphsHaveTheDefaultMode) {
  EXPECT_EQ(mode_of(graph(engine::kind::cpu)), fpmath_mode::strict);
  lamina::set_default_fpmath_mode(fpmath_mode::bf16);
  EXPECT_EQ(lamina::get_default_fpmath_mode(), fpmath_mode::bf16);
  EXPECT_EQ(mode_of(graph(engine::kind::cpu)), fpmath_mode::bf16);
  EXPECT_EQ(mode_of(graph(engine::kind::cpu, fpmath_mode::any)), fpmath_mode::any);
  EXPECT_THAT(failure_of([] { lamina::set_default_fpmath_mode(static_cast<fpmath_mode>(9)); }),
              FailsWith(lamina_invalid_arguments, "fpmath mode"));
}

// tests/compiler/compile_cache_test.cpp tests the cache itself.
TEST_F(Settings, CompiledPartitionsAreKeptUpToACapacity) {
  EXPECT_EQ(lamina::graph::get_compiled_partition_cache_capacity(), 1024);
  lamina::graph::set_compiled_partition_cache_capacity(0);
  EXPECT_EQ(lamina::graph::get_compiled_partition_cache_capacity(), 0);
  EXPECT_EQ(compile_relu_of(108, cpu_).query_logical_tensor(1).get_dims(), (dims{108}));
  EXPECT_THAT(failure_of([] { lamina::graph::set_compiled_partition_cache_capacity(-1); }),
              FailsWith(lamina_invalid_arguments, "capacity is -1, allowed is 0 or more"));
  EXPECT_EQ(lamina::graph::get_compiled_partition_cache_capacity(), 0);
}

TEST_F(Settings, AFailureMaySayWhatWasTried) {
  EXPECT_THAT(failure_of([] { error::wrap_c_api(lamina_set_verbose(-1), "cannot be quieter than quiet"); }),
              FailsWith(lamina_invalid_arguments, "cannot be quieter than quiet: lamina_set_verbose: level is -1"));
}

}  // namespace
}  // namespace api_test
