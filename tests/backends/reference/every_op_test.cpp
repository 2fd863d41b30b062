// The reference implements every op, and its tests check numbers of every op.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "backends/reference/run.h"
#include "interface/op_schema.h"
#include "support/files.h"

namespace lamina::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kTests = kTree / "tests";
const fs::path kOpset = kShared / "spec" / "opset.json";

// Returns every identifier after `OpKind::` in a folder's sources that contain `with`.
std::set<std::string> kinds_named_in(const fs::path& folder, const std::string& with = "") {
  std::set<std::string> names;
  const std::regex named("OpKind::(\\w+)");
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string text = text_of(entry.path());
    if (text.find(with) == std::string::npos) continue;
    for (std::sregex_iterator match(text.begin(), text.end(), named), end; match != end; ++match) names.insert((*match)[1]);
  }
  return names;
}

TEST(EveryOp, HasASchemaAndAReferenceLoop) {
  for (const OpKind kind : all_op_kinds()) {
    EXPECT_EQ(schema_of(kind).kind, kind) << name_of(kind);
    EXPECT_TRUE(reference::has_loop(kind)) << name_of(kind);
  }
}

TEST(EveryOp, OfTheOpsetHasASchemaAndAReferenceLoop) {
  if (!fs::exists(kOpset)) GTEST_SKIP() << "the op set's table is not next to the checkout";
  const nlohmann::json table = nlohmann::json::parse(text_of(kOpset));
  EXPECT_FALSE(table["ops"].empty());
  for (const auto& entry : table["ops"]) {
    const auto name = entry["kind"].get<std::string>();
    const auto kind = op_kind_from_name(name);
    ASSERT_TRUE(kind.has_value()) << name;
    EXPECT_EQ(name_of(schema_of(*kind).kind), name);
    EXPECT_TRUE(reference::has_loop(*kind)) << name;
  }
}

TEST(EveryOp, HasATestOfItsNumbers) {
  const std::set<std::string> tested = kinds_named_in(kTests / "backends" / "reference");
  for (const OpKind kind : all_op_kinds())
    EXPECT_TRUE(tested.contains(std::string(name_of(kind))))
        << "no file of tests/backends/reference names OpKind::" << name_of(kind);
}

TEST(EveryOp, ThatIsAGradientIsHeldAgainstFiniteDifferences) {
  const std::set<std::string> tested = kinds_named_in(kTests / "backends" / "reference", "backends/reference/gradient_check.h");
  for (const OpKind kind : all_op_kinds()) {
    const std::string name(name_of(kind));
    const bool is_gradient = std::regex_search(name, std::regex("Backward|Backprop|Grad"));
    EXPECT_TRUE(!is_gradient || tested.contains(name)) << "no test with differences names OpKind::" << name;
  }
}

TEST(EveryOp, NamedInATestExists) {
  for (const char* folder : {"interface", "backends", "passes"})
    for (const std::string& name : kinds_named_in(kTests / folder)) EXPECT_TRUE(op_kind_from_name(name)) << name;
}

}  // namespace
}  // namespace lamina::testing
