// No exception leaves a C function. The test reads the definition of each function that the public headers declare: its body is
// a call of guarded(), which turns exceptions into statuses, or one of a few statements that cannot throw.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "support/files.h"

namespace api_test {
namespace {

namespace fs = std::filesystem;
using lamina::testing::kTree;
using lamina::testing::text_of;

// Returns the text of all files below a folder with this extension.
std::string text_of_all(const fs::path& folder, const std::string& extension) {
  std::string text;
  for (const auto& file : fs::recursive_directory_iterator(folder)) {
    if (file.path().extension() == extension) text += text_of(file.path());
  }
  return text;
}

// Returns the names of functions with `marker` before them.
std::set<std::string> functions_declared(const std::string& headers, const std::string& marker) {
  std::set<std::string> names;
  const std::regex declaration("\n" + marker + "[^;(]*\\b(\\w+)\\(");
  for (std::sregex_iterator found(headers.begin(), headers.end(), declaration), end; found != end; ++found)
    names.insert((*found)[1]);
  return names;
}

// Returns the text between the braces of the definition; "" if there is none.
std::string body_of(const std::string& sources, const std::string& name) {
  std::smatch found;
  const std::regex start("\n[a-z][^\n;(]*\\b" + name + "\\([^;{]*\\{");
  if (!std::regex_search(sources, found, start)) return "";
  const auto begin = static_cast<size_t>(found.position() + found.length());
  return sources.substr(begin, sources.find("\n}\n", begin) + 1 - begin);
}

bool cannot_throw(const std::string& name, const std::string& body) {
  static const std::set<std::string> plain = {"lamina_last_error", "lamina_set_last_error", "lamina_version"};
  static const std::regex guarded("\n  (return |size_t count = 0;\n  )guarded\\([^]*"),
      destroys("\n  delete \\w+;\n  return lamina_success;\n"), hands_on("\n  return lamina_\\w+\\([\\w,\\s]*\\);\n");
  return plain.contains(name) || std::regex_match(body, guarded) || std::regex_match(body, destroys) ||
         std::regex_match(body, hands_on);
}

void expect_no_exception_passes(const std::set<std::string>& names, const std::string& sources) {
  for (const std::string& name : names) {
    const std::string body = body_of(sources, name);
    EXPECT_NE(body, "") << name << " is not defined";
    EXPECT_TRUE(cannot_throw(name, body)) << name << ":" << body;
  }
}

TEST(Boundary, EveryFunctionOfTheInterfaceIsGuarded) {
  const auto names = functions_declared(text_of_all(kTree / "include/graph", ".h"), "LAMINA_API");
  ASSERT_GT(names.size(), 70U);
  expect_no_exception_passes(names, text_of_all(kTree / "src/api", ".cpp"));
}

TEST(Boundary, EveryFunctionOfTheInfiniopFrontEndIsGuarded) {
  const fs::path folder = kTree / "compat/infiniop";
  const auto names = functions_declared(text_of_all(folder / "include", ".h"), "INFINI_API");
  ASSERT_GT(names.size(), 10U);
  expect_no_exception_passes(names, text_of_all(folder / "src", ".cpp"));
}

TEST(Boundary, AFunctionThatIsNotGuardedIsFound) {
  EXPECT_FALSE(cannot_throw("f", "\n  return count();\n"));
  EXPECT_FALSE(cannot_throw("f", "\n  check();\n  return guarded([&] {});\n"));
  EXPECT_TRUE(cannot_throw("f", "\n  return guarded([&] {});\n"));
}

}  // namespace
}  // namespace api_test
