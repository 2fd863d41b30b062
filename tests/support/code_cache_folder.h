// A machine-code cache folder that belongs to one test, and the files in it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "backends/cache/code_cache.h"

namespace lamina::testing {

namespace fs = std::filesystem;

inline std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

class CodeCacheFolder : public ::testing::Test {
 protected:
  CodeCacheFolder() {
    std::string pattern = (fs::temp_directory_path() / "lamina-code-cache-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~CodeCacheFolder() override { fs::remove_all(folder_); }

  fs::path entry(std::string_view key) const { return folder_ / CodeCache::file_name(key); }
  fs::path only_file() const { return fs::directory_iterator(folder_)->path(); }
  size_t file_count() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }

  fs::path folder_;
};

}  // namespace lamina::testing
