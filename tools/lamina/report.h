// The results of a replay, and their JSON for programs. report_table.h prints them for people.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "lamina/check.h"

namespace lamina::driver {

struct PartitionReport {
  uint64_t id = 0;
  std::vector<uint64_t> ops;
  std::vector<std::string> kinds;
  std::string backend;  // "" if the partition is not supported
  std::vector<std::string> kernels;
  std::vector<std::string> schedules;  // of kernels with several possible schedules
  int64_t required_bytes = 0;
  int64_t moved_bytes = 0;
  size_t arena_bytes = 0;      // values between the steps, with memory reused by lifetime
  size_t workspace_bytes = 0;  // the arena and the scratch memory of steps, for all threads
  double compile_ms = 0;
  std::optional<double> cached_compile_ms;
  std::optional<double> median_us;
  std::optional<CheckResult> check;
  std::string problem;  // one sentence: why it could not be compiled or executed

  std::optional<double> gigabytes_per_second() const;
  // The peak memory of an execution: its ports and its workspace, without cached packed weights.
  size_t peak_bytes() const { return static_cast<size_t>(required_bytes) + workspace_bytes; }
};

struct FileReport {
  std::string file;
  std::string engine;  // the engine that the graph was partitioned for
  size_t op_count = 0;
  std::vector<PartitionReport> partitions;
  std::vector<std::string> warnings;

  bool good() const;
  std::string verdict() const;  // "ok", "ran" (not compared), "wrong", "unsupported"
  size_t kernel_count() const;
  double compile_ms() const;
  std::optional<double> cached_compile_ms() const;
  std::optional<double> median_us() const;  // summed over all partitions
  std::optional<double> gigabytes_per_second() const;
  std::optional<CheckResult> check() const;
};

// The engines that ran: `cpu` or `cpu, gpu`.
std::string engines_of(const std::vector<FileReport>& files);

struct RunSettings {
  std::string engine, policy;
  int threads = 0;
  uint64_t seed = 0;
};

// The version of the JSON, which docs/report.schema.json describes. It changes when a member is removed or gets another
// meaning.
inline constexpr int kReportSchema = 1;

void write_report(std::ostream& out, const std::vector<FileReport>& files, const RunSettings& settings);

}  // namespace lamina::driver
