// Edge cases of the driver: unreadable and unwritable paths, special files, closed output, signals, terminals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "driver_process.h"
#include "lamina/bar.h"
#include "lamina/escaped.h"

namespace lamina::driver::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string example() { return std::string(LAMINA_SOURCE_DIR) + "/examples/graphs/layer_norm.json"; }

// Creates the file that `name` describes and returns its path.
std::string make_awkward(const Workspace& w, const std::string& name) {
  if (name == "long") return w.path(std::string(300, 'x'));
  if (name == "inside_a_file") return w.write("file", "text") + "/below";
  if (name == "directory") fs::create_directory(w.path("directory"));
  if (name == "loop") fs::create_symlink("loop", w.path("loop"));
  if (name == "dangling") fs::create_symlink("nowhere", w.path("dangling"));
  if (name == "full") return "/dev/full";
  return w.path(name);
}

// Links are not followed: a link may point to itself.
size_t files_in(const Workspace& w) {
  size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(w.path("")))
    count += fs::is_regular_file(entry.symlink_status()) ? 1 : 0;
  return count;
}

void expect_one_sentence(const Outcome& outcome, const std::string& command) {
  EXPECT_EQ(outcome.code, 2) << command << '\n' << outcome.out << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << command << '\n' << outcome.err;
}

class AwkwardPaths : public ::testing::TestWithParam<const char*> {};

TEST_P(AwkwardPaths, AreRefusedAsInput) {
  if (GetParam() == std::string("full")) GTEST_SKIP() << "/dev/full is read without end";
  const Workspace w(std::string("in_") + GetParam());
  const std::string path = make_awkward(w, GetParam());
  for (const std::string& arguments : std::vector<std::string>{
           "replay --engine reference " + path, "explain " + path, "show -o " + w.path("x.dot") + " " + path, "tune " + path,
           "show -o " + w.path("x.dot") + " --report " + path + " " + example(),
           "replay --engine reference --in " + path + " " + example()}) {
    if (GetParam() == std::string("directory") && arguments.find("--in") != std::string::npos) continue;
    expect_one_sentence(w.run(arguments), arguments);
    EXPECT_FALSE(fs::exists(w.path("x.dot"))) << arguments;
  }
}

TEST_P(AwkwardPaths, AreRefusedAsOutput) {
  const Workspace w(std::string("out_") + GetParam());
  const std::string path = make_awkward(w, GetParam());
  const size_t before = files_in(w);
  const std::string replay = "replay --engine reference ";
  for (const std::string& arguments : std::vector<std::string>{
           replay + "--report " + path + " " + example(),
           replay + "--out " + w.path("out") + " --report " + path + " " + example(),
           replay + "--out " + path + "/below " + example(), "show --no-compile -o " + path + "/x.dot " + example()}) {
    const bool is_folder = arguments.find("--report") == std::string::npos;
    if (GetParam() == std::string("directory") && is_folder) continue;
    expect_one_sentence(w.run(arguments), arguments);
    EXPECT_EQ(files_in(w), before + 2) << arguments << ": only the two captured streams are new";
    EXPECT_FALSE(fs::exists(w.path("out"))) << arguments;
  }
}

INSTANTIATE_TEST_SUITE_P(Driver, AwkwardPaths,
                         ::testing::Values("long", "inside_a_file", "directory", "loop", "dangling", "full"),
                         [](const auto& path) { return std::string(path.param); });

TEST(SpecialFiles, AreWrittenAndStay) {
  const Workspace w("special");
  const Outcome to_stdout = w.run("replay --engine reference --report /dev/stdout " + example());
  EXPECT_EQ(to_stdout.code, 0) << to_stdout.err;
  EXPECT_THAT(to_stdout.out, AllOf(HasSubstr("\"engine\": \"reference\""), HasSubstr("verdict")));
  EXPECT_TRUE(fs::is_symlink("/dev/stdout"));
  EXPECT_EQ(w.run("replay --engine reference --report /dev/null " + example()).code, 0);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(SpecialFiles, ALinkToAFileStaysALink) {
  const Workspace w("link");
  w.write("report.json", "old");
  fs::create_symlink("report.json", w.path("link"));
  EXPECT_EQ(w.run("replay --engine reference --report " + w.path("link") + " " + example()).code, 0);
  EXPECT_TRUE(fs::is_symlink(w.path("link")));
  EXPECT_THAT(read_text(w.path("report.json")), HasSubstr("\"engine\": \"reference\""));
}

TEST(Output, ThatCannotBeWrittenIsAnError) {
  const Workspace w("full");
  for (const std::string& arguments :
       std::vector<std::string>{"ops", "--version", "--help", "explain FILE", "replay --engine reference FILE",
                                "show --no-compile -o " + w.path("x.dot") + " FILE"}) {
    std::string command = arguments;
    if (const size_t at = command.find("FILE"); at != std::string::npos) command.replace(at, 4, example());
    const int status = std::system((std::string(LAMINA_EMULATOR LAMINA_DRIVER) + " " + command + " > /dev/full 2>&1").c_str());
    EXPECT_EQ(WEXITSTATUS(status), 2) << command;
  }
}

TEST(Output, OfHelpAndOpsHasEightyColumns) {
  const Workspace w("columns");
  for (const std::string command : {"--help", "replay --help", "explain --help", "show --help", "tune --help", "profile --help",
                                    "export --help", "ops", "ops BatchNormForwardTraining", "ops Convolution"}) {
    const Outcome outcome = w.run(command);
    EXPECT_EQ(outcome.code, 0) << command;
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << command << ": " << line;
  }
}

TEST(Output, BeyondTheLimitOfFileSizesIsAnError) {
  const Workspace w("limit");
  const std::string script = w.write("limited", "ulimit -f 1\nexec " LAMINA_EMULATOR LAMINA_DRIVER
                                                " replay --engine reference --set-shape 0:64x32 --out " +
                                                    w.path("out") + " " + example() + "\n");
  const int status = std::system(("sh " + script + " >" + w.path("o") + " 2>" + w.path("e")).c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2) << read_text(w.path("e"));
  EXPECT_FALSE(fs::exists(w.path("out")));
}

TEST(Numbers, OutOfRangeAreBadUsage) {
  const Workspace w("numbers");
  for (const std::string option :
       {"replay --repeat ", "replay --threads ", "replay --seed ", "tune --budget ", "tune --threads "})
    for (const std::string value : {"nan", "inf", "1e999", "-1", "x", "''"})
      EXPECT_EQ(w.run(option + value + " " + example()).code, 2) << option << value;
}

TEST(Numbers, AnImpossibleCountOfThreadsIsAnError) {
  const Workspace w("threads");
  const int status = std::system(("OMP_NUM_THREADS=100000 " LAMINA_EMULATOR LAMINA_DRIVER " replay --engine reference " +
                                  example() + " >/dev/null 2>" + w.path("e"))
                                     .c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_THAT(read_text(w.path("e")), HasSubstr("OMP_NUM_THREADS is 100000"));
}

TEST(Names, FromAFileCannotReachTheTerminal) {
  const Workspace w("escape");
  std::string text = read_text(example());
  const size_t at = text.find("\"name\": \"");
  ASSERT_NE(at, std::string::npos);
  text.insert(at + 9, "\\u001b[31m");
  const std::string file = w.write("red.json", text);
  for (const std::string& command : std::vector<std::string>{"explain ", "explain -v "}) {
    const Outcome outcome = w.run(command + file);
    EXPECT_THAT(outcome.out + outcome.err, AllOf(HasSubstr("\\x1b[31m"), Not(HasSubstr("\x1b")))) << command;
  }
}

TEST(Names, ALongTokenIsCutInTheMessage) {
  const Workspace w("token");
  const Outcome outcome = w.run("explain " + w.write("long.json", "{\"graph\": -" + std::string(100'000, 'x') + "}"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_LT(outcome.err.size(), 600U);
  EXPECT_LT(w.run("explain " + w.write("digits.json", "{\"graph\": 1" + std::string(100'000, '0') + "}")).err.size(), 600U);
}

TEST(Progress, FitsTheTerminal) {
  for (size_t width = 1; width < 120; ++width)
    EXPECT_LE(
        fitted_line("[1/2] ", std::string(60, 'f'), "compiling " + std::string(60, 'k') + " [##########----------]", width)
            .size(),
        width);
  EXPECT_EQ(fitted_line("[1/2] ", "folder/name.json", "timing", 24), "[1/2] ...me.json: timing");
}

TEST(Engine, IsWhatTheFileSaysForEverySubcommandAndIsShown) {
  const Workspace w("engine");
  std::string text = read_text(example());
  const size_t at = text.find("\"cpu\"");
  ASSERT_NE(at, std::string::npos);
  const std::string file = w.write("gpu.json", text.replace(at, 5, "\"gpu\""));
  for (const std::string& command :
       std::vector<std::string>{"replay ", "explain ", "show --no-compile -o " + w.path("x.dot") + " ", "tune --budget 1 "}) {
    EXPECT_THAT(w.run(command + file).err, HasSubstr("gpu.json: engine_kind is gpu, it runs on ")) << command;
    EXPECT_THAT(w.run(command + "--engine cpu " + file).err, Not(HasSubstr("engine_kind"))) << command;
  }
  EXPECT_THAT(w.run("replay --engine cpu " + file).out, HasSubstr("graph, on cpu\n"));
}

}  // namespace
}  // namespace lamina::driver::testing
