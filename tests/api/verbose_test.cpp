// The output that LAMINA_VERBOSE and LAMINA_GRAPH_DUMP enable. Both are read once per process, so another process of this
// program runs with them, in a separate folder.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "api_fixture.h"
#include "support/emulator.h"

namespace api_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class Verbose : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "lamina_verbose_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Returns the output of a run of this program that builds and executes a norm as small ops.
  std::string run_with(const std::string& environment) const {
    const std::string program = fs::read_symlink("/proc/self/exe").string();
    // This process may run one shard; the child runs exactly one test.
    const std::string command = "cd '" + folder_.string() + "' && env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX " +
                                environment + " " LAMINA_EMULATOR "'" + program +
                                "' --gtest_filter=Execute.ANormWrittenOutRunsAsOneOp 2>&1";
    std::string text;
    FILE* pipe = popen(command.c_str(), "r");
    char block[4096];
    while (pipe != nullptr && std::fgets(block, sizeof block, pipe) != nullptr) text += block;
    EXPECT_EQ(pipe == nullptr ? -1 : pclose(pipe), 0) << text;
    return text;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  fs::path folder_;
};

TEST_F(Verbose, TellsNothingUnasked) {
  EXPECT_THAT(run_with(""), Not(HasSubstr("lamina,")));
  EXPECT_TRUE(files().empty());
}

TEST_F(Verbose, LevelOneTellsOfCompilesAndExecutions) {
  const std::string text = run_with("LAMINA_VERBOSE=1");
  EXPECT_THAT(text, HasSubstr("lamina,compile,cpu,"));
  EXPECT_THAT(text, HasSubstr("lamina,exec,cpu,"));
  EXPECT_THAT(text, Not(HasSubstr("lamina,pass,")));
}

TEST_F(Verbose, TellsOfACodeCacheThatIsNotAsTheEnvironmentWants) {
  EXPECT_THAT(run_with("LAMINA_VERBOSE=1 LAMINA_CACHE_DIR=here"),
              HasSubstr("lamina,code_cache,off,LAMINA_CACHE_DIR \"here\" is not an absolute path\nlamina,compile,"));
  EXPECT_THAT(run_with("LAMINA_VERBOSE=1 LAMINA_CACHE_MB=99999999999999 LAMINA_CACHE_DIR=" + folder_.string()),
              HasSubstr("lamina,code_cache,on,LAMINA_CACHE_MB is \"99999999999999\", allowed is 1 to 8796093022207"));
  EXPECT_THAT(run_with("LAMINA_CACHE_DIR=here"), Not(HasSubstr("lamina,")));
}

TEST_F(Verbose, LevelTwoTellsOfPasses) {
  const std::string text = run_with("LAMINA_VERBOSE=2");
  EXPECT_THAT(text, HasSubstr("lamina,pass,canonicalize,kept,7 ops,"));
  EXPECT_THAT(text, HasSubstr("lamina,pass,raise_decomposed,changed,1 ops,"));
}

TEST_F(Verbose, DumpsTheGraphAfterEachPassThatChangedIt) {
  run_with("LAMINA_GRAPH_DUMP=pass");
  EXPECT_THAT(files(), ::testing::ElementsAre(::testing::MatchesRegex("graph-[0-9]+-1-raise_decomposed.json")));
}

TEST_F(Verbose, TokensCombine) {
  run_with("LAMINA_GRAPH_DUMP=graph,pass,subgraph");
  EXPECT_EQ(files().size(), 3u);
}

TEST_F(Verbose, AnUnknownTokenClearsThoseBeforeIt) {
  run_with("LAMINA_GRAPH_DUMP=graph,nonsense,subgraph");
  EXPECT_EQ(files().size(), 1u);
}

}  // namespace
}  // namespace api_test
