#include "backends/tune/tuned_schedules.h"

#include <charconv>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <system_error>

#include "backends/cache/code_cache.h"
#include "backends/cache/sha256.h"
#include "handles/locks.h"
#include "interface/number_text.h"
#include "interface/status.h"

namespace lamina::tuned_texts {

namespace {

constexpr std::string_view kHeading = "lamina tuned schedule 1\n";

// Removes and returns the first line of `text`.
std::optional<Line> take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  int64_t nanoseconds = 0;
  const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), nanoseconds);
  if (error != std::errc{} || nanoseconds <= 0 || stop == line.data() + line.size() || *stop != ' ') return std::nullopt;
  return Line{line.substr(static_cast<size_t>(stop - line.data()) + 1), static_cast<double>(nanoseconds) / 1000};
}

class Memory {
 public:
  static Memory& instance() {
    static Memory& memory = *new Memory;  // never destroyed: kernels may be compiled during static destruction
    return memory;
  }
  Mutex mutex{LockRow::tuned_schedules};  // never held while the disk is read
  std::map<std::string, std::string> cached;
  std::set<Sha256> missing;  // digests of keys for which the disk has no valid entry
};

// Beyond this number the digests are dropped, and the disk is read again.
constexpr size_t kMaxMissing = 4096;

}  // namespace

std::string key_of(const std::string& where, const kernel::Kernel& kernel) {
  std::string key = "schedule for " + where;
  for (const int64_t extent : kernel.extents) key += join(extent, " ");
  for (const kernel::Arg& arg : kernel.args) {
    for (const int64_t stride : arg.strides) key += join(stride, " ");
  }
  return key + "\n" + kernel::print(kernel, false);
}

std::string text_of(const std::vector<std::pair<std::string, double>>& lines) {
  std::string text(kHeading);
  for (const auto& [schedule, microseconds] : lines) text += join(std::llround(microseconds * 1000), " ", schedule, "\n");
  return text;
}

std::optional<std::vector<Line>> lines_of(std::string_view text) {
  if (!text.starts_with(kHeading)) return std::nullopt;
  text.remove_prefix(kHeading.size());
  std::vector<Line> lines;
  while (!text.empty()) {
    const std::optional<Line> line = take_line(text);
    if (!line) return std::nullopt;
    lines.push_back(*line);
  }
  if (lines.size() < 2) return std::nullopt;
  return lines;
}

std::string choice(const std::string& chosen, std::string_view text) {
  const auto lines = lines_of(text);
  LAMINA_CHECK(lines.has_value(), "the text of a tuned schedule");
  const auto time = [&](size_t line) { return join(general_text(lines->at(line).microseconds, 4), " us"); };
  std::string words = join("measured: ", chosen, "; ", time(0));
  if (lines->at(0).schedule != lines->at(1).schedule) words += join(", by rule ", time(1));
  if (lines->size() > 2) words += join(", ", lines->size() - 2, " others ", time(2), " to ", time(lines->size() - 1));
  return words;
}

std::optional<std::string> find(const Key& key, const std::function<bool(std::string_view text)>& is_valid) {
  Memory& memory = Memory::instance();
  const CodeCache* const disk = CodeCache::from_environment();
  std::string text_of_key;
  Sha256 digest;
  {
    const std::lock_guard lock(memory.mutex);
    if (disk == nullptr && memory.cached.empty()) return std::nullopt;
    text_of_key = key();
    if (const auto known = memory.cached.find(text_of_key); known != memory.cached.end()) return known->second;
    digest = sha256(text_of_key, {});
    if (disk == nullptr || memory.missing.contains(digest)) return std::nullopt;
  }
  std::optional<std::string> text = disk->find(text_of_key);
  if (text && !is_valid(*text)) text = std::nullopt;
  const std::lock_guard lock(memory.mutex);
  // What another thread has stored meanwhile is newer.
  if (const auto known = memory.cached.find(text_of_key); known != memory.cached.end()) return known->second;
  if (text) {
    memory.cached.emplace(text_of_key, *text);
  } else {
    if (memory.missing.size() >= kMaxMissing) memory.missing.clear();
    memory.missing.insert(digest);
  }
  return text;
}

void store(const std::string& key, const std::string& text) {
  Memory& memory = Memory::instance();
  if (const CodeCache* const disk = CodeCache::from_environment()) disk->store(key, text);
  const std::lock_guard lock(memory.mutex);
  memory.cached.insert_or_assign(key, text);
}

void forget() {
  Memory& memory = Memory::instance();
  const std::lock_guard lock(memory.mutex);
  memory.cached.clear();
  memory.missing.clear();
}

}  // namespace lamina::tuned_texts
