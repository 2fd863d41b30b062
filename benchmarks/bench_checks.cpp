// Checks assumptions of the benchmarks: how they judge cache sizes, and how their buffers are placed. This is a test; its
// measurements are not asserted.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "buffers.h"
#include "caches.h"

namespace bench {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "bench_checks: not so: %s\n", what.c_str());
  ++failures;
}

void latencies_tell_what_a_cache_holds() {
  const std::vector<LatencyStep> steps = {{kMiB, 5}, {16 * kMiB, 20}, {32 * kMiB, 45}, {64 * kMiB, 95}, {256 * kMiB, 110}};
  expect(size_by_latencies(steps) == 32 * kMiB, "loads of 45 ns where memory takes 110 come from a cache");
  const std::vector<LatencyStep> held = {{kMiB, 5}, {256 * kMiB, 30}};
  expect(size_by_latencies(held) == 0, "where the largest step is held by a cache, nothing is known");
  expect(size_by_latencies({}) == 0, "without a measurement nothing is known");
}

void what_is_told_yields_to_what_was_measured() {
  expect(judged_last_level(32 * kMiB, 32 * kMiB) == 32 * kMiB, "both agree");
  expect(judged_last_level(32 * kMiB, 2 * kMiB) == 32 * kMiB, "a sixteenth is no contradiction: neighbours share");
  expect(judged_last_level(480 * kMiB, 16 * kMiB) == 16 * kMiB, "480 MiB told, 16 found");
  expect(judged_last_level(kMiB, 32 * kMiB) == 32 * kMiB, "a level that was not told of");
  expect(judged_last_level(480 * kMiB, 0) == 480 * kMiB, "nothing found, so what is told");
  expect(judged_last_level(0, 64 * kMiB) == 64 * kMiB, "nothing told");
  expect(judged_last_level(0, 0) == 32 * kMiB, "nothing known");
}

void this_machine_has_caches() {
  const CacheSizes told = told_by_sysfs();
  expect(told.last >= told.second && told.second >= told.first_data, "each level is at least as large as the one before");
  for (const LatencyStep& step : measured_latencies())
    std::printf("%4zu MiB: %6.1f ns a load\n", step.bytes / kMiB, step.nanoseconds);
  std::printf("last level: %zu MiB (sysfs %zu, sysconf %zu, measured %zu)\n", last_level_cache() / kMiB, told.last / kMiB,
              told_by_sysconf().last / kMiB, size_by_latencies(measured_latencies()) / kMiB);
  expect(last_level_cache() >= kMiB / 4 && last_level_cache() <= 8192 * kMiB, "a last level of 256 KiB to 8 GiB");
}

uint64_t place_in_page(const Buffer& buffer) { return reinterpret_cast<uintptr_t>(buffer.data()) % 4096; }

void buffers_lie_where_they_should() {
  for (const Memory memory : {Memory::as_given, Memory::small_pages}) {
    expect(place_in_page(Buffer(100, memory)) == 0, name_of(memory) + std::string(": begins a page"));
  }
  const Buffer one(5 * kMiB, Memory::lines), other(5 * kMiB, Memory::lines);
  expect(place_in_page(one) != 0 && place_in_page(one) % 64 == 0, "lines: begins a line and no page");
  expect(place_in_page(one) != place_in_page(other), "lines: tensors begin at different places of their pages");
  auto* const bytes = static_cast<char*>(one.data());
  bytes[0] = bytes[5 * kMiB - 1] = 1;
  expect(bytes[1] == 0 && bytes[5 * kMiB - 2] == 0, "lines: all of it is there");
}

}  // namespace
}  // namespace bench

int main() {
  bench::latencies_tell_what_a_cache_holds();
  bench::what_is_told_yields_to_what_was_measured();
  bench::this_machine_has_caches();
  bench::buffers_lie_where_they_should();
  return bench::failures == 0 ? 0 : 1;
}
