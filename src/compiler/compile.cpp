#include "compiler/compile.h"

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "backends/cache/code_cache.h"
#include "backends/compile_progress.h"
#include "compiler/ports.h"
#include "compiler/verbose.h"
#include "interface/per_thread.h"
#include "interface/shared_elements.h"
#include "interface/status.h"
#include "passes/inner_layouts.h"
#include "passes/tiling/isolate_dequantize.h"

namespace lamina::compiler {

namespace {

void require_known_shapes(const std::string& label, const Graph& graph) {
  for (const Value& value : graph.values()) {
    if (value.tensor.has_full_shape()) continue;
    throw Error(Status::invalid_shape, join("compile of ", label, ": tensor ", value.tensor.id, " is still ",
                                            describe(value.tensor), " after inference, allowed is a known shape"));
  }
}

// The surviving value would depend on the order of writes.
void refuse_elements_in_one_place(const std::string& label, const LogicalTensor& output) {
  if (!elements_may_overlap(output)) return;
  const std::string tensor = join(describe(output), ", strides ", describe(output.strides));
  for (size_t axis = 0; axis < output.strides.size(); ++axis) {
    const int64_t extent = (*output.shape)[axis];
    if (output.strides[axis] != 0 || extent == 1) continue;
    throw Error(Status::invalid_arguments, join("compile of ", label, ": output ", output.id, " has stride 0 along axis ", axis,
                                                ", where ", extent, " elements would be written to the same address: ", tensor,
                                                "; allowed is stride 0 along axes of extent 1"));
  }
  throw Error(Status::invalid_arguments, join("compile of ", label, ": output ", output.id,
                                              " has strides that map several elements to the same address: ", tensor,
                                              "; allowed are strides that map each element to its own address"));
}

std::vector<LogicalTensor> tensors_of(const Graph& graph, const std::vector<ValueIndex>& values) {
  std::vector<LogicalTensor> tensors;
  for (const ValueIndex value : values) tensors.push_back(graph.tensor(value));
  return tensors;
}

// The partition as a separate graph, with the layouts that this backend prefers.
Subgraph subgraph_of(const Partition& partition, std::span<const LogicalTensor> inputs, std::span<const LogicalTensor> outputs,
                     const Backend& backend) {
  const std::string label = label_of(partition);
  if (!partition.supported) {
    throw Error(Status::unimplemented, join("compile of ", label, ": not supported: ", partition.unsupported_reason));
  }
  const PortTensors ports = joined_ports(label, partition, inputs, outputs);
  Subgraph subgraph = extract_subgraph(partition, ports.inputs, ports.outputs);
  require_known_shapes(label, subgraph.graph);
  for (const ValueIndex output : subgraph.outputs) refuse_elements_in_one_place(label, subgraph.graph.tensor(output));
  if (backend.plan_target() != nullptr) put_inner_channels_last(subgraph.graph, subgraph.outputs);
  return subgraph;
}

SharedExecutable compile_anew(const Partition& partition, std::span<const LogicalTensor> inputs,
                              std::span<const LogicalTensor> outputs, const Backend& backend, CompileRecord* record) {
  Subgraph subgraph = subgraph_of(partition, inputs, outputs, backend);
  dump_subgraph(subgraph.graph, partition.id);
  SharedExecutable made{tensors_of(subgraph.graph, subgraph.inputs), tensors_of(subgraph.graph, subgraph.outputs),
                        compile_subgraph(subgraph, backend, record)};
  if (record != nullptr) record->subgraph = std::move(subgraph);
  return made;
}

const Backend& backend_of(const Partition& partition, const Backend& engine) {
  return partition.runs_on_reference ? reference_backend() : engine;
}

// LAMINA_TUNE=1: every partition is tuned before it is compiled.
bool tunes_what_it_compiles() {
  static const bool does = [] {
    const char* const text = std::getenv("LAMINA_TUNE");
    return text != nullptr && std::string_view(text) == "1";
  }();
  return does;
}

}  // namespace

kernel::Plan plan_subgraph(const Subgraph& subgraph, const kernel::PlanTarget& target, Decisions* decisions) {
  Decisions made;
  made.groups = isolate_dequantize(
      subgraph.graph, fuse(subgraph.graph, std::vector<bool>(subgraph.graph.ops().size(), true), true, target.library),
      target.library);
  made.regions = target.tile_bytes > 0
                     ? tile_regions(subgraph.graph, made.groups, subgraph.outputs, {target.tile_bytes, target.library})
                     : one_by_one(made.groups.size());
  kernel::Plan plan = kernel::make_plan(subgraph.graph, subgraph.inputs, subgraph.outputs, made.groups, made.regions, target);
  if (decisions != nullptr) {
    made.ops_of_steps = kernel::ops_of_steps(plan);
    *decisions = std::move(made);
  }
  return plan;
}

PlannedPartition plan_partition(const Partition& partition, std::span<const LogicalTensor> inputs,
                                std::span<const LogicalTensor> outputs, const Backend& backend) {
  const Subgraph subgraph = subgraph_of(partition, inputs, outputs, backend);
  return {tensors_of(subgraph.graph, subgraph.inputs), tensors_of(subgraph.graph, subgraph.outputs),
          plan_subgraph(subgraph, *backend.plan_target())};
}

std::unique_ptr<Executable> compile_subgraph(const Subgraph& subgraph, const Backend& backend, Decisions* decisions) {
  const kernel::PlanTarget* const target = backend.plan_target();
  if (target == nullptr) return backend.compile_graph(subgraph);
  return backend.compile(std::make_shared<const kernel::Plan>(plan_subgraph(subgraph, *target, decisions)));
}

std::unique_ptr<const CompiledPartition> compile_partition(const Partition& partition, std::span<const LogicalTensor> inputs,
                                                           std::span<const LogicalTensor> outputs, const Backend& engine,
                                                           CompileRecord* record, const Allocator* allocator) {
  const auto start = std::chrono::steady_clock::now();
  const Backend& backend = backend_of(partition, engine);
  std::string& key = PerThread<CompiledPartition, std::string>::get();
  const bool may_share = partition.supported && backend.shares_executables() && !dumps_subgraphs();
  std::optional<SharedExecutable> shared;
  if (may_share) {
    write_compile_key(key, backend, partition, inputs, outputs);
    if (record == nullptr) shared = CompileCache::instance().find(key);
  }
  const bool found = shared.has_value();
  if (!found) {
    if (tunes_what_it_compiles()) tune_partition(partition, inputs, outputs, engine, {});
    compile_progress().name = label_of(partition);
    shared = compile_anew(partition, inputs, outputs, backend, record);
    if (may_share) CompileCache::instance().insert(key, *shared);
  }
  const bool from_cache = found || shared->executable->info().from_cache;
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  auto compiled = std::make_unique<const CompiledPartition>(partition, std::move(*shared), took.count(), from_cache, allocator);
  report_compile(*compiled);
  return compiled;
}

std::unique_ptr<const CompiledPartition> compile_partition(const Partition& partition, const Backend& backend,
                                                           CompileRecord* record) {
  const PortTensors ports = known_ports(partition);
  return compile_partition(partition, ports.inputs, ports.outputs, backend, record);
}

size_t tune_partition(const Partition& partition, std::span<const LogicalTensor> inputs, std::span<const LogicalTensor> outputs,
                      const Backend& engine, const TuningRequest& request) {
  const Backend& backend = backend_of(partition, engine);
  if (backend.plan_target() == nullptr) return 0;
  const Subgraph subgraph = subgraph_of(partition, inputs, outputs, backend);
  const size_t timed = backend.tune(plan_subgraph(subgraph, *backend.plan_target()), request);
  if (timed > 0) CompileCache::instance().clear();  // cached executables still use the old schedules
  return timed;
}

std::string why_not_cached_on_disk() {
  const CodeCache* const disk = CodeCache::from_environment();
  if (disk == nullptr) return "LAMINA_CACHE_DIR is not set";
  return disk->why_off().empty() ? "" : disk->warning();
}

}  // namespace lamina::compiler
