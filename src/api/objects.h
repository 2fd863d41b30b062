// What stands behind the opaque handles of graph/lamina.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/compile.h"
#include "backends/backend.h"
#include "graph/lamina.h"
#include "interface/graph.h"
#include "interface/partition.h"

struct lamina_graph_allocator {
  lamina::Allocator callbacks;
};

struct lamina_engine {
  lamina::EngineKind kind = lamina::EngineKind::cpu;
  const lamina::Backend* backend = nullptr;
  lamina::Allocator allocator;
};

// Keeps what it needs of its engine, so that either may be destroyed first.
struct lamina_stream {
  lamina::Allocator allocator;
};

struct lamina_graph_op {
  uint64_t id = 0;
  lamina::OpKind kind = lamina::OpKind::Wildcard;
  std::string name;
  lamina::Attributes attributes;
  std::vector<lamina::LogicalTensor> inputs, outputs;
};

struct lamina_graph_graph {
  uint64_t id = 0;
  lamina::Graph graph;
  bool filtered = false;
  std::vector<lamina::Partition> partitions;
};

struct lamina_graph_partition {
  lamina::Partition partition;
  lamina::EngineKind engine_kind = lamina::EngineKind::cpu;
};

struct lamina_graph_compiled_partition {
  uint64_t partition_id = 0;
  std::unique_ptr<const lamina::api::CompiledPartition> compiled;  // null until compile filled it
  std::vector<lamina_graph_inplace_pair_t> inplace_pairs;
};

struct lamina_graph_tensor {
  lamina::LogicalTensor tensor;
  lamina::Allocator allocator;  // the engine's
  void* memory = nullptr;
  std::shared_ptr<void> owned;  // memory that lamina allocated; empty when it is the caller's
};
