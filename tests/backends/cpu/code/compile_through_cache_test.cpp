// Kernels in the on-disk cache of machine code, which a process opens once. A second process finds the entries of the first,
// and an entry that does not contain code for its kernel is a miss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "backends/cpu/support/cpu_check.h"
#include "compiler/compile.h"
#include "support/code_cache_folder.h"
#include "support/graph_builder.h"
#include "support/own_process.h"

namespace lamina::testing {
namespace {

using ::testing::HasSubstr;
using CompiledCodeCache = CodeCacheFolder;

Graph add_and_norm() {
  GraphBuilder g;
  const auto x = g.op(OpKind::Add, {g.input(DataType::f32, {5, 37}), g.input(DataType::f32, {5, 37})});
  g.multi(OpKind::LayerNorm, {x, g.input(DataType::f32, {37}), g.input(DataType::f32, {37})}, {{"keep_stats", false}},
          {DataType::f32});
  return g.finish();
}

TEST(CompileThroughCodeCache, DISABLED_Inside) {
  const Graph graph = add_and_norm();
  const auto partitions = partition_graph(graph, PartitionPolicy::fusion, CpuCapabilities{});
  const PortTensors ports = port_tensors(partitions.at(0));
  const Subgraph subgraph = extract_subgraph(partitions[0], ports.inputs, ports.outputs);
  const bool found = compiler::compile_subgraph(subgraph, cpu_backend())->info().from_cache;
  EXPECT_STREQ(std::getenv("EXPECTED_CODE"), found ? "stored" : "fresh");
  expect_cpu_matches_reference(graph);
}

void expect_compile(const fs::path& folder, const char* expected, std::map<std::string, std::string> environment = {}) {
  environment.insert({{"LAMINA_CACHE_DIR", folder}, {"EXPECTED_CODE", expected}});
  expect_passes_in_own_process("CompileThroughCodeCache.DISABLED_Inside", environment);
}

TEST_F(CompiledCodeCache, ASecondProcessFindsTheCode) {
  expect_compile(folder_, "fresh");
  EXPECT_EQ(file_count(), 1u);
  expect_compile(folder_, "stored");
}

TEST_F(CompiledCodeCache, AnotherInstructionSetIsAnotherEntry) {
  expect_compile(folder_, "fresh", {{"LAMINA_MAX_ISA", ""}});
  expect_compile(folder_, "fresh", {{"LAMINA_MAX_ISA", "generic"}});
  EXPECT_EQ(file_count(), 2u);
}

TEST_F(CompiledCodeCache, AnEntryWithoutCodeForItsKernelIsAMiss) {
  expect_compile(folder_, "fresh");
  const fs::path file = only_file();
  const std::string whole = read_file(file);
  uint64_t key_bytes = 0;
  std::memcpy(&key_bytes, whole.data() + 8, sizeof key_bytes);
  const std::string key = whole.substr(56, key_bytes);
  EXPECT_THAT(key, HasSubstr("LLVM 19"));
  EXPECT_THAT(key, HasSubstr("kernel add_layer_norm_f32"));
  ASSERT_EQ(file, entry(key));
  const std::string object = whole.substr(56 + key_bytes);
  std::string renamed = object;
  renamed.replace(renamed.find("lamina_add_layer_norm"), 6, "animal");
  for (const std::string& other : {std::string("no object file at all"), object.substr(0, object.size() / 2), renamed}) {
    CodeCache(folder_).store(key, other);  // with a correct digest
    expect_compile(folder_, "fresh");
    expect_compile(folder_, "stored");  // the entry was written again
  }
}

TEST_F(CompiledCodeCache, AFolderThatCannotBeUsedCostsNothingButTheCache) {
  write_file(folder_ / "file", "a file");
  expect_compile(folder_ / "file", "fresh");
  EXPECT_EQ(read_file(folder_ / "file"), "a file");
}

}  // namespace
}  // namespace lamina::testing
