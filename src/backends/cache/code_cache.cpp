#include "backends/cache/code_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <memory>
#include <vector>

#include "backends/cache/sha256.h"
#include "interface/status.h"

namespace lamina {

namespace {

constexpr std::string_view kMagic = "lamina1\n";
constexpr std::string_view kSuffix = ".code", kTemporaryPrefix = "writing-";
constexpr int64_t kMaxEntryBytes = int64_t{16} << 20;
constexpr int kWritesBetweenShrinks = 64;
// time between updates of an entry's use time; more frequent ones can wait for the disk
constexpr time_t kUsedAnewSeconds = 600;
constexpr time_t kAbandonedSeconds = 3600;  // the writer of a temporary of this age no longer exists

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool is_open() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// The header before an entry's key and object. Entries are only used on the machine that wrote them, so words have its byte
// order.
struct Header {
  std::array<char, 8> magic;
  uint64_t key_bytes, object_bytes;
  Sha256 digest;  // of key and object, one after the other
};
static_assert(sizeof(Header) == 56);

bool is_ours_alone(const struct stat& status) {
  return status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool read_whole(int file, std::string& data) {
  for (size_t done = 0; done < data.size();) {
    const ssize_t count = read(file, data.data() + done, data.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

bool write_whole(int file, std::string_view data) {
  while (!data.empty()) {
    const ssize_t count = write(file, data.data(), data.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    data.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// Returns the object of an entry if the entry is complete and has this key.
std::optional<std::string> object_in(std::string_view entry, std::string_view key) {
  Header header;
  if (entry.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, entry.data(), sizeof header);
  entry.remove_prefix(sizeof header);
  if (std::string_view(header.magic.data(), header.magic.size()) != kMagic) return std::nullopt;
  if (header.key_bytes != key.size() || header.key_bytes > entry.size()) return std::nullopt;
  if (header.object_bytes != entry.size() - header.key_bytes || header.object_bytes == 0) return std::nullopt;
  const std::string_view object = entry.substr(key.size());
  if (entry.substr(0, key.size()) != key || header.digest != sha256(key, object)) return std::nullopt;
  return std::string(object);
}

// The largest file that the process may write. A signal ends a process that writes more.
int64_t largest_file() {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur > rlim_t{std::numeric_limits<int64_t>::max()})
    return std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(limit.rlim_cur);
}

uint64_t random_number() {
  uint64_t number = 0;
  if (getentropy(&number, sizeof number) != 0) number = static_cast<uint64_t>(std::time(nullptr));
  return number;
}

std::string entry_of(std::string_view key, std::string_view object) {
  Header header{{}, key.size(), object.size(), sha256(key, object)};
  std::copy(kMagic.begin(), kMagic.end(), header.magic.begin());
  std::string entry(reinterpret_cast<const char*>(&header), sizeof header);
  entry.append(key).append(object);
  return entry;
}

// Why the opened folder is not trusted; "" if it is.
std::string fault_of_folder(int folder) {
  struct stat status;
  if (fstat(folder, &status) != 0) return std::strerror(errno);
  if (status.st_uid != geteuid())
    return join("it belongs to user ", status.st_uid, ", allowed is the user of this process, ", geteuid());
  if (!is_ours_alone(status)) return "other users can write to it, allowed is a folder that only its owner can write to";
  return "";
}

struct StoredEntry {
  std::string name;
  int64_t bytes;
  struct timespec used;
};

bool used_earlier(const StoredEntry& a, const StoredEntry& b) {
  return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec : a.used.tv_nsec < b.used.tv_nsec;
}

// Lists the entries, and removes abandoned temporaries.
std::vector<StoredEntry> entries_in(int folder) {
  std::vector<StoredEntry> entries;
  // reading moves the file offset, which must not be shared
  const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const listing = own < 0 ? nullptr : fdopendir(own);
  if (listing == nullptr) {
    if (own >= 0) close(own);
    return entries;
  }
  while (const dirent* const item = readdir(listing)) {
    const std::string_view name = item->d_name;
    const bool temporary = name.starts_with(kTemporaryPrefix);
    struct stat status;
    if ((!temporary && !name.ends_with(kSuffix)) || fstatat(folder, item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!temporary)
      entries.push_back({item->d_name, status.st_size, status.st_mtim});
    else if (status.st_mtim.tv_sec + kAbandonedSeconds < std::time(nullptr))
      unlinkat(folder, item->d_name, 0);
  }
  closedir(listing);
  return entries;
}

}  // namespace

CacheSize cache_size_of(const char* megabytes) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() >> 20;
  if (megabytes == nullptr || *megabytes == '\0') return {CodeCache::kDefaultBytes, ""};
  const char* const end = megabytes + std::strlen(megabytes);
  int64_t asked = 0;
  const auto [stop, error] = std::from_chars(megabytes, end, asked);
  if (error == std::errc{} && stop == end && asked > 0 && asked <= kMost) return {asked << 20, ""};
  return {CodeCache::kDefaultBytes, join("LAMINA_CACHE_MB is \"", megabytes, "\", allowed is 1 to ", kMost, "; lamina uses ",
                                         CodeCache::kDefaultBytes >> 20)};
}

CodeCache::CodeCache(const std::string& folder, int64_t max_bytes) : max_bytes_(max_bytes) {
  if (!folder.starts_with('/')) {
    why_off_ = join("\"", folder, "\" is not an absolute path");
    return;
  }
  mkdir(folder.c_str(), S_IRWXU);  // a folder that exists already is accepted
  folder_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::string fault = folder_ < 0 ? std::strerror(errno) : fault_of_folder(folder_);
  if (!fault.empty()) why_off_ = join("\"", folder, "\" cannot be used: ", fault);
}

CodeCache::~CodeCache() {
  if (folder_ >= 0) close(folder_);
}

const CodeCache* CodeCache::from_environment() {
  static const std::unique_ptr<const CodeCache> cache = []() -> std::unique_ptr<const CodeCache> {
    const char* const folder = std::getenv("LAMINA_CACHE_DIR");
    if (folder == nullptr || *folder == '\0') return nullptr;
    const CacheSize size = cache_size_of(std::getenv("LAMINA_CACHE_MB"));
    auto opened = std::make_unique<CodeCache>(folder, size.bytes);
    opened->warning_ = opened->why_off_.empty() ? size.warning : "LAMINA_CACHE_DIR " + opened->why_off_;
    return opened;
  }();
  return cache.get();
}

std::string CodeCache::file_name(std::string_view key) { return sha256_hex(key) + std::string(kSuffix); }

std::optional<std::string> CodeCache::find(std::string_view key) const {
  if (!why_off_.empty()) return std::nullopt;
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  const File file(openat(folder_, file_name(key).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status;
  if (!file.is_open() || fstat(file.get(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode) || !is_ours_alone(status) || status.st_size > kMaxEntryBytes) return std::nullopt;
  std::string entry(static_cast<size_t>(status.st_size), '\0');
  if (!read_whole(file.get(), entry)) return std::nullopt;
  auto object = object_in(entry, key);
  if (object && status.st_mtim.tv_sec + kUsedAnewSeconds < std::time(nullptr))
    futimens(file.get(), nullptr);  // updates the use time
  return object;
}

void CodeCache::store(std::string_view key, std::string_view object) const {
  if (!why_off_.empty()) return;
  static std::atomic<uint64_t> writes{0};
  const uint64_t number = writes++;
  const std::string entry = entry_of(key, object), name = file_name(key);
  if (static_cast<int64_t>(entry.size()) > std::min({kMaxEntryBytes, max_bytes_, largest_file()})) return;
  // Processes in two containers may have the same id.
  const std::string temporary = join(kTemporaryPrefix, getpid(), "-", number, "-", random_number());
  bool complete = false;
  {
    const File file(
        openat(folder_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!file.is_open()) return;
    complete = write_whole(file.get(), entry);
  }
  if (!complete || renameat(folder_, temporary.c_str(), folder_, name.c_str()) != 0) unlinkat(folder_, temporary.c_str(), 0);
  if (number % kWritesBetweenShrinks == 0) shrink(max_bytes_);
}

void CodeCache::shrink(int64_t max_bytes) const {
  if (!why_off_.empty()) return;
  std::vector<StoredEntry> entries = entries_in(folder_);
  int64_t total = 0;
  for (const StoredEntry& entry : entries) total += entry.bytes;
  if (total <= max_bytes) return;
  std::sort(entries.begin(), entries.end(), used_earlier);
  for (const StoredEntry& entry : entries) {
    if (total <= max_bytes - max_bytes / 4) return;  // leaves free space for the next entries
    unlinkat(folder_, entry.name.c_str(), 0);
    total -= entry.bytes;
  }
}

}  // namespace lamina
