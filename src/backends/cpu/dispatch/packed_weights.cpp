#include "backends/cpu/dispatch/packed_weights.h"

#include <memory>
#include <variant>

#include "backends/cpu/dispatch/host_block.h"
#include "backends/cpu/dispatch/tile_dispatch.h"
#include "backends/cpu/program/bytes.h"

namespace lamina::cpu {

namespace {

using kernel::Binding;

// The constant of the model that an arg of a step is, with its place in that; "" if it is none.
std::string constant_of(const ExportedModel::Partition& ports, const Binding& arg) {
  if (arg.source != Binding::Source::input) return "";
  const ExportedModel::Value& value = ports.inputs[arg.index];
  if (value.source != ExportedModel::Value::Source::constant) return "";
  ByteWriter text;
  text.write(value.index);
  text.write(arg.bytes);
  return text.bytes();
}

std::string key_of(const char* kind, const std::string& constant, const std::string& packing) {
  return packing.empty() ? "" : kind + constant + packing;
}

// The slices of a constant, one after the other.
std::string slices_of(const TileProgram& tiles, const TileProgram::Packing& packed) {
  ByteWriter slices;
  slices.write(packed.count);
  slices.write(packed.bytes);
  for (size_t loop = 0; loop < tiles.row_loop; ++loop) {
    if (packed.strides[loop] == 0) continue;
    slices.write(tiles.loops[loop]);
    slices.write(packed.strides[loop]);
    slices.write(tiles.strides[packed.input][loop]);
  }
  return slices.bytes();
}

void add_tiled(const ExportedModel::Partition& ports, const ProgramRunner::Step& step, const TileDispatch& tiled,
               std::vector<PackedWeights>& all) {
  const TileProgram& tiles = tiled.program();
  for (size_t p = 0; p < tiles.packings.size(); ++p) {
    const TileProgram::Packing& packed = tiles.packings[p];
    if (packed.constant < 0) continue;
    const std::string constant = constant_of(ports, step.args[packed.input]);
    const std::string packing = tiled.plans().tiles.front()->primitive(packed.step)->packing();
    if (constant.empty()) continue;
    all.push_back({key_of("tiled", slices_of(tiles, packed) + constant, packing), static_cast<size_t>(packed.constant),
                   static_cast<size_t>(packed.count) * packed.bytes, &step, p});
  }
}

}  // namespace

std::vector<PackedWeights> packed_weights(const ExportedModel::Partition& ports, const ProgramRunner& program) {
  std::vector<PackedWeights> all;
  for (const ProgramRunner::Step& step : program.steps()) {
    if (const auto* const primitive = std::get_if<std::unique_ptr<const Primitive>>(&step.runner); primitive != nullptr) {
      if (step.constant < 0 || step.args.size() < 2) continue;
      const std::string constant = constant_of(ports, step.args[1]);
      if (!constant.empty())
        all.push_back({key_of("whole", constant, (*primitive)->packing()), static_cast<size_t>(step.constant),
                       (*primitive)->packed_bytes(), &step});
    } else if (const auto* const tiled = std::get_if<std::unique_ptr<const TileDispatch>>(&step.runner); tiled != nullptr) {
      add_tiled(ports, step, **tiled, all);
    }
  }
  return all;
}

void pack(const PackedWeights& weights, const ProgramRunner& program, std::span<const void* const> inputs, void* packed) {
  const HostBlock scratch(program.memory().step_bytes, 64, nullptr);
  std::vector<void*> args;
  for (const Binding& arg : weights.step->args) {
    const bool is_input = arg.source == Binding::Source::input && inputs[arg.index] != nullptr;
    args.push_back(is_input ? const_cast<char*>(static_cast<const char*>(inputs[arg.index]) + arg.bytes) : nullptr);
  }
  const Executor executor(0);
  if (const auto* const tiled = std::get_if<std::unique_ptr<const TileDispatch>>(&weights.step->runner))
    return (*tiled)->pack_whole(weights.packing, args, static_cast<char*>(scratch.memory()), static_cast<char*>(packed),
                                executor.at_most((*tiled)->program().slots));
  std::get<std::unique_ptr<const Primitive>>(weights.step->runner)->pack(args, packed, scratch.memory(), executor);
}

}  // namespace lamina::cpu
