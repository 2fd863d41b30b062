// A fork acquires every lock of the library, which src/handles/locks.h lists. Any other lock could stay locked in the child.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

#include "support/files.h"

namespace lamina::testing {
namespace {

namespace fs = std::filesystem;

TEST(Locks, AreAllInOneFile) {
  static const std::regex lock(
      "\\b(std::((recursive_|timed_|recursive_timed_|shared_|shared_timed_)?mutex|once_flag|call_once|condition_variable\\w*|"
      "binary_semaphore|counting_semaphore|latch|barrier)\\b|pthread_(mutex|rwlock|spin|cond|once)_)");
  int files = 0;
  for (const char* const folder : {"src", "compat"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kTree / folder)) {
      const std::string ending = entry.path().extension().string();
      if (!entry.is_regular_file() || (ending != ".h" && ending != ".cpp" && ending != ".inl" && ending != ".hpp")) continue;
      ++files;
      if (entry.path().filename() == "locks.h") continue;
      std::ifstream file(entry.path());
      std::string line;
      for (int number = 1; std::getline(file, line); ++number)
        EXPECT_FALSE(std::regex_search(line, lock)) << entry.path().string() << ":" << number << ": " << line;
    }
  }
  EXPECT_GT(files, 100);
}

}  // namespace
}  // namespace lamina::testing
