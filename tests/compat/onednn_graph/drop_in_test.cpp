// Clients of oneDNN Graph, compiled with its headers and linked with it (tests/clients/onednn_graph), run unchanged and with
// the drop-in preloaded: docs/compat.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/files.h"

namespace lamina::testing {
namespace {

#ifdef LAMINA_ONEDNN_GRAPH

struct Outcome {
  std::string text;
  int exit_code = -1;
};

// Clients report crashes themselves; an address sanitizer would intercept the signals.
const std::string kCrashes = "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_abort=0";

Outcome run(const std::string& command) {
  Outcome result;
  FILE* const pipe = popen(("export ASAN_OPTIONS=" + kCrashes + "; " + command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer;
  while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe) != nullptr) result.text += buffer.data();
  result.exit_code = pclose(pipe);
  return result;
}

std::string client(const std::string& name) { return std::string(LAMINA_ONEDNN_CLIENTS) + "/onednn_client_" + name; }

// An address sanitizer checks that it is loaded first; this option disables the check.
std::string in_front(const std::string& command) {
  return "env ASAN_OPTIONS=" + kCrashes + ":verify_asan_link_order=0:detect_leaks=0 LD_PRELOAD=" LAMINA_ONEDNN_GRAPH " " +
         command;
}

// Counts lamina's verbose lines, one per execution: they prove that lamina did the work.
int executions_of_lamina(const std::string& text) {
  static const std::regex line("lamina,exec,");
  return static_cast<int>(std::distance(std::sregex_iterator(text.begin(), text.end(), line), std::sregex_iterator()));
}

// Returns the rest of each line, by the name at its start.
std::map<std::string, std::string> lines_of(const std::string& text) {
  std::map<std::string, std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) lines[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return lines;
}

class DropInFront : public ::testing::TestWithParam<const char*> {};

TEST_P(DropInFront, GivesAClientTheNumbersThatItExpects) {
  const Outcome original = run(client(GetParam()));
  EXPECT_EQ(original.exit_code, 0) << original.text;
  const Outcome replaced = run(in_front("LAMINA_VERBOSE=1 " + client(GetParam())));
  EXPECT_EQ(replaced.exit_code, 0) << replaced.text;
  EXPECT_GT(executions_of_lamina(replaced.text), 0) << "lamina ran nothing:\n" << replaced.text;
}

INSTANTIATE_TEST_SUITE_P(Clients, DropInFront,
                         ::testing::Values("layer_norm", "attention", "int8_matmul", "models", "beside_primitives", "caches"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(DropIn, IsUsedByLinkingItFirst) {
  const Outcome linked = run("LAMINA_VERBOSE=1 " + client("linked_first"));
  EXPECT_EQ(linked.exit_code, 0) << linked.text;
  EXPECT_GT(executions_of_lamina(linked.text), 0) << linked.text;
}

TEST(DropIn, HeedsOneDnnsVariables) {
  const std::string folder = ::testing::TempDir() + "onednn_graph_dumps";
  const Outcome told =
      run("rm -rf " + folder + " && mkdir " + folder + " && cd " + folder + " && " +
          in_front("ONEDNN_VERBOSE=1 ONEDNN_GRAPH_DUMP=graph " + client("layer_norm")) + " && ls && rm -r " + folder);
  EXPECT_EQ(told.exit_code, 0) << told.text;
  EXPECT_GT(executions_of_lamina(told.text), 0) << told.text;
  EXPECT_TRUE(std::regex_search(told.text, std::regex("\ngraph-[0-9]+\\.json\n"))) << told.text;
  const Outcome silent = run(in_front("ONEDNN_VERBOSE=none " + client("layer_norm")));
  EXPECT_EQ(executions_of_lamina(silent.text), 0) << silent.text;
}

TEST(DropIn, TellsWhyACallIsRefused) {
  const std::regex line(R"re(lamina,error,dnnl_graph_add_op,invalid_graph_op,Clamp "op": [^\n]*min)re");
  const Outcome told = run("ONEDNN_VERBOSE=error " + in_front(client("statuses")));
  EXPECT_TRUE(std::regex_search(told.text, line)) << told.text;
  const Outcome silent = run(in_front(client("statuses")));
  EXPECT_EQ(silent.text.find("lamina,error"), std::string::npos);
}

TEST(DropIn, MakesEnginesAndStreamsWhereThereIsNoLibrary) {
  const Outcome alone = run("LAMINA_VERBOSE=1 " + client("without_library"));
  EXPECT_EQ(alone.exit_code, 0) << alone.text;
  EXPECT_GT(executions_of_lamina(alone.text), 0) << alone.text;
}

TEST(DropIn, HasEveryCallThatNewerVersionsAdded) {
  const Outcome newer = run(client("newer_calls"));
  EXPECT_EQ(newer.exit_code, 0) << newer.text;
}

// ---- dumps of graphs, run as drivers run them ----

// Returns the sums in a line of the dumps client, by tensor: three numbers, the last one the sum of absolute values.
std::map<std::string, std::array<double, 3>> sums_of(const std::string& line) {
  static const std::regex entry(R"(\| (\d+): (\S+) (\S+) (\S+))");
  std::map<std::string, std::array<double, 3>> sums;
  for (std::sregex_iterator found(line.begin(), line.end(), entry), end; found != end; ++found)
    sums[(*found)[1]] = {std::stod((*found)[2]), std::stod((*found)[3]), std::stod((*found)[4])};
  return sums;
}

// A dump that divides by 0 does so in both libraries.
bool is_alike(double ours, double theirs, double error) {
  if (!std::isfinite(ours) || !std::isfinite(theirs)) return std::isnan(ours) ? std::isnan(theirs) : ours == theirs;
  return std::abs(ours - theirs) <= error;
}

void expect_alike(const std::string& dump, const std::string& original, const std::string& replaced) {
  const auto theirs = sums_of(original), ours = sums_of(replaced);
  for (const auto& [tensor, sums] : ours) {
    const auto expected = theirs.find(tensor);
    if (expected == theirs.end()) continue;  // the value is inside a partition of one of the libraries
    for (size_t i = 0; i < sums.size(); ++i)
      EXPECT_TRUE(is_alike(sums[i], expected->second[i], 1e-2 * expected->second[2] + 1e-6))
          << dump << ", tensor " << tensor << ": " << sums[i] << ", by oneDNN " << expected->second[i];
  }
}

// For each operation and pattern of the drivers: one partition, as in oneDNN, and the same numbers if oneDNN runs the dump.
TEST(DropIn, RunsDumpsAsDriversDo) {
  if (!std::filesystem::exists(kOneDnnDumps)) GTEST_SKIP() << "the folder shared/graphs/onednn is not beside the project";
  std::vector<std::filesystem::path> dumps;
  for (const auto& file : std::filesystem::recursive_directory_iterator(kOneDnnDumps))
    if (file.path().extension() == ".json") dumps.push_back(file.path());
  std::string files;
  for (const auto& dump : dumps) files += " " + dump.string();
  const auto each = [&](const std::string& command) {  // a separate process: a crash loses only one line
    return run("for dump in" + files + "; do " + command + " 300000 $dump 2>/dev/null; done");
  };
  const Outcome original = each(client("dumps")), replaced = each(in_front(client("dumps")));
  const auto theirs = lines_of(original.text), ours = lines_of(replaced.text);
  for (const auto& dump : dumps) EXPECT_EQ(ours.count(dump.filename()), 1U) << dump << " crashes";
  int executed = 0, compared = 0;
  for (const auto& [dump, line] : ours) {
    if (line == "left out") continue;
    EXPECT_TRUE(line.starts_with("ok partitions 1 ")) << dump << ": " << line;
    ++executed;
    const auto expected = theirs.find(dump);
    if (expected == theirs.end() || !expected->second.starts_with("ok")) continue;
    expect_alike(dump, expected->second, line);
    ++compared;
  }
  EXPECT_GT(executed, 40);
  EXPECT_GT(compared, 40);
}

// ---- single calls compared ----

// Returns the calls in docs/compat.md: the first column of its tables, in backquotes.
std::set<std::string> documented_calls() {
  static const std::regex row("\n\\| `([^`]+)` \\|");
  const std::string text = text_of(kTree / "docs" / "compat.md");
  std::set<std::string> calls;
  for (std::sregex_iterator found(text.begin(), text.end(), row), end; found != end; ++found) calls.insert((*found)[1]);
  return calls;
}

TEST(DropIn, AnswersEveryCallAsOneDnnDoesOrAsDocumented) {
  const Outcome original = run("(" + client("statuses") + " 2>/dev/null)"),
                replaced = run("(" + in_front(client("statuses")) + " 2>/dev/null)");
  const auto theirs = lines_of(original.text), ours = lines_of(replaced.text);
  ASSERT_GT(theirs.size(), 400U);
  if (theirs.at("version") != "3.2")
    GTEST_SKIP() << "docs/compat.md compares with oneDNN 3.2, here is " << theirs.at("version");
  std::set<std::string> documented = documented_calls();
  int equal = 0;
  for (const auto& [call, answer] : ours) {
    EXPECT_NE(answer, "crash") << call;
    const auto expected = theirs.find(call);
    ASSERT_NE(expected, theirs.end()) << call;
    if (expected->second == "crash") continue;  // oneDNN crashes there; any status is better
    if (expected->second == answer) {
      EXPECT_EQ(documented.count(call), 0U) << call << " is told as a difference, and is none: " << answer;
      ++equal;
    } else {
      EXPECT_EQ(documented.erase(call), 1U) << call << "\n  oneDNN  " << expected->second << "\n  drop-in " << answer;
    }
  }
  EXPECT_THAT(documented, ::testing::IsEmpty()) << "documented, and not called";
  EXPECT_EQ(ours.size(), theirs.size());
  RecordProperty("equal", equal);
}

// ---- what it exports ----

std::set<std::string> graph_symbols_of(const std::string& library) {
  const Outcome listed = run("nm -D --defined-only " + library);
  static const std::regex name(" (dnnl_graph_[a-z0-9_]+)\n");
  std::set<std::string> names;
  for (std::sregex_iterator found(listed.text.begin(), listed.text.end(), name), end; found != end; ++found)
    names.insert((*found)[1]);
  return names;
}

// A missing call would reach the real library with an object that belongs to the drop-in.
TEST(DropIn, DefinesEveryGraphCallOfTheRealLibrary) {
  const std::set<std::string> theirs = graph_symbols_of(LAMINA_ONEDNN_LIBRARY), ours = graph_symbols_of(LAMINA_ONEDNN_GRAPH);
  EXPECT_GT(theirs.size(), 40U);
  for (const std::string& name : theirs) {
    if (name.find("_interop_") == std::string::npos) {
      EXPECT_EQ(ours.count(name), 1U) << name;
    }
  }
}

#else

TEST(DropIn, IsTested) { GTEST_SKIP() << "LAMINA_ONEDNN is off: the drop-in stands on oneDNN's headers and is not built"; }

#endif

}  // namespace
}  // namespace lamina::testing
