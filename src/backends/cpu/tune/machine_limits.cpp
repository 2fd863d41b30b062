#include "backends/cpu/tune/machine_limits.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "backends/cpu/tune/kernel_timer.h"
#include "handles/locks.h"
#include "kernels/builder.h"

namespace lamina::cpu {

namespace {

using kernel::Kernel;
using kernel::Value;

constexpr int64_t kRow = 1024;
constexpr double kSpan = 40;  // milliseconds per measurement: its fastest call counts, so that other programs disturb it less

int add_src(kernel::Builder& k) {
  return k.add_arg({.name = "src", .dtype = DataType::f32, .output = false, .strides = {kRow, 1}, .table = {}});
}

Kernel sums(int64_t rows) {
  kernel::Builder k("sums", {rows, kRow}, 1);
  const Value sum = k.reduce(kernel::Reduction::sum, k.load(add_src(k)));
  k.store(sum, k.add_arg({.name = "dst", .dtype = DataType::f32, .output = true, .strides = {1, 0}, .table = {}}));
  return k.finish();
}

// A tree with `leaves` leaves of three multiply-adds each, of which any order of evaluation leaves many independent ones in
// flight. A few long chains would not: the code generator may well compute one after the other.
constexpr int kOfLeaf = 3;
int operations_of_tree(int leaves) { return kOfLeaf * leaves + leaves - 1; }

Kernel multiply_adds(int64_t rows, int leaves) {
  kernel::Builder k("multiply_adds", {rows, kRow}, 1);
  const Value src = k.load(add_src(k));
  std::vector<Value> level;
  for (int leaf = 0; leaf < leaves; ++leaf) {
    Value value = k.constant(leaf + 1, kernel::Type::f32);
    for (int i = 0; i < kOfLeaf; ++i) value = fma(value, src, src);
    level.push_back(value);
  }
  for (; level.size() > 1; level.resize(level.size() / 2))
    for (size_t i = 0; i < level.size() / 2; ++i) level[i] = fma(level[2 * i], src, level[2 * i + 1]);
  k.store(level[0], k.add_arg({.name = "dst", .dtype = DataType::f32, .output = true, .strides = {kRow, 1}, .table = {}}));
  return k.finish();
}

double seconds(const Kernel& kernel, const Machine& machine) {
  KernelTimer timer(kernel, machine);
  Schedule schedule;
  schedule.vector_bits = vector_bits(machine);
  return 1e-6 * timer.time(KernelRunner(kernel, machine, schedule), kSpan);
}

double read_bytes_per_second(const Machine& machine) {
  constexpr double kMostBytes = 96 << 20;
  const double bytes = std::clamp(4 * static_cast<double>(machine.caches.last), 16e6, kMostBytes);
  const auto rows = static_cast<int64_t>(bytes) / (4 * kRow);
  KernelTimer timer(sums(rows), machine);
  double best = 0;
  for (const bool prefetches : {false, true}) {
    Schedule schedule;
    schedule.vector_bits = vector_bits(machine);
    if (prefetches) schedule.prefetched_within_row = {0};
    const double microseconds = timer.time(KernelRunner(sums(rows), machine, schedule), kSpan);
    best = std::max(best, static_cast<double>(rows) * 4 * kRow / (1e-6 * microseconds));
  }
  return best;
}

// The difference between two trees, without the loads, the stores and the start of the threads.
double operations_per_second(const Machine& machine) {
  constexpr int kMore = 32, kFewer = 8;  // leaves
  const int64_t rows = int64_t{4} * machine.cores;
  const double extra = seconds(multiply_adds(rows, kMore), machine) - seconds(multiply_adds(rows, kFewer), machine);
  return 2.0 * (operations_of_tree(kMore) - operations_of_tree(kFewer)) * static_cast<double>(rows * kRow) /
         std::max(extra, 1e-9);
}

}  // namespace

const MachineLimits& limits_of(const Machine& machine) {
  static Mutex mutex{LockRow::machine_limits};
  static std::map<int, MachineLimits> measured;  // by number of cores
  const std::lock_guard lock(mutex);
  const auto found = measured.find(machine.cores);
  if (found != measured.end()) return found->second;
  const MachineLimits limits{machine.cores, read_bytes_per_second(machine), operations_per_second(machine)};
  return measured.emplace(machine.cores, limits).first->second;
}

}  // namespace lamina::cpu
