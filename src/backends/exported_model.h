// A compiled model as data: its tensors, and where the values of its partitions are. docs/export.md describes the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interface/data_type.h"
#include "interface/logical_tensor.h"

namespace lamina {

class Backend;
namespace kernel {
struct Plan;
}

struct ExportedModel {
  struct Tensor {
    std::string name;
    DataType dtype = DataType::undef;
    Dims shape, strides;

    template <typename Self, typename Visit>
    static void for_each_field(Self& self, const Visit& visit) {
      visit(self.name), visit(self.dtype), visit(self.shape), visit(self.strides);
    }
  };
  // Data in the file's weights.
  struct Constant {
    std::string name;
    size_t offset = 0, bytes = 0;

    template <typename Self, typename Visit>
    static void for_each_field(Self& self, const Visit& visit) {
      visit(self.name), visit(self.offset), visit(self.bytes);
    }
  };
  // Where a value is. `index`: number of the input, output or constant, or offset in the arena.
  struct Value {
    enum class Source { input, output, constant, arena } source = Source::input;
    size_t index = 0;

    template <typename Self, typename Visit>
    static void for_each_field(Self& self, const Visit& visit) {
      visit(self.source), visit(self.index);
    }
  };
  // In the order in which they run.
  struct Partition {
    std::vector<Value> inputs, outputs;

    template <typename Self, typename Visit>
    static void for_each_field(Self& self, const Visit& visit) {
      visit(self.inputs), visit(self.outputs);
    }
  };

  // The model for one list of input shapes.
  struct Variant {
    std::vector<Tensor> inputs, outputs;
    size_t arena_bytes = 0;  // for values between partitions
    std::vector<Partition> partitions;

    template <typename Self, typename Visit>
    static void for_each_field(Self& self, const Visit& visit) {
      visit(self.inputs), visit(self.outputs), visit(self.arena_bytes), visit(self.partitions);
    }
  };

  std::vector<Constant> constants;
  size_t weights_bytes = 0;
  std::string weights_digest;     // SHA-256 of the weights, 64 digits
  std::vector<Variant> variants;  // at least one, with the same inputs and outputs but for shapes and strides

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.constants), visit(self.weights_bytes), visit(self.weights_digest), visit(self.variants);
  }
};

// Compiles the partitions of a model for an instruction set that may be another machine's.
class ModelExporter {
 public:
  virtual ~ModelExporter() = default;
  // For which graphs are partitioned and plans are made. It compiles nothing itself.
  virtual const Backend& backend() const = 0;
  // The next partition: of the first variant in order, then of the next one. Throws Error(unimplemented) for a step that cannot
  // be exported.
  virtual void add(const kernel::Plan& plan) = 0;
  // As bytes, the same for the same plans.
  struct Program {
    std::string code, packed_weights;
  };
  // `constants`: the data of model.constants. `packs`: whether weights are packed in the file.
  virtual Program finish(const ExportedModel& model, std::span<const std::string_view> constants, bool packs) const = 0;
};

// The instruction sets by their names in LAMINA_MAX_ISA. `threads`: the most that the program uses. Throws
// Error(invalid_arguments), which lists the names.
std::unique_ptr<ModelExporter> cpu_exporter(const std::string& isa, int threads);
std::vector<std::string> exported_isas();
// Those of this machine and simpler ones of its architecture, the best first.
std::vector<std::string> cpu_isas_here();

}  // namespace lamina
