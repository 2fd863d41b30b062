// The explanation of a graph that has been partitioned and possibly compiled and timed, as plain names, texts and numbers. It
// is the only source of `lamina explain`, `lamina show` and Python's explain(); compiler/explain.h fills it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lamina {

struct ExplainedTensor {
  uint64_t id = 0;
  std::string text;                    // "f32[8, 64]"
  std::string layout = {};             // "strides [64, 1]", "layout any"
  std::string property = {};           // "constant", ..., "" for undef
  std::string value = {};              // of a constant whose elements are all known
  int producer = -1;                   // position of an op; -1: a graph input
  std::vector<size_t> consumers = {};  // positions of ops, without duplicates
  bool is_output = false;
};

struct ExplainedPort {
  std::string name;
  int tensor = -1;  // position in ExplainedGraph::tensors; -1: an omitted port
};

struct ExplainedReason {
  std::string code, text;
  std::optional<uint64_t> other_op;  // id of the other op that the reason concerns
};

struct ExplainedOp {
  uint64_t id = 0;
  std::string kind, name;
  std::string text;  // `LayerNorm "ln0"`
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<ExplainedPort> inputs, outputs;
  std::vector<ExplainedReason> reasons;
  size_t partition = 0;              // position in ExplainedGraph::partitions
  std::vector<size_t> kernels = {};  // kernels of its partition that compute it; empty: unknown
};

struct ExplainedKernel {
  std::string name;
  std::string schedule;  // "" if only one schedule exists
  std::string text;      // what its step computes; set only for the step's first kernel
  int step = -1;         // position in ExplainedPartition::steps; -1: the backend does not measure its steps
};

// Means over the executions of a profile, in microseconds.
struct ProfiledTimes {
  double us = 0, idle_us = 0, bound_us = 0;
  std::string bound;  // of a step: "memory" or "fma"
};

// Kernels whose time is measured together.
struct ExplainedStep {
  std::string name;
  int64_t bytes = 0;      // that it must move
  double arithmetic = 0;  // operations on numbers
  std::optional<ProfiledTimes> times = {};
};

// Ops that run tile by tile, or a product that is not tiled.
struct ExplainedTiles {
  std::string text;              // "tiled: 4 tiles of 64 rows, ..."
  std::string sums;              // what the tiles accumulate into; "" for nothing
  std::vector<size_t> ops = {};  // positions of the ops in ExplainedGraph::ops; empty if nothing is tiled
};

// The measurements of a run: of a replay, or of a profile.
struct PartitionTimes {
  std::optional<double> median_us = {}, gigabytes_per_second = {}, compile_ms = {};
  std::string verdict = {};  // of the check; "" without a check
  std::optional<ProfiledTimes> profiled = {};

  std::optional<double> microseconds() const { return profiled ? std::optional(profiled->us) : median_us; }
};

struct ExplainedPartition {
  uint64_t id = 0;
  std::string label;     // "partition 3: LayerNorm + GELU"
  std::string ops_text;  // `LayerNorm "ln0" + GELU "g"`
  std::vector<size_t> ops;
  std::vector<uint64_t> user_ops;  // ids, including ops that passes have merged into others
  bool supported = true;
  std::string problem;  // why there is no code; "" if there is code or nothing was compiled
  std::string backend;  // "" if nothing was compiled
  std::vector<ExplainedKernel> kernels;
  std::vector<ExplainedStep> steps;  // of the compiled code, in order
  std::vector<ExplainedTiles> tiles;
  std::optional<int64_t> required_bytes, moved_bytes, workspace_bytes;
  std::optional<PartitionTimes> times;
};

struct ExplainedGraph {
  std::string title;
  std::string backend;
  size_t given_ops = 0;  // the number of ops in the user's graph
  bool compiled = false;
  std::vector<std::string> warnings;
  std::vector<ExplainedTensor> tensors;
  std::vector<ExplainedOp> ops;                // of the canonical graph, in topological order
  std::vector<ExplainedPartition> partitions;  // in topological order
};

}  // namespace lamina
