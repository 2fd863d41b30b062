// The objects that the opaque handles of graph/lamina.h point to.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/thread_pool.h"
#include "compiler/compiled_partition.h"
#include "compiler/profile.h"
#include "graph/lamina.h"
#include "interface/graph.h"
#include "interface/partition.h"

struct lamina_graph_allocator {
  lamina::Allocator callbacks;
  // Callbacks for device memory; an engine created with them binds its device and context.
  void* (*ocl_allocate)(size_t, size_t, struct _cl_device_id*, struct _cl_context*) = nullptr;
  void (*ocl_deallocate)(void*, struct _cl_device_id*, struct _cl_context*, struct _cl_event*) = nullptr;
  void* (*cuda_allocate)(size_t, size_t, int, struct CUctx_st*) = nullptr;
  void (*cuda_deallocate)(void*, int, struct CUctx_st*) = nullptr;
};

struct lamina_engine {
  lamina::EngineKind kind = lamina::EngineKind::cpu;
  const lamina::Backend* backend = nullptr;
  std::shared_ptr<const lamina::Backend> device;  // owns the backend of a GPU
  lamina::Allocator allocator;
  std::optional<lamina::ThreadPool> pool;                // the caller's threads, in place of OpenMP's
  std::shared_ptr<const lamina::Backend> made_for_pool;  // owns the backend if `pool` is set
};

// Copies what it needs from its engine, so that either may be destroyed first.
struct lamina_stream {
  lamina::Allocator allocator;
  std::shared_ptr<const lamina::Backend> device;                 // null on the CPU, where execution is synchronous
  void* native = nullptr;                                        // CUstream or cl_command_queue; null: the backend's own
  std::optional<lamina::ThreadPool> pool;                        // the engine's
  lamina_engine* engine = nullptr;                               // the caller's handle; only returned, never dereferenced
  std::unique_ptr<lamina::compiler::Profile> profile = nullptr;  // with the flag lamina_stream_profiling
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
  std::unique_ptr<const lamina::compiler::CompiledPartition> compiled;  // null until compile fills it
  std::vector<lamina_graph_inplace_pair_t> inplace_pairs;
  std::shared_ptr<const lamina::Backend> device;  // the device of the GPU engine that it was compiled for
};

struct lamina_graph_tensor {
  lamina::LogicalTensor tensor;
  lamina::Allocator allocator;                    // the engine's
  std::shared_ptr<const lamina::Backend> device;  // the device of a GPU engine
  void* memory = nullptr;
  std::shared_ptr<void> owned;      // memory that lamina allocated; empty for the caller's memory
  lamina_engine* engine = nullptr;  // the caller's handle, never dereferenced. Null: a host scalar
};
