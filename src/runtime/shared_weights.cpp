#include <memory>
#include <string>
#include <variant>

#include "backends/cpu/dispatch/tile_dispatch.h"
#include "backends/cpu/program/bytes.h"
#include "runtime/model.h"

namespace lamina::runtime {

namespace {

using kernel::Binding;

// The constant of the model that an arg of a step is, with its place in that; "" if it is none.
std::string constant_of(const ExportedModel::Partition& ports, const Binding& arg) {
  if (arg.source != Binding::Source::input) return "";
  const ExportedModel::Value& value = ports.inputs[arg.index];
  if (value.source != ExportedModel::Value::Source::constant) return "";
  cpu::ByteWriter text;
  text.write(value.index);
  text.write(arg.bytes);
  return text.bytes();
}

}  // namespace

void SharedWeights::share(const std::string& key, cpu::PackedConstants& constants, size_t index) {
  const auto [found, is_new] = known_.try_emplace(key, &constants, index);
  if (!is_new) constants.share(index, *found->second.first, found->second.second);
}

void SharedWeights::share(const ExportedModel::Partition& ports, const cpu::ProgramRunner& program,
                          cpu::PackedConstants& constants) {
  for (const cpu::ProgramRunner::Step& step : program.steps()) {
    if (const auto* const primitive = std::get_if<std::unique_ptr<const cpu::Primitive>>(&step.runner); primitive != nullptr) {
      if (step.constant < 0 || step.args.size() < 2) continue;
      const std::string constant = constant_of(ports, step.args[1]), packing = (*primitive)->packing();
      if (!constant.empty() && !packing.empty())
        share("whole" + constant + packing, constants, static_cast<size_t>(step.constant));
      continue;
    }
    const auto* const tiled = std::get_if<std::unique_ptr<const cpu::TileDispatch>>(&step.runner);
    if (tiled == nullptr) continue;
    const cpu::TileProgram& tiles = (*tiled)->program();
    for (const cpu::TileProgram::Packing& packed : tiles.packings) {
      if (packed.constant < 0) continue;
      const std::string constant = constant_of(ports, step.args[packed.input]);
      const std::string packing = (*tiled)->plans().tiles.front()->primitive(packed.step)->packing();
      if (constant.empty() || packing.empty()) continue;
      cpu::ByteWriter slices;  // of the constant, one after the other
      slices.write(packed.count);
      slices.write(packed.bytes);
      for (size_t loop = 0; loop < tiles.row_loop; ++loop) {
        if (packed.strides[loop] == 0) continue;
        slices.write(tiles.loops[loop]);
        slices.write(packed.strides[loop]);
        slices.write(tiles.strides[packed.input][loop]);
      }
      share("tiled" + slices.bytes() + constant + packing, constants, static_cast<size_t>(packed.constant));
    }
  }
}

}  // namespace lamina::runtime
