// A partition compiled for the shapes and layouts of its ports: tensors given at execution are matched to ports and checked,
// without touching the heap, and handed to the executable.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "compiler/compile_cache.h"
#include "compiler/constant_cache.h"
#include "interface/partition.h"

namespace lamina::compiler {

// "partition 3: LayerNorm + GELU".
std::string label_of(const Partition& partition);

// A tensor at execution: its description, and its memory (null is legal when it has no elements).
struct BoundTensor {
  const LogicalTensor* tensor = nullptr;
  void* memory = nullptr;
};

// Immutable; execute may be called from many threads at once.
class CompiledPartition {
 public:
  // `shared` has the partition's ports; the ids in it are replaced by the partition's own. `compile_ms` and `from_cache` tell
  // of this compilation, info() of the one that made the executable.
  CompiledPartition(const Partition& partition, SharedExecutable shared, double compile_ms, bool from_cache);
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
  double compile_ms() const { return compile_ms_; }
  bool from_cache() const { return from_cache_; }
  const std::vector<LogicalTensor>& inputs() const { return inputs_; }
  const std::vector<LogicalTensor>& outputs() const { return outputs_; }

 private:
  std::string label_;
  std::vector<LogicalTensor> inputs_, outputs_;  // in port order, every shape and stride known
  std::shared_ptr<const Executable> executable_;
  ConstantsOfPartition constants_;
  double compile_ms_;
  bool from_cache_;                // the executable, or all its code
  bool computes_nothing_ = false;  // every output is without elements
};

}  // namespace lamina::compiler
