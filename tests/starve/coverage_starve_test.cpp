// The sweeps cover every function of the C ABI.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "support/files.h"

namespace starve {
namespace {

namespace fs = std::filesystem;
using lamina::testing::kTree;
using lamina::testing::text_of;

// Functions that never allocate: they read or write a word, or release memory.
bool is_plain(const std::string& name) {
  static const std::regex plain(
      ".*_destroy|lamina_last_error|lamina_set_last_error|lamina_version|lamina_engine_get_count|lamina_engine_get_kind|"
      "lamina_stream_get_engine|.*_get_fpmath_mode|.*_set_fpmath_mode|lamina_graph_graph_is_finalized|.*_get_id|.*_get_kind|"
      "lamina_graph_partition_is_supported|.*_ports_num|lamina_graph_partition_get_engine_kind|lamina_graph_tensor_get_engine|"
      "lamina_layer_norm_desc_init_sized|lamina_graph_compiled_partition_execute_v2");  // _execute calls the last one
  return std::regex_match(name, plain);
}

TEST(StarvedFunctions, AreAllOfTheInterface) {
  std::string tests;
  for (const auto& file : fs::directory_iterator(kTree / "tests/starve")) tests += text_of(file.path());
  const std::regex declaration("LAMINA_API[^;(]*\\b(lamina_\\w+)\\s*\\(");
  std::set<std::string> names;
  for (const char* header : {"lamina.h", "text.h", "layer_norm.h", "opencl.h"}) {  // the tests have no CUDA driver
    const std::string text = text_of(kTree / "include/graph" / header);
    for (std::sregex_iterator found(text.begin(), text.end(), declaration), end; found != end; ++found)
      names.insert((*found)[1]);
  }
  ASSERT_GT(names.size(), 80u);
  for (const std::string& name : names)
    EXPECT_TRUE(is_plain(name) || tests.find(name + "(") != std::string::npos) << name << " is in no sweep";
}

}  // namespace
}  // namespace starve
