#include "backends/cpu/run/tiled_runner.h"

#include <algorithm>
#include <string>
#include <utility>

#include "interface/status.h"

namespace lamina::cpu {

namespace {

constexpr size_t kPackedBytes = 32 << 20;  // of packed weights in scratch
constexpr int64_t kEntriesWanted = 16;     // so that threads can take one at a time

int64_t count_of(const Dims& loops) {
  int64_t count = 1;
  for (const int64_t extent : loops) count *= extent;
  return count;
}

// The loops of a tiled step, with blocks as entries, and where the args of a tile are.
TileProgram loops_of(const kernel::TiledStep& step, int threads) {
  TileProgram program;
  program.loops = step.loops;
  program.row_loop = step.row_loop;
  program.segments = step.segments;
  program.has_less_rows = step.loops[step.row_loop] % step.rows > 0;
  program.has_less_columns = step.columns > 0 && step.loops.back() % step.columns > 0;
  program.inputs = step.inputs.size();
  program.tile_origins = step.tile_origins;
  program.strides = step.strides;
  program.slots = threads;
  for (size_t loop = step.row_loop; loop < step.loops.size(); ++loop) {
    const int64_t block = loop == step.row_loop ? step.rows : step.columns;
    program.loops[loop] = (program.loops[loop] + block - 1) / block;
    for (Dims& strides : program.strides) strides[loop] *= block;
    for (Dims& positions : program.tile_origins) positions[loop] *= block;
  }
  for (size_t loop = 0; loop < step.row_loop; ++loop) program.outer *= program.loops[loop];
  return program;
}

TileLengthsProgram lengths_of(const kernel::TiledStep& step, const TileProgram& of) {
  const kernel::ShorterTiles& tiles = *step.shorter;
  TileLengthsProgram program{.lengths = tiles.lengths,
                             .seen_more = tiles.seen_more,
                             .values = tiles.values,
                             .value_type = tiles.entry.dtype,
                             .all_rows = step.loops[step.row_loop],
                             .rows = step.rows,
                             .row_loop = step.row_loop,
                             .loops = of.loops,
                             .strides = of.strides[tiles.values],
                             .numbers = Dims(of.loops.size(), 0)};
  for (const auto& [input, sign] : tiles.offsets)
    program.offsets.push_back({input, step.inputs[input].dtype == DataType::s64, sign});
  if (tiles.hidden) program.hidden = {*tiles.hidden, step.inputs[*tiles.hidden].dtype};
  const LogicalTensor& entry = tiles.entry;
  for (size_t axis = 0; axis < entry.shape->size(); ++axis) program.dims.push_back({(*entry.shape)[axis], entry.strides[axis]});
  std::stable_sort(program.dims.begin(), program.dims.end(), [](const auto& a, const auto& b) { return a.stride > b.stride; });
  for (size_t loop = step.row_loop; loop-- > 0;) {
    if (program.strides[loop] == 0) continue;
    program.numbers[loop] = program.count;
    program.count *= program.loops[loop];
  }
  return program;
}

// All entries at once if their packed weights are small or used again later; else as many as fit kPackedBytes.
int64_t wave_of(const TileProgram& program) {
  size_t all = 0, of_an_entry = 0;
  for (const TileProgram::Packing& packing : program.packings) {
    if (packing.constant >= 0 || packing.count == 1) continue;
    all += static_cast<size_t>(packing.count) * packing.bytes;
    of_an_entry += packing.bytes;
    for (int64_t outer = 0; outer + 1 < program.outer; ++outer) {
      if (program.number_of(packing, outer + 1) < program.number_of(packing, outer)) return program.outer;
    }
  }
  return all > kPackedBytes ? std::max<int64_t>(1, static_cast<int64_t>(kPackedBytes / of_an_entry)) : program.outer;
}

}  // namespace

TiledRunner::TiledRunner(const kernel::TiledStep& step, const StepCompiler& compiler, const Constants& constants)
    : program_(loops_of(step, compiler.machine.cores)) {
  TileUse use;
  list_packings(step, constants, use);
  for (const kernel::Plan& plan : step.plans) {
    use.like = plans_.empty() ? nullptr : plans_.front().get();
    plans_.push_back(std::make_unique<const PlanRunner>(plan, compiler, &use));
    program_.thread_bytes = std::max(program_.thread_bytes, aligned(plans_.back()->scratch_bytes()));
  }
  add_shorter_plans(step, compiler, use);
  place_packings(step, constants);
  place_sums(step, compiler);
  describe_plans(step);
}

void TiledRunner::describe_plans(const kernel::TiledStep& step) {
  std::string tiles = join("tile of ", step.rows, " rows");
  if (step.columns > 0) tiles += join(" and ", step.columns, " columns");
  tiles += join(", ", count_of(program_.loops), " tiles");
  if (program_.lengths) tiles += ", which leave out hidden columns";
  const size_t sums = program_.sums.size();
  if (sums > 0) tiles += join(", which add to ", sums, sums == 1 ? " sum" : " sums");
  for (const PlanRunner::StepText& text : plans_.front()->texts())
    texts_.push_back({text.name, join(tiles, ": ", text.text), text.schedule});
  if (finish_ == nullptr) return;
  for (const PlanRunner::StepText& text : finish_->texts())
    texts_.push_back({text.name, join("after the tiles, ", program_.outer, " entries: ", text.text), text.schedule});
}

std::unique_ptr<const TileDispatch> TiledRunner::take_dispatch() {
  TilePlans plans;
  for (const auto& plan : plans_) plans.tiles.push_back(plan->program());
  for (const auto& plan : shorter_plans_) plans.shorter.push_back(plan->program());
  if (finish_ != nullptr) plans.finish = finish_->program();
  return std::make_unique<const TileDispatch>(std::move(program_), std::move(plans));
}

// Only if the products have the same bits for any number of columns.
void TiledRunner::add_shorter_plans(const kernel::TiledStep& step, const StepCompiler& compiler, TileUse& use) {
  if (!step.shorter) return;
  for (const kernel::PlanStep& part : step.plans.front().steps) {
    const auto* const library_step = std::get_if<kernel::LibraryStep>(&part);
    if (library_step != nullptr && !plans_.front()->primitive(library_step->op.id)->sums_in_order()) return;
  }
  use.like = plans_.front().get();
  for (const kernel::Plan& plan : step.shorter->plans) {
    shorter_plans_.push_back(std::make_unique<const PlanRunner>(plan, compiler, &use));
    program_.thread_bytes = std::max(program_.thread_bytes, aligned(shorter_plans_.back()->scratch_bytes()));
  }
  program_.lengths = lengths_of(step, program_);
  program_.lengths_at = program_.threads_at;
  program_.threads_at += aligned(static_cast<size_t>(program_.lengths->count));
}

bool TiledRunner::from_cache() const {
  return (finish_ == nullptr || finish_->from_cache()) &&
         std::all_of(plans_.begin(), plans_.end(), [](const auto& plan) { return plan->from_cache(); }) &&
         std::all_of(shorter_plans_.begin(), shorter_plans_.end(), [](const auto& plan) { return plan->from_cache(); });
}

bool TiledRunner::is_only_packed(const kernel::TiledStep& step, size_t input) const {
  const auto is_packed_for = [this](const kernel::PlanStep& part) {
    const auto* const library_step = std::get_if<kernel::LibraryStep>(&part);
    if (library_step == nullptr) return false;
    for (size_t p = 0; p < packed_ops_.size(); ++p)
      if (packed_ops_[p] == library_step->op.id && program_.packings[p].bytes > 0) return true;
    return false;
  };
  if (program_.lengths && step.shorter->values == input) return false;
  for (const kernel::Plan& plan : step.plans) {
    for (const kernel::PlanStep& part : plan.steps) {
      const std::vector<kernel::Binding>& args = kernel::args_of(part);
      for (size_t a = 0; a < args.size(); ++a) {
        if (args[a].source != kernel::Binding::Source::input || args[a].index != input) continue;
        if (a != 1 || !is_packed_for(part)) return false;
      }
    }
  }
  return true;
}

// Packed weights are additional inputs of the tile's plan, after its own.
void TiledRunner::list_packings(const kernel::TiledStep& step, const Constants& constants, TileUse& use) {
  for (const kernel::PlanStep& part : step.plans.front().steps) {
    const auto* const library_step = std::get_if<kernel::LibraryStep>(&part);
    if (library_step == nullptr || library_step->inputs.size() < 2) continue;
    const kernel::Binding& weights = library_step->args[1];
    if (weights.source != kernel::Binding::Source::input) continue;
    const Dims& strides = program_.strides[weights.index];
    if (std::any_of(strides.begin() + static_cast<std::ptrdiff_t>(program_.row_loop), strides.end(),
                    [](int64_t s) { return s != 0; }))
      continue;
    const bool once = is_read_once(strides) && !constants.contains(step.args[weights.index]);
    const size_t input = program_.inputs + program_.tile_origins.size() + program_.packings.size();
    use.packed_inputs[library_step->op.id] = {input, once};
    packed_ops_.push_back(library_step->op.id);
    program_.packings.push_back({.input = weights.index, .strides = Dims(program_.loops.size(), 0)});
  }
}

// Whether each tile reads other entries.
bool TiledRunner::is_read_once(const Dims& strides) const {
  for (size_t loop = 0; loop < program_.loops.size(); ++loop)
    if (program_.loops[loop] > 1 && strides[loop] == 0) return false;
  return true;
}

void TiledRunner::place_packings(const kernel::TiledStep& step, const Constants& constants) {
  for (size_t p = 0; p < packed_ops_.size(); ++p) {
    TileProgram::Packing& packing = program_.packings[p];
    packing.step = plans_.front()->step_of(packed_ops_[p]);
    for (size_t loop = program_.row_loop; loop-- > 0;) {
      if (program_.strides[packing.input][loop] == 0) continue;
      packing.strides[loop] = packing.count;
      packing.count *= program_.loops[loop];
    }
    packing.bytes = aligned(plans_.front()->primitive(packed_ops_[p])->packed_bytes());
    if (packing.bytes == 0 || !constants.contains(step.args[packing.input])) continue;
    packing.constant = constants.add(step.args[packing.input], static_cast<size_t>(packing.count) * packing.bytes);
  }
  program_.wave = wave_of(program_);
  for (TileProgram::Packing& packing : program_.packings) {
    packing.at = program_.threads_at;
    if (packing.constant < 0)
      program_.threads_at += static_cast<size_t>(std::min(packing.count, program_.wave)) * packing.bytes;
  }
}

// Copies of sums are in the thread's scratch if there are enough entries for all threads; each thread then runs all segments
// of an entry. Else threads take segments, and the sums of all entries are adjacent in memory.
void TiledRunner::place_sums(const kernel::TiledStep& step, const StepCompiler& compiler) {
  for (const kernel::TileSum& given : step.sums) {
    const bool by_segment = step.segments > 1 && static_cast<size_t>(given.loop) == program_.row_loop;
    TileProgram::Sum sum{program_.inputs + given.output,   given.in_place, by_segment, program_.sum_bytes,
                         static_cast<size_t>(given.bytes), given.strides};
    if (!sum.in_place) program_.sum_bytes += aligned(sum.bytes * static_cast<size_t>(by_segment ? step.segments : 1));
    sum.strides[program_.row_loop] *= step.rows;
    if (step.columns > 0) sum.strides.back() *= step.columns;
    program_.sums.push_back(std::move(sum));
  }
  if (!step.finish.empty()) {
    const TileUse alone;
    finish_ = std::make_unique<const PlanRunner>(step.finish.front(), compiler, &alone);
    program_.thread_bytes = std::max(program_.thread_bytes, aligned(finish_->scratch_bytes()));
  }
  program_.finishes_alone = step.segments == 1 || program_.outer >= kEntriesWanted;
  if (program_.finishes_alone) {
    program_.sums_at = program_.thread_bytes;
    program_.thread_bytes += program_.sum_bytes;
  } else {
    program_.sums_at = program_.threads_at;
    program_.threads_at += static_cast<size_t>(program_.outer) * program_.sum_bytes;
  }
}

}  // namespace lamina::cpu
