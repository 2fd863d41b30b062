#include "caches.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <system_error>

#include "buffers.h"

namespace bench {

namespace {

constexpr size_t kMiB = size_t{1} << 20, kLine = 64;
constexpr double kMinOfMemory = 50;  // in nanoseconds: no memory has a lower latency

// Bytes of a text such as "32768K"; 0 if it is not understood.
size_t bytes_of(const std::string& text) {
  size_t end = 0;
  const unsigned long value = text.empty() || text.front() < '0' || text.front() > '9' ? 0 : std::stoul(text, &end);
  const char unit = end < text.size() ? text[end] : ' ';
  return value * (unit == 'K' ? 1024 : unit == 'M' ? kMiB : 1);
}

std::string word_of(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// Uses huge pages if the system provides them. TLB misses of small pages, twice on a virtual machine, cost as much as memory
// accesses.
Buffer in_large_pages(size_t bytes) {
  try {
    return Buffer(bytes, Memory::huge_pages);
  } catch (const std::system_error&) {
    return Buffer(bytes);
  }
}

// Cache lines in one random cycle: the first word of each is the index of the next one.
class Cycle {
 public:
  explicit Cycle(size_t bytes) : buffer_(in_large_pages(bytes)), lines_(bytes / kLine) {
    std::vector<uint32_t> order(lines_);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), std::minstd_rand(1));
    for (size_t i = 0; i < lines_; ++i) word_of_line(order[i]) = order[(i + 1) % lines_];
  }

  size_t lines() const { return lines_; }

  // Continues from the last position. Returns nanoseconds per load.
  double follow(size_t loads) {
    const auto start = std::chrono::steady_clock::now();
    uint32_t at = at_;
    for (size_t i = 0; i < loads; ++i) at = word_of_line(at);
    asm volatile("" : "+r"(at));  // keeps the loads
    at_ = at;
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() /
           static_cast<double>(loads);
  }

 private:
  uint32_t& word_of_line(uint32_t line) { return static_cast<uint32_t*>(buffer_.data())[line * (kLine / sizeof(uint32_t))]; }

  Buffer buffer_;
  size_t lines_;
  uint32_t at_ = 0;
};

LatencyStep measured_step(size_t bytes) {
  constexpr size_t kLoads = 200'000;
  Cycle cycle(bytes);
  cycle.follow(cycle.lines());  // fills the caches, as far as the lines fit
  double best = cycle.follow(kLoads);
  for (int again = 0; again < 2; ++again) best = std::min(best, cycle.follow(kLoads));
  return {bytes, best};
}

}  // namespace

CacheSizes told_by_sysfs() {
  CacheSizes sizes;
  int highest = 0;
  for (int index = 0; index < 16; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    const std::string level = word_of(folder + "level"), type = word_of(folder + "type");
    if (level.empty() || type == "Instruction") continue;
    const size_t bytes = bytes_of(word_of(folder + "size"));
    const int number = level.front() - '0';
    if (number == 1) sizes.first_data = bytes;
    if (number == 2) sizes.second = bytes;
    if (number > highest) {
      highest = number;
      sizes.last = bytes;
    }
  }
  return sizes;
}

CacheSizes told_by_sysconf() {
  const auto told = [](int name) { return static_cast<size_t>(std::max(0L, sysconf(name))); };
  CacheSizes sizes{told(_SC_LEVEL1_DCACHE_SIZE), told(_SC_LEVEL2_CACHE_SIZE), told(_SC_LEVEL3_CACHE_SIZE)};
  if (sizes.last == 0) sizes.last = sizes.second;
  return sizes;
}

const std::vector<LatencyStep>& measured_latencies() {
  static const std::vector<LatencyStep> steps = [] {
    std::vector<LatencyStep> least;
    for (size_t bytes = kMiB; bytes <= 256 * kMiB; bytes *= 2) least.push_back(measured_step(bytes));
    // Another program may have used the cache meanwhile.
    for (int again = 0; again < 2 && size_by_latencies(least) < told_by_sysfs().last / 2; ++again) {
      for (LatencyStep& step : least) step.nanoseconds = std::min(step.nanoseconds, measured_step(step.bytes).nanoseconds);
    }
    return least;
  }();
  return steps;
}

size_t size_by_latencies(std::span<const LatencyStep> steps) {
  if (steps.empty() || steps.back().nanoseconds < kMinOfMemory) return 0;
  size_t held = 0;
  for (const LatencyStep& step : steps) {
    if (step.nanoseconds < steps.back().nanoseconds / 2) held = std::max(held, step.bytes);
  }
  return held;
}

size_t judged_last_level(size_t told, size_t measured) {
  if (told == 0 && measured == 0) return 32 * kMiB;
  if (told == 0 || measured == 0) return std::max(told, measured);
  return measured < told / 16 || measured > 2 * told ? measured : told;
}

size_t last_level_cache() {
  static const size_t bytes = [] {
    const size_t sysfs = told_by_sysfs().last;
    return judged_last_level(sysfs != 0 ? sysfs : told_by_sysconf().last, size_by_latencies(measured_latencies()));
  }();
  return bytes;
}

}  // namespace bench
