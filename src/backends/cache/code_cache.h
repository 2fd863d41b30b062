// Machine code on disk, shared by processes and reused between runs. Opt-in: LAMINA_CACHE_DIR names the folder.
//
// An entry is one file, named by the SHA-256 of its key. It contains the key, the object file, and the SHA-256 of both. The
// key contains everything on which the code depends, so another lamina, LLVM, machine or kernel has another file. An entry is
// written under a temporary name and then renamed, so a reader gets a complete entry or none, independent of other processes. A
// damaged entry is a miss. If writing an entry fails, the folder does not contain it. Neither is an error.
//
// The backends share the folder: a key begins with the kind of code.
//
// Entries are code that will run, so only this user may have written them: the folder and every entry must belong to the user
// and must not be writable by others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lamina {

class CodeCache {
 public:
  static constexpr int64_t kDefaultBytes = int64_t{256} << 20;

  // Creates the folder with access only for this user if it is missing; its parent must exist. The path must be absolute. If
  // the folder cannot be used, every look-up is a miss, nothing is stored, and why_off() says why.
  explicit CodeCache(const std::string& folder, int64_t max_bytes = kDefaultBytes);
  ~CodeCache();
  CodeCache(const CodeCache&) = delete;
  CodeCache& operator=(const CodeCache&) = delete;

  // The cache that LAMINA_CACHE_DIR and LAMINA_CACHE_MB (default 256) request; null if the former is unset or empty.
  static const CodeCache* from_environment();

  const std::string& why_off() const { return why_off_; }  // "" if the cache is in use
  // Explains which cache settings were ignored, and why; "" if none.
  const std::string& warning() const { return warning_; }
  std::optional<std::string> find(std::string_view key) const;
  // From time to time removes the least recently used entries, so that the folder exceeds max_bytes by at most a few entries.
  void store(std::string_view key, std::string_view object) const;
  void shrink(int64_t max_bytes) const;

  // The name of an entry's file. For tests.
  static std::string file_name(std::string_view key);

 private:
  int folder_ = -1;
  int64_t max_bytes_;
  std::string why_off_, warning_;
};

// The size in LAMINA_CACHE_MB (null: unset) as bytes. An invalid text means the default.
struct CacheSize {
  int64_t bytes;
  std::string warning;  // "" if the text is valid
};
CacheSize cache_size_of(const char* megabytes);

}  // namespace lamina
