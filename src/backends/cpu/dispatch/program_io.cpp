#include "backends/cpu/dispatch/program_io.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "backends/cpu/dispatch/along_axis_steps.h"
#include "backends/cpu/dispatch/convolution_step.h"
#include "backends/cpu/dispatch/dequantized_step.h"
#include "backends/cpu/dispatch/empty_steps.h"
#include "backends/cpu/dispatch/grouped_step.h"
#include "backends/cpu/dispatch/grouped_sums_step.h"
#include "backends/cpu/dispatch/line_step.h"
#include "backends/cpu/dispatch/product_step.h"
#include "backends/cpu/dispatch/program_checks.h"
#include "backends/cpu/dispatch/step_kinds.h"
#include "backends/cpu/dispatch/tap_step.h"
#include "backends/cpu/dispatch/tile_dispatch.h"
#include "backends/cpu/dispatch/windows/window_step.h"
#include "backends/cpu/program/stored_places.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using kernel::Binding;

constexpr int kMostLevels = 2;  // of plans: those of tiles are inside of a plan

// ---- steps

void write_kernel(ProgramWriter& to, const KernelDispatch& kernel) {
  to.write(StepKind::kernel);
  to.write(kernel.program());
  kernel.code().write(to);
}

// The codes of a kernel in a file, each for whole and split rows.
class StoredCode final : public KernelCode {
 public:
  StoredCode(ProgramReader& from, size_t codes, bool splits) : variants_(codes) {
    for (auto& of_code : variants_) {
      for (size_t v = 0; v < (splits ? 2 : 1); ++v) {
        of_code[v].function = reinterpret_cast<KernelFunction>(const_cast<void*>(from.read_some_code()));
        of_code[v].rows_per_group = from.get<int64_t>();
        require(of_code[v].rows_per_group > 0, "a number of rows");
      }
    }
  }
  Variant variant(size_t code, bool splits) const override { return variants_[code][splits ? 1 : 0]; }
  bool runs_here() const override { return true; }
  void write(ProgramWriter&) const override { LAMINA_CHECK(false, "a program from a file is not written again"); }

 private:
  std::vector<std::array<Variant, 2>> variants_;  // whole rows, split ones
};

std::shared_ptr<const KernelDispatch> read_kernel(ProgramReader& from) {
  auto program = from.get<KernelProgram>();
  check(program);
  auto code = std::make_unique<const StoredCode>(from, program.streams.size(), program.splits());
  return std::make_shared<const KernelDispatch>(std::move(program), std::move(code));
}

std::shared_ptr<const ProgramRunner> read_plan(ProgramReader& from, size_t inputs, size_t outputs, int level);

void write_tiled(ProgramWriter& to, const TileDispatch& tiled) {
  to.write(StepKind::tiled);
  to.write(tiled.program());
  for (const auto* const plans : {&tiled.plans().tiles, &tiled.plans().shorter}) {
    to.write(plans->size());
    for (const TilePlans::Plan& plan : *plans) write_program(to, *plan);
  }
  to.write(tiled.plans().finish != nullptr);
  if (tiled.plans().finish != nullptr) write_program(to, *tiled.plans().finish);
}

std::unique_ptr<const TileDispatch> read_tiled(ProgramReader& from, size_t args, size_t constants, int level) {
  require(level + 1 < kMostLevels, "a plan without tiles");
  auto program = from.get<TileProgram>();
  check(program, args, constants);
  const size_t inputs = program.inputs + program.tile_origins.size() + program.packings.size(), outputs = args - program.inputs;
  TilePlans plans;
  for (auto* const list : {&plans.tiles, &plans.shorter}) {
    const size_t count = from.read_count();
    for (size_t i = 0; i < count; ++i) list->push_back(read_plan(from, inputs, outputs, level + 1));
  }
  const auto sums = static_cast<size_t>(
      std::count_if(program.sums.begin(), program.sums.end(), [](const auto& sum) { return !sum.in_place; }));
  if (from.get<bool>()) plans.finish = read_plan(from, sums, sums, level + 1);
  const size_t needed = (program.has_less_rows ? 2U : 1U) * (program.has_less_columns ? 2U : 1U);
  require(plans.tiles.size() >= needed && plans.shorter.size() == (program.lengths ? program.lengths->lengths.size() : 0),
          "the plans of tiles");
  for (const TileProgram::Packing& packing : program.packings) {
    const auto& steps = plans.tiles.front()->steps();
    require(packing.step < steps.size() && std::holds_alternative<std::unique_ptr<const Primitive>>(steps[packing.step].runner),
            "the product of packed weights");
  }
  return std::make_unique<const TileDispatch>(std::move(program), std::move(plans));
}

// ---- plans

void write_check(ProgramWriter& to, const IndexCheck& check) {
  write_place(to, check.place);
  write_tensor(to, check.tensor);
  to.write(check);
}

IndexCheck read_check(ProgramReader& from, size_t args) {
  IndexCheck check;
  check.place = read_place(from);
  check.tensor = read_tensor(from);
  from.read(check);
  const size_t rank = check.tensor.shape->size();
  require(check.arg < args && check.extent >= 0 && (!check.sorts || (check.order.steps.size() == rank && check.sorted < args)),
          "indices");
  return check;
}

void write_step(ProgramWriter& to, const ProgramRunner::Step& step) {
  to.write(step.args);
  to.write(step.constant);
  to.write(step.is_followed);
  to.write(step.only_for);
  to.write(step.indices.size());
  for (const IndexCheck& check : step.indices) write_check(to, check);
  if (const auto* kernel = std::get_if<std::shared_ptr<const KernelDispatch>>(&step.runner))
    write_kernel(to, **kernel);
  else if (const auto* tiled = std::get_if<std::unique_ptr<const TileDispatch>>(&step.runner))
    write_tiled(to, **tiled);
  else
    std::get<std::unique_ptr<const Primitive>>(step.runner)->write(to);
}

// The ports of the plan that a step is in.
struct Ports {
  size_t inputs, outputs, tables;
  int64_t positions;
  bool has(const Binding& binding) const {
    switch (binding.source) {
      case Binding::Source::input: return binding.index < inputs;
      case Binding::Source::output: return binding.index < outputs;
      case Binding::Source::table: return binding.index < tables;
      case Binding::Source::positions: return positions > 0;
      default: return true;
    }
  }
};

ProgramRunner::Runner read_runner(ProgramReader& from, size_t args, size_t constants, int level) {
  switch (from.get<StepKind>()) {
    case StepKind::kernel: {
      auto kernel = read_kernel(from);
      require(kernel->program().args.size() == args, "the args of a kernel");
      return kernel;
    }
    case StepKind::tiled: return read_tiled(from, args, constants, level);
    case StepKind::product: {
      auto product = ProductStep::read(from);
      require(product->arg_count() == args, "the args of a product");
      return product;
    }
    case StepKind::dequantized: return DequantizedStep::read(from, args);
    case StepKind::top_k: return read_top_k(from, args);
    case StepKind::running: return read_running(from, args);
    case StepKind::recurrence: return read_recurrence(from, args);
    case StepKind::convolution: return ConvolutionStep::read(from, args);
    case StepKind::windows: return read_windows(from, args);
    case StepKind::grouped: return GroupedStep::read(from, args);
    case StepKind::grouped_sums: return GroupedSumsStep::read(from, args);
    case StepKind::empty_sums: return read_empty_sums(from, args);
    case StepKind::nothing: return nothing_step();
    case StepKind::lines: return LineStep::read(from, args);
    case StepKind::taps: return TapStep::read(from, args);
  }
  ByteReader::fail("a kind of step");
}

ProgramRunner::Step read_step(ProgramReader& from, const Ports& ports, size_t constants, int level) {
  ProgramRunner::Step step;
  from.read(step.args);
  from.read(step.constant);
  from.read(step.is_followed);
  from.read(step.only_for);
  require(std::all_of(step.args.begin(), step.args.end(), [&](const Binding& binding) { return ports.has(binding); }),
          "an arg");
  require(step.constant < 0 || static_cast<size_t>(step.constant) < constants, "a constant");
  require(std::all_of(step.only_for.begin(), step.only_for.end(), [&](size_t number) { return number < constants; }),
          "a constant");
  const size_t checks = from.read_count();
  for (size_t i = 0; i < checks; ++i) step.indices.push_back(read_check(from, step.args.size()));
  step.runner = read_runner(from, step.args.size(), constants, level);
  return step;
}

size_t scratch_of(const ProgramRunner::Step& step) {
  return std::visit([](const auto& runner) { return runner->scratch_bytes(); }, step.runner);
}

// A step that is followed is a primitive with parts, the next one a kernel.
void check_followed(const std::vector<ProgramRunner::Step>& steps) {
  for (size_t s = 0; s < steps.size(); ++s) {
    if (!steps[s].is_followed) continue;
    require(s + 1 < steps.size() && std::holds_alternative<std::unique_ptr<const Primitive>>(steps[s].runner) &&
                std::holds_alternative<std::shared_ptr<const KernelDispatch>>(steps[s + 1].runner) &&
                steps[s].args.size() <= kInlineArgs && steps[s + 1].args.size() <= kInlineArgs,
            "a step that is followed by a kernel");
    const auto& kernel = *std::get<std::shared_ptr<const KernelDispatch>>(steps[s + 1].runner);
    require(kernel.program().sharing.row_size > 0, "rows of a kernel that follows a step");
  }
}

std::shared_ptr<const ProgramRunner> read_plan(ProgramReader& from, size_t inputs, size_t outputs, int level) {
  auto memory = from.get<ProgramMemory>();
  constexpr size_t kMost = size_t{1} << 46;
  require(
      memory.step_bytes < kMost && memory.arena_bytes < kMost && memory.positions >= 0 && memory.positions <= int64_t{1} << 26,
      "the sizes of memory");
  const Ports ports{inputs, outputs, memory.tables.size(), memory.positions};
  const size_t count = from.read_count();
  std::vector<ProgramRunner::Step> steps;
  for (size_t s = 0; s < count; ++s) {
    steps.push_back(read_step(from, ports, memory.constants.size(), level));
    require(scratch_of(steps.back()) <= memory.step_bytes, "the scratch memory of a step");
  }
  check_followed(steps);
  return std::make_shared<const ProgramRunner>(std::move(memory), std::move(steps));
}

}  // namespace

void write_program(ProgramWriter& to, const ProgramRunner& program) {
  to.write(program.memory());
  to.write(program.steps().size());
  for (const ProgramRunner::Step& step : program.steps()) write_step(to, step);
}

std::shared_ptr<const ProgramRunner> read_program(ProgramReader& from, size_t inputs, size_t outputs) {
  return read_plan(from, inputs, outputs, 0);
}

}  // namespace lamina::cpu
