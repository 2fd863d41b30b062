// Runs one test of this program in a child process, for settings that are read once per process: environment variables, the
// JIT.
//
//   TEST(Part, DISABLED_Inside) { ... }          // disabled: valid only in the child process
//   TEST(Part, WithTheVariableSet) { expect_passes_in_own_process("Part.DISABLED_Inside", {{"VARIABLE", "value"}}); }
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <string>

#include "support/emulator.h"

namespace lamina::testing {

inline std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

inline void expect_passes_in_own_process(const std::string& test, const std::map<std::string, std::string>& environment) {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  ASSERT_GT(length, 0);
  std::string command =
      "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX";  // this process may run one shard; the child runs exactly one test
  for (const auto& [name, value] : environment) command += " " + quoted(name + "=" + value);
  command += " " LAMINA_EMULATOR + quoted(std::string(path, static_cast<size_t>(length))) +
             " --gtest_also_run_disabled_tests --gtest_filter=" + quoted(test) + " 2>&1";
  FILE* const output = popen(command.c_str(), "r");
  ASSERT_NE(output, nullptr);
  std::string text;
  for (char buffer[4096]; const size_t count = fread(buffer, 1, sizeof buffer, output);) text.append(buffer, count);
  EXPECT_EQ(pclose(output), 0) << command << "\n" << text;
  EXPECT_NE(text.find("[  PASSED  ] 1 test"), std::string::npos) << command << "\n"
                                                                 << text;  // otherwise the name matches no test
}

}  // namespace lamina::testing
