// lamina in processes that are disturbed: cold caches shared by several processes that are killed, limits, signals, other
// runtimes in the same process, an exit during work. Each test starts the client (client.cpp) and checks its output and exit
// status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "support/own_process.h"

namespace processes {
namespace {

namespace fs = std::filesystem;
using lamina::testing::quoted;
using ::testing::HasSubstr;
using ::testing::Not;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

struct Ended {
  std::string output;
  int status;  // as returned by waitpid
  bool succeeded() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
};

// `before` precedes the client's name: env NAME=VALUE, ulimit, and so on. The client is killed after 90 seconds.
Ended run_client(const std::string& words, const std::string& before = "") {
  const std::string command = before + " timeout -s KILL 90 " + quoted(LAMINA_CLIENT) + " " + words + " 2>&1";
  FILE* const output = popen(command.c_str(), "r");
  std::string text;
  for (char buffer[4096]; const size_t count = fread(buffer, 1, sizeof buffer, output);) text.append(buffer, count);
  return {text, pclose(output)};
}

const std::string& expected_digest() {
  static const std::string digest = run_client("digest 6").output;
  return digest;
}

void expect_expected(const Ended& ended) {
  EXPECT_TRUE(ended.succeeded()) << ended.status << ": " << ended.output;
  EXPECT_EQ(ended.output, expected_digest());
}

class Processes : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(expected_digest().size(), 17u) << expected_digest();
    std::string pattern = (fs::temp_directory_path() / "lamina-processes-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string with_cache() const { return "env LAMINA_CACHE_DIR=" + folder_.string(); }
  // Returns the files with this extension.
  std::vector<fs::path> files(const std::string& extension) const {
    std::vector<fs::path> found;
    for (const auto& each : fs::directory_iterator(folder_))
      if (each.path().extension() == extension) found.push_back(each.path());
    return found;
  }

  fs::path folder_;
};

pid_t start_client(const std::vector<std::string>& words, const fs::path& cache) {
  const pid_t child = fork();
  if (child != 0) return child;
  setenv("LAMINA_CACHE_DIR", cache.c_str(), 1);
  std::vector<char*> arguments{const_cast<char*>(LAMINA_CLIENT)};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  if (freopen("/dev/null", "w", stdout) == nullptr) _exit(3);
  execv(LAMINA_CLIENT, arguments.data());
  _exit(3);
}

TEST_F(Processes, TwentyOnOneColdCacheKilledAtRandomMoments) {
  std::mt19937 random(1);
  std::uniform_int_distribution<useconds_t> moment(0, 20'000);
  std::vector<pid_t> children;
  for (int i = 0; i < 20; ++i) children.push_back(start_client({"digest", "6"}, folder_));
  for (const pid_t child : children) {
    usleep(moment(random));
    kill(child, SIGKILL);
  }
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  expect_expected(run_client("digest 6", with_cache()));
  EXPECT_FALSE(files(".code").empty());
  expect_expected(run_client("digest 6", with_cache()));
}

TEST_F(Processes, APoisonedCache) {
  expect_expected(run_client("digest 6", with_cache()));
  const std::vector<fs::path> entries = files(".code");
  ASSERT_GE(entries.size(), 4u);
  fs::resize_file(entries[0], 40);
  std::ofstream(entries[1], std::ios::binary) << std::string(100'000, 'x');
  fs::remove(entries[2]);
  fs::create_directory(entries[2]);
  std::fstream(entries[3], std::ios::in | std::ios::out | std::ios::binary).seekp(300) << "changed";
  expect_expected(run_client("digest 6", with_cache()));
}

TEST_F(Processes, ACacheWithoutRoom) {
  // ulimit counts blocks of 512 bytes; a larger file raises a signal.
  expect_expected(run_client("digest 6", "ulimit -f 1; " + with_cache()));
  EXPECT_TRUE(files(".code").empty());
  for (const auto& each : fs::directory_iterator(folder_)) ADD_FAILURE() << each.path() << " was left behind";
}

TEST_F(Processes, ACacheOnAFullOrReadOnlyDisk) {
  const std::string mount = "unshare -m sh -c 'mount -t tmpfs -o size=16k,mode=700 none " + folder_.string() + " && ";
  if (std::system((mount + "true' 2>/dev/null").c_str()) != 0) GTEST_SKIP() << "this user may not mount a small disk";
  const auto run_mounted = [&](const std::string& then) { return run_client("digest 6'", mount + then + with_cache()); };
  expect_expected(run_mounted(""));
  expect_expected(run_mounted("mount -o remount,ro " + folder_.string() + " && "));
}

TEST_F(Processes, ACacheThatVanishes) {
  const std::string words = "digest 6 & sleep 0.05; rm -rf " + folder_.string() + "/*; rmdir " + folder_.string() + "; wait";
  expect_expected(run_client(words, with_cache()));
  fs::create_directories(folder_);
}

TEST_F(Processes, SignalsThatInterrupt) {
  const Ended ended = run_client("timer 6", with_cache());
  expect_expected(ended);
  EXPECT_GE(files(".code").size(), 6u) << "interrupted writes are made good";
  expect_expected(run_client("timer 6", with_cache()));
}

TEST_F(Processes, AnotherLocale) {
  const std::string locale = (folder_ / "de_DE.UTF-8").string();
  if (std::system(("localedef --no-archive -i de_DE -f UTF-8 " + locale + " >/dev/null 2>&1; test -d " + locale).c_str()) != 0)
    GTEST_SKIP() << "no locale with a decimal comma can be made here";
  expect_expected(run_client("digest 6", "env LC_ALL=de_DE.UTF-8 LOCPATH=" + folder_.string()));
}

TEST_F(Processes, WithoutAnEnvironment) { expect_expected(run_client("digest 6", "env -i")); }

TEST_F(Processes, WithoutHome) { expect_expected(run_client("digest 6", "env -u HOME LAMINA_JIT_SYMBOLS=gdb")); }

TEST_F(Processes, AnotherOpenMpInItsPlace) {
  for (const char* library : {"/usr/lib/llvm-19/lib/libomp.so.5", "/usr/lib/x86_64-linux-gnu/libomp.so.5"}) {
    if (!fs::exists(library)) continue;
    expect_expected(run_client("digest 6", std::string("env OMP_NUM_THREADS=4 LD_PRELOAD=") + library));
    return;
  }
  GTEST_SKIP() << "no other OpenMP runtime is installed (libomp5)";
}

// PoCL loads its own LLVM; here another LLVM runs first, and between two of lamina's kernels.
TEST_F(Processes, AnotherLlvmBesideIts) {
  int tried = 0;
  for (const char* library : {"libLLVM-14.so.1", "libLLVM-15.so.1", "libLLVM-16.so.1", "libLLVM-17.so.1", "libLLVM.so.18.1"}) {
    const Ended ended = run_client(std::string("beside_llvm 6 ") + library);
    if (WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 77) continue;
    ++tried;
    expect_expected(ended);
  }
  if (tried == 0) GTEST_SKIP() << "no other version of LLVM is installed";
}

// The stack sizes that docs/stability.md specifies for each kind of graph.
TEST_F(Processes, StacksThatTheDocumentsAskFor) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer makes frames larger";
  const Ended ended = run_client("stack", "env OMP_NUM_THREADS=2");
  ASSERT_TRUE(ended.succeeded()) << ended.status << ": " << ended.output;
  const std::regex line("compile +([0-9]+), execute +([0-9]+)");
  int kinds = 0;
  for (std::sregex_iterator found(ended.output.begin(), ended.output.end(), line), end; found != end; ++found, ++kinds) {
    EXPECT_LE(std::stoul((*found)[1]), 256u << 10) << ended.output;
    EXPECT_LE(std::stoul((*found)[2]), 64u << 10) << ended.output;
  }
  EXPECT_EQ(kinds, 12) << ended.output;
}

TEST_F(Processes, TheEndWhileThreadsExecute) {
  for (const char* executor : {"openmp", "helpers", "automatic"}) {
    for (int time = 0; time < 5; ++time) {
      const Ended ended = run_client("exit", std::string("env OMP_NUM_THREADS=4 LAMINA_EXECUTOR=") + executor);
      EXPECT_TRUE(ended.succeeded()) << executor << ": " << ended.status << ": " << ended.output;
    }
  }
}

TEST_F(Processes, AThousandThreadsOnSmallStacks) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer makes frames larger";
  for (const char* executor : {"openmp", "helpers"}) {
    const Ended ended = run_client("threads 1000 65536", std::string("env OMP_NUM_THREADS=2 LAMINA_EXECUTOR=") + executor);
    EXPECT_TRUE(ended.succeeded()) << executor << ": " << ended.status;
    EXPECT_EQ(ended.output, "1000 of 1000\n") << executor;
  }
}

TEST_F(Processes, CompilesOnTheStackThatTheDocumentsAskFor) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer makes frames larger";
  const Ended small = run_client("compile 262144"), large = run_client("compile 8388608");
  EXPECT_TRUE(small.succeeded()) << small.status << ": " << small.output;
  EXPECT_EQ(small.output, large.output);
}

TEST_F(Processes, ALimitOnTheAddressSpace) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer takes terabytes of address space itself";
  const Ended ended = run_client("address_space");
  EXPECT_TRUE(ended.succeeded()) << ended.status << ": " << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("status 0: "));
  EXPECT_THAT(ended.output, HasSubstr("status 1: "));
  EXPECT_THAT(ended.output, HasSubstr("works again"));
  for (const char* other : {"status 2", "status 3", "status 5"}) EXPECT_THAT(ended.output, Not(HasSubstr(other)));
}

TEST_F(Processes, NoMemoryThatMayBeExecuted) {
  const Ended ended = run_client("no_code");
  EXPECT_TRUE(ended.succeeded()) << ended.status << ": " << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("cannot make memory executable: Permission denied"));
  EXPECT_THAT(ended.output, HasSubstr("works again"));
}

TEST_F(Processes, LoadedAndLetGoAHundredTimes) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer keeps memory that was given back";
  const Ended ended = run_client("reload " + quoted(LAMINA_MODULE) + " 100");
  ASSERT_TRUE(ended.succeeded()) << ended.status << ": " << ended.output;
  const size_t at = ended.output.find("grew by ");
  ASSERT_NE(at, std::string::npos) << ended.output;
  EXPECT_LT(std::atol(ended.output.c_str() + at + 8), 4096) << ended.output;
}

}  // namespace
}  // namespace processes
