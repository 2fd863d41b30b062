// What there is to tell of a graph that was partitioned and, perhaps, compiled and timed: names, texts and numbers alone. The
// one source of `lamina explain`, `lamina show` and Python's explain(); compiler/explain.h fills it.
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
  std::string property = {};           // "constant", ..., "" where nothing is said
  std::string value = {};              // of a constant of which every element is known
  int producer = -1;                   // position of an op, -1: the graph takes it
  std::vector<size_t> consumers = {};  // positions of ops, each once
  bool is_output = false;
};

struct ExplainedPort {
  std::string name;
  int tensor = -1;  // position in ExplainedGraph::tensors, -1: left out
};

struct ExplainedReason {
  std::string code, text;
  std::optional<uint64_t> other_op;  // id of the op that it speaks of
};

struct ExplainedOp {
  uint64_t id = 0;
  std::string kind, name;
  std::string text;  // `LayerNorm "ln0"`
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<ExplainedPort> inputs, outputs;
  std::vector<ExplainedReason> reasons;
  size_t partition = 0;              // position in ExplainedGraph::partitions
  std::vector<size_t> kernels = {};  // of its partition, those that compute it; empty: not told apart
};

struct ExplainedKernel {
  std::string name;
  std::string schedule;  // "" where there is one way to run it
  std::string text;      // what its step computes; with the step's first kernel alone
};

// Ops that run tile after tile, or a product that does not.
struct ExplainedTiles {
  std::string text;  // "tiled: 4 tiles of 64 rows, ..."
  std::string sums;  // what tiles add to, "" for nothing
};

// What a run found out.
struct PartitionTimes {
  std::optional<double> median_us, gigabytes_per_second, compile_ms;
  std::string verdict;  // of the check, "" where there was none
};

struct ExplainedPartition {
  uint64_t id = 0;
  std::string ops_text;  // `LayerNorm "ln0" + GELU "g"`
  std::vector<size_t> ops;
  std::vector<uint64_t> user_ops;  // ids, those that passes took into others too
  bool supported = true;
  std::string problem;  // why there is no code, "" where there is some or nothing was compiled
  std::string backend;  // "" where nothing was compiled
  std::vector<ExplainedKernel> kernels;
  std::vector<ExplainedTiles> tiles;
  std::optional<int64_t> required_bytes, moved_bytes, workspace_bytes;
  std::optional<PartitionTimes> times;
};

struct ExplainedGraph {
  std::string title;
  std::string backend;
  size_t given_ops = 0;  // of the user's graph
  bool compiled = false;
  std::vector<std::string> warnings;
  std::vector<ExplainedTensor> tensors;
  std::vector<ExplainedOp> ops;                // of the canonical graph, in an order in which they can run
  std::vector<ExplainedPartition> partitions;  // likewise
};

}  // namespace lamina
