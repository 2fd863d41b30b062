// A model that `lamina export` wrote: its program for this machine, and how it runs.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/dispatch/host_block.h"
#include "backends/cpu/dispatch/packed_constants.h"
#include "backends/cpu/dispatch/program_runner.h"
#include "backends/cpu/program/program_file.h"
#include "backends/scratch_pool.h"
#include "runtime/model_file.h"

namespace lamina::runtime {

// Immutable; many threads may run it at once.
class Model {
 public:
  // Throws Error with one sentence.
  Model(std::unique_ptr<const ModelFile> file, bool verifies_weights);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const std::vector<ExportedModel::Tensor>& inputs() const { return head_.model.inputs; }
  const std::vector<ExportedModel::Tensor>& outputs() const { return head_.model.outputs; }
  const std::string& isa() const { return head_.isa; }

  // One pointer per input and output, for memory as described. `threads`: at most; 0: OpenMP's number. `pool` may be null.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs, int threads, const ThreadPool* pool) const;

 private:
  struct Partition {
    std::shared_ptr<const cpu::ProgramRunner> program;
    std::unique_ptr<cpu::PackedConstants> constants;  // filled by the first run
  };

  void read_program(std::string_view bytes);
  void check_model() const;
  void find_weights(std::string_view file, bool verifies);
  const void* place_of(const ExportedModel::Value& value, std::span<const void* const> inputs, std::span<void* const> outputs,
                       char* arena) const;

  std::unique_ptr<const ModelFile> file_;
  Mapping code_;
  cpu::ProgramHead head_;
  std::string_view weights_;
  std::vector<Partition> partitions_;
  size_t scratch_bytes_ = 0;  // of the partition that needs most
  mutable ScratchPool<cpu::HostBlock> pool_{[](size_t bytes, const ExecutionContext& context) {
    return std::make_unique<cpu::HostBlock>(bytes, 64, context.allocator);
  }};
};

}  // namespace lamina::runtime
