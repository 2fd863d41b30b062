// Names of generated functions for perf and gdb, registered only on request.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "backends/cpu/support/cpu_check.h"
#include "compiler/compile.h"
#include "support/graph_builder.h"
#include "support/own_process.h"

namespace lamina::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::vector<std::string> compile_a_norm() {
  GraphBuilder g;
  g.multi(OpKind::LayerNorm, {g.input(DataType::f32, {5, 37})}, {{"use_affine", false}, {"keep_stats", false}},
          {DataType::f32});
  const Graph graph = g.finish();
  const auto partitions = partition_graph(graph, PartitionPolicy::fusion, CpuCapabilities{});
  const PortTensors ports = port_tensors(partitions.at(0));
  const Subgraph subgraph = extract_subgraph(partitions[0], ports.inputs, ports.outputs);
  return compiler::compile_subgraph(subgraph, cpu_backend())->info().kernels;
}

std::string own_perf_map() { return join("/tmp/perf-", getpid(), ".map"); }

// The head of the list that gdb reads.
struct GdbDescriptor {
  uint32_t version, action;
  void *relevant_entry, *first_entry;
};
bool gdb_knows_code() {
  const auto* const descriptor = static_cast<const GdbDescriptor*>(dlsym(RTLD_DEFAULT, "__jit_debug_descriptor"));
  return descriptor != nullptr && descriptor->first_entry != nullptr;
}

TEST(JitSymbols, NamesSayTheOpsAndTheType) {
  EXPECT_THAT(compile_a_norm(), ::testing::ElementsAre(MatchesRegex("lamina_layer_norm_f32_[0-9a-f]+")));
}

TEST(JitSymbols, DISABLED_Unasked) {
  compile_a_norm();
  EXPECT_FALSE(std::filesystem::exists(own_perf_map()));
  EXPECT_FALSE(gdb_knows_code());
}
TEST(JitSymbols, NobodyIsToldUnasked) {
  expect_passes_in_own_process("JitSymbols.DISABLED_Unasked", {{"LAMINA_JIT_SYMBOLS", ""}});
}

TEST(JitSymbols, DISABLED_PerfMap) {
  const std::vector<std::string> kernels = compile_a_norm();
  std::ifstream file(own_perf_map());
  uint64_t address = 0, size = 0;
  std::string name;
  file >> std::hex >> address >> size >> name;
  std::filesystem::remove(own_perf_map());
  EXPECT_EQ(name, kernels.at(0));
  EXPECT_NE(address, 0u);
  EXPECT_GT(size, 100u);
  EXPECT_LT(size, 16u << 10);
  // The function is in memory that is executable and not writable.
  std::ifstream maps("/proc/self/maps");
  std::string found;
  for (std::string line; std::getline(maps, line);) {
    uint64_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream(line) >> std::hex >> begin >> dash >> end;
    if (begin <= address && address + size <= end) found = line;
  }
  EXPECT_THAT(found, HasSubstr(" r-xp "));
}
TEST(JitSymbols, PerfFindsNamesInItsMap) {
  expect_passes_in_own_process("JitSymbols.DISABLED_PerfMap", {{"LAMINA_JIT_SYMBOLS", "perf"}});
}

TEST(JitSymbols, DISABLED_Gdb) {
  compile_a_norm();
  EXPECT_TRUE(gdb_knows_code());
  EXPECT_FALSE(std::filesystem::exists(own_perf_map()));
}
TEST(JitSymbols, GdbIsToldOnRequest) {
  expect_passes_in_own_process("JitSymbols.DISABLED_Gdb", {{"LAMINA_JIT_SYMBOLS", "gdb"}});
}

TEST(JitSymbols, DISABLED_Jitdump) {
  try {
    compile_a_norm();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("this LLVM was built without it"));
    return;
  }
  size_t dumps = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(std::getenv("JITDUMPDIR")))
    dumps += file.path().extension() == ".dump";
  EXPECT_EQ(dumps, 1u);
}
TEST(JitSymbols, AJitdumpIsWrittenOnRequest) {
  std::string folder = (std::filesystem::temp_directory_path() / "lamina-jitdump-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  expect_passes_in_own_process("JitSymbols.DISABLED_Jitdump", {{"LAMINA_JIT_SYMBOLS", "jitdump"}, {"JITDUMPDIR", folder}});
  std::filesystem::remove_all(folder);
}

TEST(JitSymbols, DISABLED_Unknown) {
  try {
    compile_a_norm();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "LAMINA_JIT_SYMBOLS has \"perv\", allowed is a list of perf, jitdump and gdb");
  }
}
TEST(JitSymbols, AnUnknownReceiverIsRefused) {
  expect_passes_in_own_process("JitSymbols.DISABLED_Unknown", {{"LAMINA_JIT_SYMBOLS", "gdb,perv"}});
}

// The test needs its own process: oneDNN's generator uses writable code pages once a product has run.
TEST(Jit, DISABLED_Maps) {
  compile_a_norm();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) EXPECT_EQ(line.find(" rwx"), std::string::npos) << line;
}
TEST(Jit, NoMemoryIsWritableAndExecutable) { expect_passes_in_own_process("Jit.DISABLED_Maps", {}); }

}  // namespace
}  // namespace lamina::testing
