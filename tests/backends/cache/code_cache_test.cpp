// The on-disk cache of machine code: what it finds, and that every damaged folder or entry is a miss.
#include "backends/cache/code_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <iterator>
#include <thread>
#include <vector>

#include "backends/cache/sha256.h"
#include "interface/status.h"
#include "support/code_cache_folder.h"

namespace lamina::testing {
namespace {

using ::testing::HasSubstr;

class CodeCacheTest : public CodeCacheFolder {
 protected:
  // Expects a hit, and a miss after `spoil` has changed the entry's file.
  void expect_miss_after(const std::function<void(const fs::path&)>& spoil) {
    const CodeCache cache(folder_);
    cache.store("key", "object");
    ASSERT_EQ(cache.find("key"), "object");
    spoil(entry("key"));
    EXPECT_EQ(cache.find("key"), std::nullopt);
    fs::remove_all(entry("key"));
  }
};

TEST_F(CodeCacheTest, FindsWhatWasKept) {
  const std::string object("\0binary\xff\n", 9);
  const CodeCache writer(folder_);
  EXPECT_EQ(writer.find("key"), std::nullopt);
  writer.store("key", object);
  const CodeCache reader(folder_);
  EXPECT_EQ(reader.find("key"), object);
  EXPECT_EQ(reader.find("another key"), std::nullopt);
  EXPECT_EQ(file_count(), 1u);  // no temporary file remains
}

TEST_F(CodeCacheTest, MakesAFolderThatIsMissingForThisUserAlone) {
  const CodeCache cache(folder_ / "new");
  EXPECT_EQ(cache.why_off(), "");
  cache.store("key", "object");
  EXPECT_EQ(cache.find("key"), "object");
  struct stat status;
  ASSERT_EQ(stat((folder_ / "new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(CodeCacheTest, UsesNoFolderThatOthersMayWriteIn) {
  for (const mode_t mode : {0770, 0777, 0702}) {
    ASSERT_EQ(chmod(folder_.c_str(), mode), 0);
    const CodeCache cache(folder_);
    EXPECT_THAT(cache.why_off(), HasSubstr("other users can write to it"));
    cache.store("key", "object");
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
  missing.store("key", "object");
  missing.shrink(0);
  EXPECT_EQ(missing.find("key"), std::nullopt);
}

TEST_F(CodeCacheTest, AnEntryCutOffAnywhereIsAMiss) {
  const CodeCache cache(folder_);
  cache.store("key", "object");
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
  cache.store("key", "object");
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
  cache.store("other", "their object");
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
  cache.store("key", "object");
  EXPECT_EQ(cache.find("key"), "object");
}

TEST_F(CodeCacheTest, RemovesWhatWasUsedLongestAgo) {
  const CodeCache cache(folder_);
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 8; ++i) {
    const std::string key = join("key", i);
    cache.store(key, std::string(1000, 'x'));
    fs::last_write_time(entry(key), now - std::chrono::hours(100 - i));
  }
  write_file(folder_ / "writing-1-2-3", "of a process that died");
  fs::last_write_time(folder_ / "writing-1-2-3", now - std::chrono::hours(2));
  write_file(folder_ / "writing-1-2-4", "of a process at work");
  write_file(folder_ / "notes.txt", "not ours");
  EXPECT_TRUE(cache.find("key0"));  // marks it as recently used
  cache.shrink(8000);               // slightly less than 8 entries
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
  for (int i = 0; i < 300; ++i) cache.store(join("key", i), std::string(1000, 'x'));
  int64_t total = 0;
  for (const auto& file : fs::directory_iterator(folder_)) total += static_cast<int64_t>(file.file_size());
  EXPECT_LE(total, kBound + 64 * 1100);
  cache.store("too large", std::string(kBound, 'x'));
  EXPECT_FALSE(cache.find("too large"));
}

TEST_F(CodeCacheTest, ReadersSeeWholeEntriesWhileOthersWrite) {
  const std::string objects[] = {std::string(50'000, 'a'), std::string(70'000, 'b')};
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (const std::string& object : objects) {
    writers.emplace_back([&] {
      const CodeCache cache(folder_);
      while (!stop) cache.store("key", object);
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

TEST(CacheSize, IsAskedForInMegabytes) {
  EXPECT_EQ(cache_size_of(nullptr).bytes, int64_t{256} << 20);
  EXPECT_EQ(cache_size_of("").bytes, int64_t{256} << 20);
  EXPECT_EQ(cache_size_of("1").bytes, 1 << 20);
  EXPECT_EQ(cache_size_of("8796093022207").bytes, int64_t{8796093022207} << 20);
  EXPECT_EQ(cache_size_of("8796093022207").warning, "");
}

TEST(CacheSize, ThatIsNoneIsTheDefaultAndSaysSo) {
  for (const char* const text : {"0", "-1", "many", "12 MB", "8796093022208", "99999999999999999999999"}) {
    const CacheSize size = cache_size_of(text);
    EXPECT_EQ(size.bytes, int64_t{256} << 20);
    EXPECT_EQ(size.warning, join("LAMINA_CACHE_MB is \"", text, "\", allowed is 1 to 8796093022207; lamina uses 256"));
  }
}

// FIPS 180-4 and its published test vectors.
TEST(Sha256, HasTheSameBlocksByInstructionsAndPortably) {
  std::string blocks(64 * 7, '\0');
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<char>(i * i * 31 + i);
  Sha256State state = {1, 0xFFFFFFFF, 3, 0x80000000, 5, 0x12345678, 7, 8}, portable = state;
  for (const size_t count : {0, 1, 2, 7}) {
    add_sha256_blocks(state, reinterpret_cast<const uint8_t*>(blocks.data()), count);
    add_sha256_blocks_portably(portable, reinterpret_cast<const uint8_t*>(blocks.data()), count);
    EXPECT_EQ(state, portable) << count;
  }
}

TEST(Sha256, OfTheStandardsTexts) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(sha256("ab", "c"), sha256("abc"));
}

}  // namespace
}  // namespace lamina::testing
