// Machine code on disk, shared by processes and kept between runs. Opt-in: LAMINA_CACHE_DIR names the folder.
//
// An entry is one file, named by the SHA-256 of its key, that holds the key, the object file, and the SHA-256 of both. The key
// says all that the code depends on, so an entry of another lamina, LLVM, machine or kernel is another file. Entries are
// written under a temporary name and renamed: a reader sees a whole entry or none, whatever other processes do. Whatever is
// wrong with an entry makes it a miss; whatever goes wrong while one is written leaves the folder without it. Neither is an
// error.
//
// The backends share the folder: a key begins with what kind of code it is for.
//
// Entries are code that will run, so only this user may have written them: the folder and every entry must belong to the user
// and be writable by nobody else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lamina {

class CodeCache {
 public:
  static constexpr int64_t kDefaultBytes = int64_t{256} << 20;

  // The folder is made, for this user alone, where it is missing; its parent must exist. The path must be absolute. When the
  // folder cannot be used every look-up is a miss, nothing is kept, and why_off() says why.
  explicit CodeCache(const std::string& folder, int64_t max_bytes = kDefaultBytes);
  ~CodeCache();
  CodeCache(const CodeCache&) = delete;
  CodeCache& operator=(const CodeCache&) = delete;

  // What LAMINA_CACHE_DIR and LAMINA_CACHE_MB (default 256) ask for; null when the former is unset or empty.
  static const CodeCache* from_environment();

  const std::string& why_off() const { return why_off_; }  // "" when in use
  // What of the environment's wishes is not so, for those who want to be told; "" when all is.
  const std::string& complaint() const { return complaint_; }
  std::optional<std::string> find(std::string_view key) const;
  // Once in a while removes the entries that were used longest ago, so that the folder stays within max_bytes and a few
  // entries.
  void keep(std::string_view key, std::string_view object) const;
  void shrink(int64_t max_bytes) const;

  // The name of an entry's file. For tests.
  static std::string file_name(std::string_view key);

 private:
  int folder_ = -1;
  int64_t max_bytes_;
  std::string why_off_, complaint_;
};

// The text of LAMINA_CACHE_MB (null: unset) as bytes. A text that is no such number stands for the default.
struct CacheSize {
  int64_t bytes;
  std::string complaint;  // "" when the text says what it may
};
CacheSize cache_size_of(const char* megabytes);

}  // namespace lamina
