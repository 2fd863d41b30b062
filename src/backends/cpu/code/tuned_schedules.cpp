#include "backends/cpu/code/tuned_schedules.h"

#include <charconv>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <system_error>

#include "backends/cache/code_cache.h"
#include "backends/cache/sha256.h"
#include "backends/cpu/code/cached_costs.h"
#include "backends/cpu/schedule/legal_schedules.h"
#include "handles/locks.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

constexpr std::string_view kHeading = "lamina tuned schedule 1\n";

std::string line_of(const TimedSchedule& timed) {
  return join(std::llround(timed.microseconds * 1000), " ", describe(timed.schedule), "\n");  // in nanoseconds
}

// Removes and returns the first line of `text`.
std::optional<TimedSchedule> take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  int64_t nanoseconds = 0;
  const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), nanoseconds);
  if (error != std::errc{} || nanoseconds <= 0 || stop == line.data() + line.size() || *stop != ' ') return std::nullopt;
  const auto schedule = schedule_of(line.substr(static_cast<size_t>(stop - line.data()) + 1));
  if (!schedule) return std::nullopt;
  return TimedSchedule{*schedule, static_cast<double>(nanoseconds) / 1000};
}

// Everything on which times depend: the kernel with its extents, the machine, the code generator.
std::string key_of(const kernel::Kernel& kernel, const Machine& machine) {
  std::string key = "schedule for " + key_of_times(machine);
  for (const int64_t extent : kernel.extents) key += join(extent, " ");
  for (const kernel::Arg& arg : kernel.args) {
    for (const int64_t stride : arg.strides) key += join(stride, " ");
  }
  return key + "\n" + kernel::print(kernel, false);
}

class Memory {
 public:
  static Memory& instance() {
    static Memory& memory = *new Memory;  // never destroyed: kernels may be compiled during static destruction
    return memory;
  }
  Mutex mutex{LockRow::tuned_schedules};  // never held while the disk is read
  std::map<std::string, TunedSchedule> cached;
  std::set<Sha256> missing;  // digests of keys for which the disk has no legal schedule
};

// Beyond this number the digests are dropped, and the disk is read again.
constexpr size_t kMaxMissing = 4096;

}  // namespace

std::string text_of(const TunedSchedule& tuned) {
  std::string text = join(kHeading, line_of(tuned.chosen), line_of(tuned.by_default));
  for (const TimedSchedule& other : tuned.others) text += line_of(other);
  return text;
}

std::optional<TunedSchedule> tuned_schedule_of(std::string_view text) {
  if (!text.starts_with(kHeading)) return std::nullopt;
  text.remove_prefix(kHeading.size());
  const std::optional<TimedSchedule> chosen = take_line(text), by_default = take_line(text);
  if (!chosen || !by_default) return std::nullopt;
  TunedSchedule tuned{*chosen, *by_default, {}};
  while (!text.empty()) {
    const std::optional<TimedSchedule> other = take_line(text);
    if (!other) return std::nullopt;
    tuned.others.push_back(*other);
  }
  return tuned;
}

namespace tuned_schedules {

std::optional<TunedSchedule> find(const kernel::Kernel& kernel, const Machine& machine) {
  Memory& memory = Memory::instance();
  const CodeCache* const disk = CodeCache::from_environment();
  std::string key;
  Sha256 digest;
  {
    const std::lock_guard lock(memory.mutex);
    if (disk == nullptr && memory.cached.empty()) return std::nullopt;
    key = key_of(kernel, machine);
    if (const auto known = memory.cached.find(key); known != memory.cached.end()) return known->second;
    digest = sha256(key, {});
    if (disk == nullptr || memory.missing.contains(digest)) return std::nullopt;
  }
  const std::optional<std::string> text = disk->find(key);
  std::optional<TunedSchedule> tuned = text ? tuned_schedule_of(*text) : std::nullopt;
  if (tuned && !legal_schedules(kernel, machine).contains(tuned->chosen.schedule)) tuned = std::nullopt;
  const std::lock_guard lock(memory.mutex);
  // What another thread has stored meanwhile is newer.
  if (const auto known = memory.cached.find(key); known != memory.cached.end()) return known->second;
  if (tuned) {
    memory.cached.emplace(key, *tuned);
  } else {
    if (memory.missing.size() >= kMaxMissing) memory.missing.clear();
    memory.missing.insert(digest);
  }
  return tuned;
}

void store(const kernel::Kernel& kernel, const Machine& machine, const TunedSchedule& tuned) {
  Memory& memory = Memory::instance();
  const std::string key = key_of(kernel, machine);
  if (const CodeCache* const disk = CodeCache::from_environment()) disk->store(key, text_of(tuned));
  const std::lock_guard lock(memory.mutex);
  memory.cached.insert_or_assign(key, tuned);
}

void forget() {
  Memory& memory = Memory::instance();
  const std::lock_guard lock(memory.mutex);
  memory.cached.clear();
  memory.missing.clear();
}

}  // namespace tuned_schedules

}  // namespace lamina::cpu
