// Exports models: compiles plans for an instruction set, and writes their steps and their code as one program.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cpu/backend.h"
#include "backends/cpu/code/generator_version.h"
#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/code/link_image.h"
#include "backends/cpu/dispatch/host_block.h"
#include "backends/cpu/dispatch/packed_weights.h"
#include "backends/cpu/dispatch/primitive.h"
#include "backends/cpu/dispatch/program_io.h"
#include "backends/cpu/library/default_primitive_library.h"
#include "backends/cpu/program/program_file.h"
#include "backends/cpu/run/plan_runner.h"
#include "backends/exported_model.h"
#include "interface/status.h"

namespace lamina {

namespace cpu {
namespace {

// An instruction set of an architecture.
struct Isa {
  const Architecture* architecture;
  const Target* target;
};

// Those with vectors of a fixed length and a name: code for all machines of an architecture calls the C library, for fused
// multiply-adds, and needs its addresses.
std::vector<Isa> exported_isas() {
  std::vector<Isa> all;
  for (const Architecture* const architecture : targets::architectures()) {
    for (const Target* const target : targets::of(*architecture))
      if (target->vector_bits > 0 && target->architecture == architecture) all.push_back({architecture, target});
  }
  return all;
}

Isa isa_called(const std::string& name) {
  std::string names;
  for (const Isa& isa : exported_isas()) {
    if (isa.target->name == name) return isa;
    names += (names.empty() ? "" : ", ") + std::string(isa.target->name);
  }
  throw Error(Status::invalid_arguments, join("instruction set \"", name, "\", allowed is ", names));
}

// Code for all machines with the target. Its caches and costs are generic, so that the same model gives the same file anywhere.
Machine machine_with(const Isa& isa, int threads) {
  return {.instructions = {.architecture = isa.architecture, .target = isa.target},
          .cpu = isa.target->plain_cpu != nullptr ? isa.target->plain_cpu : isa.architecture->plain_cpu,
          .caches = {},
          .cores = threads,
          .keeps_objects = true};
}

class CpuExporter final : public ModelExporter {
 public:
  explicit CpuExporter(const Machine& machine)
      : machine_(machine), library_(exported_primitive_library()), backend_(make_backend(machine, library_)) {}

  const Backend& backend() const override { return *backend_; }

  void add(const kernel::Plan& plan) override { programs_.push_back(PlanRunner(plan, {library_.get(), machine_}).program()); }

  Program finish(const ExportedModel& model, std::span<const std::string_view> constants, bool packs) const override {
    ProgramWriter steps;
    for (const auto& program : programs_) write_program(steps, *program);
    const CodeImage image = link_image(steps.codes(), *machine_.instructions.architecture);
    ProgramHead head{.writer = code_generator_version(),
                     .architecture = machine_.instructions.architecture->name,
                     .isa = machine_.instructions->name,
                     .threads = machine_.cores,
                     .functions = {},
                     .model = model,
                     .packed = {},
                     .packed_digest = ""};
    for (size_t f = 0; f < steps.codes().size(); ++f)
      head.functions.push_back({steps.codes()[f].symbol, static_cast<size_t>(image.offsets[f])});
    Program made;
    if (packs) made.packed_weights = packed(constants, head);
    ByteWriter description;
    description.write(head);
    made.code = program_file(description.bytes() + steps.bytes(), image.bytes);
    return made;
  }

 private:
  // The packed weights of all partitions, those that are packed alike once. Lists them in `head`.
  std::string packed(std::span<const std::string_view> constants, ProgramHead& head) const {
    std::string all;
    std::map<std::string, size_t> offsets;
    size_t program = 0;
    for (size_t v = 0; v < head.model.variants.size(); ++v) {
      const std::vector<ExportedModel::Partition>& partitions = head.model.variants[v].partitions;
      for (size_t p = 0; p < partitions.size(); ++p, ++program) {
        for (const PackedWeights& weights : packed_weights(partitions[p], *programs_[program])) {
          auto found = offsets.find(weights.key);
          const size_t offset = found == offsets.end() ? all.size() : found->second;
          head.packed.push_back({v, p, weights.constant, offset, weights.bytes});
          if (found != offsets.end()) continue;
          append_packed(all, weights, *programs_[program], partitions[p], constants);
          all.resize(aligned(all.size()));
          if (!weights.key.empty()) offsets.emplace(weights.key, offset);
        }
      }
    }
    head.packed_digest = digest_of_packed(all);
    return all;
  }
  static void append_packed(std::string& to, const PackedWeights& weights, const ProgramRunner& program,
                            const ExportedModel::Partition& ports, std::span<const std::string_view> constants) {
    std::vector<const void*> inputs;
    for (const ExportedModel::Value& input : ports.inputs) {
      const bool is_constant = input.source == ExportedModel::Value::Source::constant;
      inputs.push_back(is_constant ? constants[input.index].data() : nullptr);
    }
    const HostBlock memory(weights.bytes, 64, nullptr);
    std::memset(memory.memory(), 0, weights.bytes);
    pack(weights, program, inputs, memory.memory());
    to.append(static_cast<const char*>(memory.memory()), weights.bytes);
  }

  Machine machine_;
  std::shared_ptr<const PrimitiveLibrary> library_;
  std::unique_ptr<const Backend> backend_;
  std::vector<std::shared_ptr<const ProgramRunner>> programs_;
};

}  // namespace
}  // namespace cpu

std::unique_ptr<ModelExporter> cpu_exporter(const std::string& isa, int threads) {
  return std::make_unique<cpu::CpuExporter>(cpu::machine_with(cpu::isa_called(isa), threads));
}

std::vector<std::string> exported_isas() {
  std::vector<std::string> names;
  for (const cpu::Isa& isa : cpu::exported_isas()) names.push_back(isa.target->name);
  return names;
}

std::vector<std::string> cpu_isas_here() {
  const cpu::Instructions host = cpu::host_machine().instructions;
  std::vector<std::string> names;
  for (const cpu::Isa& isa : cpu::exported_isas())
    if (isa.architecture == host.architecture && cpu::targets::contains(*host.target, *isa.target))
      names.push_back(isa.target->name);
  std::reverse(names.begin(), names.end());
  return names;
}

}  // namespace lamina
