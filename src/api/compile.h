// Compiling and executing a partition: joins what the user says of the ports with the partition, hands the subgraph to a
// backend, and keeps what execute needs to check and order the tensors that it is given.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/compile_cache.h"
#include "backends/backend.h"
#include "interface/partition.h"

namespace lamina::api {

// A tensor at execution: its description, and its memory (null is legal when it has no elements).
struct BoundTensor {
  const LogicalTensor* tensor = nullptr;
  void* memory = nullptr;
};

// Immutable; execute may be called from many threads at once.
class CompiledPartition {
 public:
  // `shared` has the partition's ports; the ids in it are replaced by the partition's own.
  CompiledPartition(const Partition& partition, SharedExecutable shared);
  ~CompiledPartition();
  CompiledPartition(const CompiledPartition&) = delete;
  CompiledPartition& operator=(const CompiledPartition&) = delete;

  // The final description of a port. Throws Error(invalid_arguments) naming the ports there are.
  const LogicalTensor& port(uint64_t tensor_id) const;

  // {input id, output id} that may share memory.
  std::vector<std::pair<uint64_t, uint64_t>> inplace_ports() const;

  // Whether this output may be given the memory of this input; false for ids that are no ports.
  bool may_share(uint64_t input_id, uint64_t output_id) const;

  // Tensors are matched to ports by id, in any order; an input that is no port is ignored. No heap allocation once the calling
  // thread has executed a partition with as many ports.
  void execute(const ExecutionContext& context, std::span<const BoundTensor> inputs,
               std::span<const BoundTensor> outputs) const;

  const std::string& label() const { return label_; }  // "partition 3: LayerNorm + GELU"
  const ExecutableInfo& info() const { return executable_->info(); }
  // Of this compilation; info() tells of the one that made the executable.
  double compile_ms() const { return compile_ms_; }
  bool from_cache() const { return from_cache_; }
  const std::vector<LogicalTensor>& inputs() const { return inputs_; }
  const std::vector<LogicalTensor>& outputs() const { return outputs_; }

 private:
  friend std::unique_ptr<const CompiledPartition> compile_partition(const Partition&, std::span<const LogicalTensor>,
                                                                    std::span<const LogicalTensor>, const Backend&);
  std::string label_;
  std::vector<LogicalTensor> inputs_, outputs_;  // in port order, every shape and stride known
  std::shared_ptr<const Executable> executable_;
  double compile_ms_ = 0;
  bool from_cache_ = false;        // the executable, or all its code
  bool computes_nothing_ = false;  // every output is without elements
};

// `inputs` and `outputs` describe the ports, by id and in any order; outputs may be of unknown shape and layout any. What was
// compiled before is taken from the cache (compile_cache.h). Throws Error.
std::unique_ptr<const CompiledPartition> compile_partition(const Partition& partition, std::span<const LogicalTensor> inputs,
                                                           std::span<const LogicalTensor> outputs, const Backend& backend);

}  // namespace lamina::api
