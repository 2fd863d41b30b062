// The cache of machine code on disk: what is found, and that whatever is wrong with a folder or an entry is a miss.
#include "backends/cpu/code/code_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "backends/cpu/cpu_check.h"
#include "compiler/compile.h"
#include "support/graph_builder.h"
#include "support/own_process.h"

namespace lamina::testing {
namespace {

namespace fs = std::filesystem;
using cpu::CodeCache;
using ::testing::HasSubstr;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

class CodeCacheTest : public ::testing::Test {
 protected:
  CodeCacheTest() {
    std::string pattern = (fs::temp_directory_path() / "lamina-code-cache-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~CodeCacheTest() override { fs::remove_all(folder_); }

  fs::path entry(std::string_view key) const { return folder_ / CodeCache::file_name(key); }
  size_t file_count() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }

  // An entry that is found, until `spoil` has changed its file.
  void expect_miss_after(const std::function<void(const fs::path&)>& spoil) {
    const CodeCache cache(folder_);
    cache.keep("key", "object");
    ASSERT_EQ(cache.find("key"), "object");
    spoil(entry("key"));
    EXPECT_EQ(cache.find("key"), std::nullopt);
    fs::remove_all(entry("key"));
  }

  fs::path folder_;
};

TEST_F(CodeCacheTest, FindsWhatWasKept) {
  const std::string object("\0binary\xff\n", 9);
  const CodeCache writer(folder_);
  EXPECT_EQ(writer.find("key"), std::nullopt);
  writer.keep("key", object);
  const CodeCache reader(folder_);
  EXPECT_EQ(reader.find("key"), object);
  EXPECT_EQ(reader.find("another key"), std::nullopt);
  EXPECT_EQ(file_count(), 1u);  // no temporary is left
}

TEST_F(CodeCacheTest, MakesAFolderThatIsMissingForThisUserAlone) {
  const CodeCache cache(folder_ / "new");
  EXPECT_EQ(cache.why_off(), "");
  cache.keep("key", "object");
  EXPECT_EQ(cache.find("key"), "object");
  struct stat status;
  ASSERT_EQ(stat((folder_ / "new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(CodeCacheTest, UsesNoFolderThatOthersMayWriteIn) {
  for (const mode_t mode : {0770, 0777, 0702}) {
    ASSERT_EQ(chmod(folder_.c_str(), mode), 0);
    const CodeCache cache(folder_);
    EXPECT_THAT(cache.why_off(), HasSubstr("others may write in it"));
    cache.keep("key", "object");
    EXPECT_EQ(cache.find("key"), std::nullopt);
    EXPECT_EQ(file_count(), 0u);
  }
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  EXPECT_EQ(CodeCache(folder_).why_off(), "");
}

TEST_F(CodeCacheTest, UsesNoFolderOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  ASSERT_EQ(chown(folder_.c_str(), 12345, 12345), 0);
  EXPECT_THAT(CodeCache(folder_).why_off(), HasSubstr("it belongs to user 12345, allowed is the user of this process, 0"));
}

TEST_F(CodeCacheTest, UsesNoRelativePathAndNoFile) {
  EXPECT_THAT(CodeCache("cache").why_off(), HasSubstr("is not an absolute path"));
  write_file(folder_ / "file", "");
  EXPECT_THAT(CodeCache(folder_ / "file").why_off(), HasSubstr("Not a directory"));
  const CodeCache missing(folder_ / "no" / "parent");
  EXPECT_THAT(missing.why_off(), HasSubstr("No such file"));
  missing.keep("key", "object");
  missing.shrink(0);
  EXPECT_EQ(missing.find("key"), std::nullopt);
}

TEST_F(CodeCacheTest, AnEntryCutOffAnywhereIsAMiss) {
  const CodeCache cache(folder_);
  cache.keep("key", "object");
  const std::string whole = read_file(entry("key"));
  for (size_t size = 0; size < whole.size(); ++size) {
    write_file(entry("key"), whole.substr(0, size));
    EXPECT_EQ(cache.find("key"), std::nullopt) << size << " bytes";
  }
  write_file(entry("key"), whole + "x");
  EXPECT_EQ(cache.find("key"), std::nullopt);
  write_file(entry("key"), whole);
  EXPECT_EQ(cache.find("key"), "object");
}

TEST_F(CodeCacheTest, AnEntryWithOneBitChangedIsAMiss) {
  const CodeCache cache(folder_);
  cache.keep("key", "object");
  const std::string whole = read_file(entry("key"));
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    write_file(entry("key"), changed);
    EXPECT_EQ(cache.find("key"), std::nullopt) << "bit " << bit;
  }
}

TEST_F(CodeCacheTest, AForeignEntryIsAMiss) {
  const CodeCache cache(folder_);
  cache.keep("other", "their object");
  expect_miss_after([&](const fs::path& path) { fs::copy_file(entry("other"), path, fs::copy_options::overwrite_existing); });
  expect_miss_after([](const fs::path& path) { ASSERT_EQ(chmod(path.c_str(), 0622), 0); });
  expect_miss_after([&](const fs::path& path) {
    fs::rename(path, folder_ / "aside");
    fs::create_symlink(folder_ / "aside", path);
  });
  expect_miss_after([](const fs::path& path) {
    fs::remove(path);
    fs::create_directory(path);
  });
  expect_miss_after([](const fs::path& path) {
    fs::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);  // opening it must not wait for a writer
  });
  if (geteuid() == 0) expect_miss_after([](const fs::path& path) { ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0); });
}

TEST_F(CodeCacheTest, ABadEntryIsWrittenAnew) {
  const CodeCache cache(folder_);
  write_file(entry("key"), "rubbish");
  EXPECT_EQ(cache.find("key"), std::nullopt);
  cache.keep("key", "object");
  EXPECT_EQ(cache.find("key"), "object");
}

TEST_F(CodeCacheTest, RemovesWhatWasUsedLongestAgo) {
  const CodeCache cache(folder_);
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 8; ++i) {
    const std::string key = join("key", i);
    cache.keep(key, std::string(1000, 'x'));
    fs::last_write_time(entry(key), now - std::chrono::hours(100 - i));
  }
  write_file(folder_ / "writing-1-2-3", "of a process that died");
  fs::last_write_time(folder_ / "writing-1-2-3", now - std::chrono::hours(2));
  write_file(folder_ / "writing-1-2-4", "of a process at work");
  write_file(folder_ / "notes.txt", "not ours");
  EXPECT_TRUE(cache.find("key0"));  // used now
  cache.shrink(8000);               // 8 entries are a little more
  EXPECT_TRUE(cache.find("key0"));
  EXPECT_FALSE(cache.find("key1"));
  EXPECT_FALSE(cache.find("key2"));
  EXPECT_TRUE(cache.find("key7"));
  EXPECT_FALSE(fs::exists(folder_ / "writing-1-2-3"));
  EXPECT_TRUE(fs::exists(folder_ / "writing-1-2-4"));
  EXPECT_TRUE(fs::exists(folder_ / "notes.txt"));
}

TEST_F(CodeCacheTest, StaysWithinItsBound) {
  constexpr int64_t kBound = 100'000;
  const CodeCache cache(folder_, kBound);
  for (int i = 0; i < 300; ++i) cache.keep(join("key", i), std::string(1000, 'x'));
  int64_t total = 0;
  for (const auto& file : fs::directory_iterator(folder_)) total += static_cast<int64_t>(file.file_size());
  EXPECT_LE(total, kBound + 64 * 1100);
  cache.keep("too large", std::string(kBound, 'x'));
  EXPECT_FALSE(cache.find("too large"));
}

TEST_F(CodeCacheTest, ReadersSeeWholeEntriesWhileOthersWrite) {
  const std::string objects[] = {std::string(50'000, 'a'), std::string(70'000, 'b')};
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (const std::string& object : objects) {
    writers.emplace_back([&] {
      const CodeCache cache(folder_);
      while (!stop) cache.keep("key", object);
    });
  }
  const CodeCache cache(folder_);
  while (!cache.find("key")) std::this_thread::yield();
  for (int i = 0; i < 200; ++i) {
    const auto found = cache.find("key");
    EXPECT_TRUE(found == objects[0] || found == objects[1]) << (found ? "mixed" : "missing");
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(file_count(), 1u);
}

// ---- compiling through it: the cache is chosen once a process

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

TEST_F(CodeCacheTest, ASecondProcessFindsTheCode) {
  expect_compile(folder_, "fresh");
  EXPECT_EQ(file_count(), 1u);
  expect_compile(folder_, "stored");
}

TEST_F(CodeCacheTest, AnotherInstructionSetIsAnotherEntry) {
  expect_compile(folder_, "fresh", {{"LAMINA_MAX_ISA", ""}});
  expect_compile(folder_, "fresh", {{"LAMINA_MAX_ISA", "generic"}});
  EXPECT_EQ(file_count(), 2u);
}

TEST_F(CodeCacheTest, AnEntryWithoutCodeForItsKernelIsAMiss) {
  expect_compile(folder_, "fresh");
  const fs::path file = fs::directory_iterator(folder_)->path();
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
    CodeCache(folder_).keep(key, other);  // with a digest that is right
    expect_compile(folder_, "fresh");
    expect_compile(folder_, "stored");  // it was written anew
  }
}

TEST_F(CodeCacheTest, AFolderThatCannotBeUsedCostsNothingButTheCache) {
  write_file(folder_ / "file", "a file");
  expect_compile(folder_ / "file", "fresh");
  EXPECT_EQ(read_file(folder_ / "file"), "a file");
}

}  // namespace
}  // namespace lamina::testing
