// A partition compiled for the shapes and layouts of its ports: execution matches the tensors to ports, checks them and
// passes them to the executable, without heap allocation.
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

// A tensor at execution: its description, and its memory (null is legal if it has no elements).
struct BoundTensor {
  const LogicalTensor* tensor = nullptr;
  void* memory = nullptr;
};

// Immutable; execute may be called from many threads at once.
class CompiledPartition {
 public:
  // `shared` has the ports, possibly with the ids of an equal partition, which are replaced by this partition's ids.
  // `compile_ms` and `from_cache` describe this compilation; info() describes the one that created the executable.
  // `allocator` is that of the engine, or null.
  CompiledPartition(const Partition& partition, SharedExecutable shared, double compile_ms, bool from_cache,
                    const Allocator* allocator);
  CompiledPartition(const CompiledPartition&) = delete;
  CompiledPartition& operator=(const CompiledPartition&) = delete;

  // The final description of a port. Throws Error(invalid_arguments) with the list of ports.
  const LogicalTensor& port(uint64_t tensor_id) const;

  // Pairs {input id, output id} that may share memory.
  std::vector<std::pair<uint64_t, uint64_t>> inplace_ports() const;

  // Whether this output may share the memory of this input; false for ids that are not ports.
  bool may_share(uint64_t input_id, uint64_t output_id) const;

  // Tensors are matched to ports by id, in any order; an input that matches no port is ignored. Allocates no heap memory once
  // the calling thread has executed a partition with as many ports.
  void execute(const ExecutionContext& context, std::span<const BoundTensor> inputs,
               std::span<const BoundTensor> outputs) const;

  const std::string& label() const { return label_; }  // "partition 3: LayerNorm + GELU"
  const ExecutableInfo& info() const { return executable_->info(); }
  // The size of what executions keep of constant inputs; 0 if nothing is kept.
  size_t constant_bytes() const { return constants_.bytes(); }
  double compile_ms() const { return compile_ms_; }
  bool from_cache() const { return from_cache_; }
  const std::vector<LogicalTensor>& inputs() const { return inputs_; }
  const std::vector<LogicalTensor>& outputs() const { return outputs_; }

 private:
  std::string label_;
  std::vector<LogicalTensor> inputs_, outputs_;  // in port order, with all shapes and strides known
  std::shared_ptr<const Executable> executable_;
  // Registers a user of the executable and of an allocator, whose functions must not be called after its engine is destroyed.
  class Use {
   public:
    Use(const Executable& executable, const Allocator* allocator);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    const Executable& executable_;
    const Allocator allocator_;
  };
  Use use_;
  ConstantsOfPartition constants_;
  double compile_ms_;
  bool from_cache_;                // the executable, or all its code, came from a cache
  bool computes_nothing_ = false;  // no output has elements
};

}  // namespace lamina::compiler
