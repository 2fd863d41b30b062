#include "compiler/profile.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>

#include "interface/per_thread.h"
#include "interface/status.h"

namespace lamina::compiler {

namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The reference runs a partition as one step.
std::vector<StepWork> steps_of(const CompiledPartition& partition) {
  const ExecutableInfo& info = partition.info();
  if (!info.steps.empty()) return info.steps;
  return {{.name = join(info.backend, ": ", partition.label()), .bytes = info.required_bytes}};
}

// Without memory, the times are not kept: the execution itself has ended well.
void keep(std::vector<Profile::Execution>& executions, Profile::Execution execution) {
  try {
    executions.push_back(std::move(execution));
  } catch (const std::bad_alloc&) {
  }
}

// The executions that are not slower than the median.
std::vector<const Profile::Execution*> fast_executions(const std::vector<Profile::Execution>& all) {
  std::vector<const Profile::Execution*> sorted;
  for (const Profile::Execution& execution : all) sorted.push_back(&execution);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto* a, const auto* b) { return a->end - a->begin < b->end - b->begin; });
  sorted.resize((sorted.size() + 1) / 2);
  return sorted;
}

void set_bound(StepProfile& step, const MachineLimits& limits) {
  const double memory = static_cast<double>(step.work.bytes) / limits.read_bytes_per_second;
  const double arithmetic = step.work.arithmetic / limits.operations_per_second;
  step.is_bound_by_memory = memory >= arithmetic;
  step.bound_microseconds = 1e6 * step.runs * std::max(memory, arithmetic);
}

PartitionProfile summary_of(const Profile::PartitionTimes& times, const MachineLimits& limits) {
  PartitionProfile result{.label = times.label, .executions = times.count};
  for (const StepWork& work : times.steps) result.steps.push_back({.work = work});
  const auto executions = fast_executions(times.executions);
  const auto share = [&](int64_t nanoseconds) {
    return static_cast<double>(nanoseconds) * 1e-3 / static_cast<double>(executions.size());
  };
  for (const Profile::Execution* execution : executions) {
    int64_t last = execution->begin;
    for (const StepTime& time : execution->steps) {
      StepProfile& step = result.steps[time.step];
      step.microseconds += share(time.end - time.begin);
      step.idle_microseconds += share(time.begin - last);
      step.runs += 1.0 / static_cast<double>(executions.size());
      last = time.end;
    }
    result.microseconds += share(execution->end - execution->begin);
  }
  double busy = 0;
  for (StepProfile& step : result.steps) {
    set_bound(step, limits);
    busy += step.microseconds;
    result.bound_microseconds += step.bound_microseconds;
  }
  result.idle_microseconds = std::max(result.microseconds - busy, 0.0);
  return result;
}

}  // namespace

void Profile::execute(const CompiledPartition& partition, const ExecutionContext& context, std::span<const BoundTensor> inputs,
                      std::span<const BoundTensor> outputs) {
  const std::vector<StepWork> steps = steps_of(partition);
  PartitionTimes& times = times_of(partition, steps);
  Execution execution;
  execution.steps.reserve(steps.size());
  ExecutionContext measured = context;
  measured.step_times = &execution.steps;
  execution.begin = now();
  partition.execute(measured, inputs, outputs);
  execution.end = now();
  if (partition.info().steps.empty()) execution.steps.push_back({0, execution.begin, execution.end});
  const std::lock_guard lock(mutex_);
  ++times.count;
  if (times.executions.size() < kKept) keep(times.executions, std::move(execution));
}

Profile::PartitionTimes& Profile::times_of(const CompiledPartition& partition, const std::vector<StepWork>& steps) {
  const std::lock_guard lock(mutex_);
  const auto [first, last] = partitions_.equal_range(partition.label());
  const auto found = std::find_if(first, last, [&](const auto& entry) { return entry.second.steps == steps; });
  if (found != last) return found->second;
  PartitionTimes times{.label = partition.label(), .steps = steps, .order = partitions_.size()};
  return partitions_.emplace(partition.label(), std::move(times))->second;
}

std::vector<Profile::PartitionTimes> Profile::partitions() const {
  std::vector<PartitionTimes> sorted;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [label, times] : partitions_) sorted.push_back(times);
  }
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.order < b.order; });
  return sorted;
}

std::vector<PartitionProfile> summary_of(const Profile& profile, const MachineLimits& limits) {
  std::vector<PartitionProfile> summaries;
  for (const Profile::PartitionTimes& times : profile.partitions()) summaries.push_back(summary_of(times, limits));
  return summaries;
}

}  // namespace lamina::compiler
