#include "backends/cpu/tune/kernel_timer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "backends/tune/tune_plan.h"
#include "interface/data_type.h"

namespace lamina::cpu {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kAlignment = 64;
constexpr double kShortestSpan = 20;  // microseconds, which the clock measures accurately enough

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

}  // namespace

KernelTimer::KernelTimer(const kernel::Kernel& kernel, const Machine& machine) : kernel_(kernel), executor_(machine.cores) {
  constexpr int64_t kPattern = 4096;  // elements, after which the pattern repeats
  for (const kernel::Arg& arg : kernel.args) {
    const int64_t elements = span_of(kernel, arg);
    const auto bytes = static_cast<size_t>(bytes_of(arg.dtype, elements));
    const std::vector<std::byte> pattern =
        ordinary_values(kernel, arg, std::max<int64_t>(kPattern, static_cast<int64_t>(arg.table.size())));
    args_.push_back(std::make_unique<HostBlock>(bytes + kAlignment, kAlignment, nullptr));
    auto* const memory = static_cast<std::byte*>(args_.back()->memory());
    const auto copies = static_cast<int64_t>((bytes + pattern.size() - 1) / pattern.size());
    executor_.run(
        1, Scheduling::static_ranges, [&](int64_t) { return copies; },
        [&](const Piece& piece) {
          for (int64_t copy = piece.begin; copy < piece.end; ++copy) {
            const size_t at = static_cast<size_t>(copy) * pattern.size();
            std::memcpy(memory + at, pattern.data(), std::min(pattern.size(), bytes - at));
          }
        });
    pointers_.push_back(memory);
  }
}

void KernelTimer::run(const KernelRunner& runner) { runner.run(pointers_, scratch_->memory(), executor_); }

double KernelTimer::time(const KernelRunner& runner, double milliseconds) {
  if (scratch_ == nullptr || scratch_bytes_ < runner.scratch_bytes()) {
    scratch_bytes_ = runner.scratch_bytes();
    scratch_ = std::make_unique<HostBlock>(scratch_bytes_ + kAlignment, kAlignment, nullptr);
  }
  const Clock::time_point start = Clock::now();
  run(runner);
  const int calls = static_cast<int>(std::clamp(kShortestSpan / std::max(microseconds_since(start), 0.01), 1.0, 1000.0));
  double least = std::numeric_limits<double>::max();
  do {
    const Clock::time_point before = Clock::now();
    for (int call = 0; call < calls; ++call) run(runner);
    least = std::min(least, microseconds_since(before) / calls);
  } while (microseconds_since(start) < milliseconds * 1000);
  return least;
}

TimePair KernelTimer::time_in_turns(const KernelRunner& first, const KernelRunner& second, int rounds, double milliseconds) {
  return lamina::time_in_turns([&] { return time(first, milliseconds); }, [&] { return time(second, milliseconds); }, rounds);
}

}  // namespace lamina::cpu
