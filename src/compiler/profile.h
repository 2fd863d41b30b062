// The times of the steps of compiled partitions, and how close each step comes to what the machine can do.
//
// A step can not be faster than reading and writing its bytes at the bandwidth of main memory, nor than its arithmetic at the
// peak of fused multiply-adds: the longer of the two is its bound. Data that fit the caches can make a step faster than that.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "compiler/compiled_partition.h"
#include "handles/locks.h"

namespace lamina::compiler {

// Collects the times of executions, also of several threads at once.
class Profile {
 public:
  // Executes the partition and adds the times of its steps, which have ended when its execution returns. Throws Error as
  // CompiledPartition::execute.
  void execute(const CompiledPartition& partition, const ExecutionContext& context, std::span<const BoundTensor> inputs,
               std::span<const BoundTensor> outputs);

  struct Execution {
    int64_t begin = 0, end = 0;  // nanoseconds
    std::vector<StepTime> steps;
  };
  struct PartitionTimes {
    std::string label;
    std::vector<StepWork> steps;
    size_t order = 0;                        // of the first execution, among the partitions
    std::vector<Execution> executions = {};  // the first kKept ones
    int64_t count = 0;                       // of all
  };
  static constexpr size_t kKept = 1000;

  std::vector<PartitionTimes> partitions() const;  // in the order of their first executions

 private:
  PartitionTimes& times_of(const CompiledPartition& partition, const std::vector<StepWork>& steps);

  mutable Mutex mutex_{LockRow::profile};
  std::multimap<std::string, PartitionTimes> partitions_;  // by label, which may have several sets of shapes
};

// The means of the executions of one partition that are not slower than the median, so that disturbances do not count.
struct StepProfile {
  StepWork work;
  double microseconds = 0, idle_microseconds = 0;  // idle: since the end of the step before, or the begin of the execution
  double runs = 0;                                 // per execution: below 1 if its result is kept
  double bound_microseconds = 0;
  bool is_bound_by_memory = true;  // else by arithmetic
  double of_bound() const { return microseconds > 0 ? bound_microseconds / microseconds : 0; }
};

struct PartitionProfile {
  std::string label;
  int64_t executions = 0;
  double microseconds = 0;  // of an execution: the sum over the steps, all idle time included
  double idle_microseconds = 0, bound_microseconds = 0;
  std::vector<StepProfile> steps = {};  // in order
};

std::vector<PartitionProfile> summary_of(const Profile& profile, const MachineLimits& limits);

// A table of at most 80 columns: what all partitions take and how much of the bound they reach, then each step, the longest
// first. `title` is a file or a model.
std::string profile_table(const Profile& profile, const MachineLimits& limits, const std::string& title);

// The version of the JSON, which docs/profile.schema.json describes. It changes when a member is removed or gets another
// meaning.
inline constexpr int kProfileSchema = 1;

std::string profile_json(const Profile& profile, const MachineLimits& limits, const std::string& title);

// Chrome's trace event format, which Perfetto reads: an event for each step of the kept executions, one track per partition.
std::string profile_trace(const Profile& profile);

}  // namespace lamina::compiler
