// What stands behind the opaque handles of graph/lamina.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/thread_pool.h"
#include "compiler/compiled_partition.h"
#include "graph/lamina.h"
#include "interface/graph.h"
#include "interface/partition.h"

struct lamina_graph_allocator {
  lamina::Allocator callbacks;
  // Of a device; the engine that is made with them closes over its device and context.
  void* (*ocl_allocate)(size_t, size_t, struct _cl_device_id*, struct _cl_context*) = nullptr;
  void (*ocl_deallocate)(void*, struct _cl_device_id*, struct _cl_context*, struct _cl_event*) = nullptr;
  void* (*cuda_allocate)(size_t, size_t, int, struct CUctx_st*) = nullptr;
  void (*cuda_deallocate)(void*, int, struct CUctx_st*) = nullptr;
};

struct lamina_engine {
  lamina::EngineKind kind = lamina::EngineKind::cpu;
  const lamina::Backend* backend = nullptr;
  std::shared_ptr<const lamina::Backend> device;  // holds the backend of a GPU
  lamina::Allocator allocator;
  std::optional<lamina::ThreadPool> pool;                // the caller's threads, in place of OpenMP's
  std::shared_ptr<const lamina::Backend> made_for_pool;  // holds the backend then
};

// Keeps what it needs of its engine, so that either may be destroyed first.
struct lamina_stream {
  lamina::Allocator allocator;
  std::shared_ptr<const lamina::Backend> device;  // null on the CPU, where nothing is left to wait for
  void* native = nullptr;                         // CUstream or cl_command_queue; null: the backend's own
  std::optional<lamina::ThreadPool> pool;         // the engine's
  lamina_engine* engine = nullptr;                // what the caller gave; never used here
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
  std::unique_ptr<const lamina::compiler::CompiledPartition> compiled;  // null until compile filled it
  std::vector<lamina_graph_inplace_pair_t> inplace_pairs;
  std::shared_ptr<const lamina::Backend> device;  // of the GPU engine that it was compiled for
};

struct lamina_graph_tensor {
  lamina::LogicalTensor tensor;
  lamina::Allocator allocator;                    // the engine's
  std::shared_ptr<const lamina::Backend> device;  // of a GPU engine
  void* memory = nullptr;
  std::shared_ptr<void> owned;      // memory that lamina allocated; empty when it is the caller's
  lamina_engine* engine = nullptr;  // what the caller gave; never used here. Null: a host scalar
};
