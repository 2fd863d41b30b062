// A model that `lamina export` wrote: its program for this machine, and how it runs.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/dispatch/host_block.h"
#include "backends/cpu/dispatch/packed_constants.h"
#include "backends/cpu/dispatch/program_runner.h"
#include "backends/cpu/program/program_file.h"
#include "backends/scratch_pool.h"
#include "runtime/model_file.h"

namespace lamina::runtime {

// Packed weights that several steps or variants of a model use alike.
class SharedWeights {
 public:
  // Replaces weights of a partition, which are inputs or slices of inputs, by those of an earlier partition.
  void share(const ExportedModel::Partition& ports, const cpu::ProgramRunner& program, cpu::PackedConstants& constants);

 private:
  void share(const std::string& key, cpu::PackedConstants& constants, size_t index);

  std::map<std::string, std::pair<const cpu::PackedConstants*, size_t>> known_;
};

// Immutable; many threads may run it at once.
class Model {
 public:
  // Throws Error with one sentence.
  Model(std::unique_ptr<const ModelFile> file, bool verifies_weights);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // The model for one list of input shapes, at least one.
  const std::vector<ExportedModel::Variant>& variants() const { return head_.model.variants; }
  // What variants have in common: extents and strides that differ are kUnknownDim.
  const std::vector<ExportedModel::Tensor>& inputs() const { return inputs_; }
  const std::vector<ExportedModel::Tensor>& outputs() const { return outputs_; }
  const std::string& isa() const { return head_.isa; }

  // One pointer per input and output, for memory as a variant describes it. `threads`: at most; 0: OpenMP's number. `pool` may
  // be null.
  void run(size_t variant, std::span<const void* const> inputs, std::span<void* const> outputs, int threads,
           const ThreadPool* pool) const;

 private:
  struct Partition {
    std::shared_ptr<const cpu::ProgramRunner> program;
    std::unique_ptr<cpu::PackedConstants> constants;  // filled by the first run
  };

  struct Variant {
    std::vector<Partition> partitions;
    size_t scratch_bytes = 0;  // with the arena
    std::unique_ptr<ScratchPool<cpu::HostBlock>> scratch;
  };

  void read_program(std::string_view bytes);
  static Variant read_variant(cpu::ProgramReader& reader, const ExportedModel::Variant& described, SharedWeights& packed);
  void join_variants();
  void check_model() const;
  void find_weights(std::string_view file, bool verifies);
  void find_packed_weights(std::string_view file, bool verifies);
  const void* place_of(const ExportedModel::Value& value, std::span<const void* const> inputs, std::span<void* const> outputs,
                       char* arena) const;

  std::unique_ptr<const ModelFile> file_;
  Mapping code_;
  cpu::ProgramHead head_;
  std::string_view weights_;
  std::vector<Variant> variants_;
  std::vector<ExportedModel::Tensor> inputs_, outputs_;
};

}  // namespace lamina::runtime
