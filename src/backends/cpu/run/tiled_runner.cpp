#include "backends/cpu/run/tiled_runner.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/threads/executor.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

constexpr size_t kPackedBytes = 32 << 20;  // of packed weights in scratch
constexpr size_t kInlineArgs = 64;         // the most args of a step: larger regions are not tiled
constexpr int64_t kEntriesWanted = 16;     // so that threads can take one at a time

int64_t count_of(const Dims& loops) {
  int64_t count = 1;
  for (const int64_t extent : loops) count *= extent;
  return count;
}

}  // namespace

TiledRunner::TiledRunner(const kernel::TiledStep& step, const StepCompiler& compiler, const Constants& constants)
    : loops_(step.loops),
      row_loop_(step.row_loop),
      rows_(step.rows),
      segments_(step.segments),
      has_less_rows_(step.loops[step.row_loop] % step.rows > 0),
      has_less_columns_(step.columns > 0 && step.loops.back() % step.columns > 0),
      inputs_(step.inputs.size()),
      tile_origins_(step.tile_origins),
      strides_(step.strides),
      slots_(compiler.machine.cores) {
  for (size_t loop = row_loop_; loop < loops_.size(); ++loop) {
    const int64_t block = loop == row_loop_ ? step.rows : step.columns;
    loops_[loop] = (loops_[loop] + block - 1) / block;
    for (Dims& strides : strides_) strides[loop] *= block;
    for (Dims& positions : tile_origins_) positions[loop] *= block;
  }
  for (size_t loop = 0; loop < row_loop_; ++loop) outer_ *= loops_[loop];
  TileUse use;
  list_packings(step, constants, use);
  for (const kernel::Plan& plan : step.plans) {
    use.like = plans_.empty() ? nullptr : plans_.front().get();
    plans_.push_back(std::make_unique<const PlanRunner>(plan, compiler, &use));
    thread_bytes_ = std::max(thread_bytes_, aligned(plans_.back()->scratch_bytes()));
  }
  add_shorter_plans(step, compiler, use);
  place_packings(step, constants);
  place_sums(step, compiler);
  std::string tiles = join("tile of ", rows_, " rows");
  if (step.columns > 0) tiles += join(" and ", step.columns, " columns");
  tiles += join(", ", count_of(loops_), " tiles");
  if (lengths_) tiles += ", which leave out hidden columns";
  if (!sums_.empty()) tiles += join(", which add to ", sums_.size(), sums_.size() == 1 ? " sum" : " sums");
  for (const PlanRunner::StepText& text : plans_.front()->texts())
    texts_.push_back({text.name, join(tiles, ": ", text.text), text.schedule});
  if (finish_ == nullptr) return;
  for (const PlanRunner::StepText& text : finish_->texts())
    texts_.push_back({text.name, join("after the tiles, ", outer_, " entries: ", text.text), text.schedule});
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
    thread_bytes_ = std::max(thread_bytes_, aligned(shorter_plans_.back()->scratch_bytes()));
  }
  lengths_.emplace(step, loops_, strides_[step.shorter->values]);
  lengths_at_ = threads_at_;
  threads_at_ += aligned(lengths_->scratch_bytes());
}

bool TiledRunner::from_cache() const {
  return (finish_ == nullptr || finish_->from_cache()) &&
         std::all_of(plans_.begin(), plans_.end(), [](const auto& plan) { return plan->from_cache(); }) &&
         std::all_of(shorter_plans_.begin(), shorter_plans_.end(), [](const auto& plan) { return plan->from_cache(); });
}

bool TiledRunner::is_only_packed(const kernel::TiledStep& step, size_t input) const {
  const auto is_packed_for = [this](const kernel::PlanStep& part) {
    const auto* const library_step = std::get_if<kernel::LibraryStep>(&part);
    return library_step != nullptr && std::any_of(packings_.begin(), packings_.end(), [&](const Packing& packing) {
             return packing.op == library_step->op.id && packing.bytes > 0;
           });
  };
  if (lengths_ && step.shorter->values == input) return false;
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
    const Dims& strides = strides_[weights.index];
    if (std::any_of(strides.begin() + static_cast<std::ptrdiff_t>(row_loop_), strides.end(), [](int64_t s) { return s != 0; }))
      continue;
    const bool once = is_read_once(strides) && !constants.contains(step.args[weights.index]);
    use.packed_inputs[library_step->op.id] = {inputs_ + tile_origins_.size() + packings_.size(), once};
    packings_.push_back({library_step->op.id, weights.index, nullptr, 1, Dims(loops_.size(), 0), 0, 0, -1});
  }
}

// Whether each tile reads other entries.
bool TiledRunner::is_read_once(const Dims& strides) const {
  for (size_t loop = 0; loop < loops_.size(); ++loop)
    if (loops_[loop] > 1 && strides[loop] == 0) return false;
  return true;
}

void TiledRunner::place_packings(const kernel::TiledStep& step, const Constants& constants) {
  for (Packing& packing : packings_) {
    packing.primitive = plans_.front()->primitive(packing.op);
    for (size_t loop = row_loop_; loop-- > 0;) {
      if (strides_[packing.input][loop] == 0) continue;
      packing.strides[loop] = packing.count;
      packing.count *= loops_[loop];
    }
    packing.bytes = aligned(packing.primitive->packed_bytes());
    if (packing.bytes == 0 || !constants.contains(step.args[packing.input])) continue;
    packing.constant = constants.add(step.args[packing.input], static_cast<size_t>(packing.count) * packing.bytes);
  }
  choose_wave();
  for (Packing& packing : packings_) {
    packing.at = threads_at_;
    if (packing.constant < 0) threads_at_ += static_cast<size_t>(std::min(packing.count, wave_)) * packing.bytes;
  }
}

// Copies of sums are in the thread's scratch if there are enough entries for all threads; each thread then runs all segments
// of an entry. Else threads take segments, and the sums of all entries are adjacent in memory.
void TiledRunner::place_sums(const kernel::TiledStep& step, const StepCompiler& compiler) {
  for (const kernel::TileSum& sum : step.sums) {
    const bool by_segment = segments_ > 1 && static_cast<size_t>(sum.loop) == row_loop_;
    sums_.push_back({inputs_ + sum.output, sum.in_place, by_segment, sum_bytes_, static_cast<size_t>(sum.bytes), sum.strides});
    if (!sum.in_place) sum_bytes_ += aligned(sums_.back().bytes * static_cast<size_t>(by_segment ? segments_ : 1));
    sums_.back().strides[row_loop_] *= step.rows;
    if (step.columns > 0) sums_.back().strides.back() *= step.columns;
  }
  if (!step.finish.empty()) {
    const TileUse alone;
    finish_ = std::make_unique<const PlanRunner>(step.finish.front(), compiler, &alone);
    thread_bytes_ = std::max(thread_bytes_, aligned(finish_->scratch_bytes()));
  }
  finishes_alone_ = segments_ == 1 || outer_ >= kEntriesWanted;
  if (finishes_alone_) {
    sums_at_ = thread_bytes_;
    thread_bytes_ += sum_bytes_;
  } else {
    sums_at_ = threads_at_;
    threads_at_ += static_cast<size_t>(outer_) * sum_bytes_;
  }
}

// The number of the packed weights that the tiles of an entry of the outer loops read.
int64_t TiledRunner::number_of(const Packing& packing, int64_t outer) const {
  int64_t number = 0;
  for (size_t loop = row_loop_; loop-- > 0; outer /= loops_[loop]) number += outer % loops_[loop] * packing.strides[loop];
  return number;
}

// All entries at once if their packed weights are small or used again later; else as many as fit kPackedBytes.
void TiledRunner::choose_wave() {
  wave_ = outer_;
  size_t all = 0, of_an_entry = 0;
  for (const Packing& packing : packings_) {
    if (packing.constant >= 0 || packing.count == 1) continue;
    all += static_cast<size_t>(packing.count) * packing.bytes;
    of_an_entry += packing.bytes;
    for (int64_t outer = 0; outer + 1 < outer_; ++outer) {
      if (number_of(packing, outer + 1) < number_of(packing, outer)) return;
    }
  }
  if (all > kPackedBytes) wave_ = std::max<int64_t>(1, static_cast<int64_t>(kPackedBytes / of_an_entry));
}

// Consecutive tiles are neighbouring blocks of rows, which share data in the caches.
TiledRunner::Entries TiledRunner::entries_of(int64_t tile) const {
  Entries entries;
  for (size_t loop = loops_.size(); loop-- > 0;) {
    const int64_t extent = loops_[loop];
    entries[loop] = extent == 1 ? 0 : tile % extent;
    if (extent != 1) tile /= extent;
  }
  return entries;
}

int64_t TiledRunner::at(const Entries& entries, const Dims& strides) const {
  int64_t place = 0;
  for (size_t loop = 0; loop < loops_.size(); ++loop) place += entries[loop] * strides[loop];
  return place;
}

// Packs the weights with numbers first to last; `packed` is the destination of the first.
void TiledRunner::pack(const Packing& packing, std::span<void* const> args, char* scratch, char* packed, int64_t first,
                       int64_t last, const Executor& team) const {
  for_each_tile(last - first + 1, team, [&](int64_t i, int thread) {
    int64_t bytes = 0;
    for (size_t loop = 0; loop < loops_.size(); ++loop) {
      if (packing.strides[loop] == 0) continue;
      bytes += (first + i) / packing.strides[loop] % loops_[loop] * strides_[packing.input][loop];
    }
    const std::array<void*, 2> weights{nullptr, static_cast<char*>(args[packing.input]) + bytes};
    packing.primitive->pack(weights, packed + static_cast<size_t>(i) * packing.bytes,
                            scratch + threads_at_ + static_cast<size_t>(thread) * thread_bytes_, Executor(1));
  });
}

// The address of packed weights number 0, or where it would be, for tiles of the outer entries first to last. Null if weights
// are not packed.
char* TiledRunner::packed(size_t index, std::span<void* const> args, char* scratch, int64_t first, int64_t last,
                          const Executor& team, PackedConstants* constants) const {
  const Packing& packing = packings_[index];
  if (packing.bytes == 0) return nullptr;
  if (packing.constant >= 0) {
    const auto fill = [&](void* memory) {
      pack(packing, args, scratch, static_cast<char*>(memory), 0, packing.count - 1, team.while_others_wait());
    };
    return static_cast<char*>(
        constants->get(static_cast<size_t>(packing.constant), static_cast<size_t>(packing.count) * packing.bytes, fill));
  }
  const int64_t from = wave_ == outer_ ? 0 : number_of(packing, first);
  const int64_t to = wave_ == outer_ ? packing.count - 1 : number_of(packing, last);
  if (first == 0 || packing.count > 1) pack(packing, args, scratch, scratch + packing.at, from, to, team);
  return scratch + packing.at - static_cast<int64_t>(packing.bytes) * from;
}

void TiledRunner::run(std::span<void* const> args, char* scratch, const Executor& executor, PackedConstants* constants) const {
  const Executor team = executor.at_most(slots_);
  const int64_t blocks = count_of(loops_) / outer_;
  const TileLengths::Found lengths = lengths_ ? lengths_->look(args, scratch + lengths_at_, team) : TileLengths::Found{};
  for (int64_t first = 0; first < outer_; first += wave_) {
    const int64_t last = std::min(first + wave_, outer_) - 1;
    std::array<char*, kInlineArgs> weights;
    for (size_t p = 0; p < packings_.size(); ++p) weights[p] = packed(p, args, scratch, first, last, team, constants);
    const Run run{args, {weights.data(), packings_.size()}, scratch, lengths};
    if (!sums_.empty()) {
      run_entries(run, first, last, team);
      continue;
    }
    for_each_tile((last - first + 1) * blocks, team,
                  [&](int64_t tile, int thread) { run_tile(run, entries_of(first * blocks + tile), nullptr, thread); });
  }
}

void TiledRunner::run_entries(const Run& run, int64_t first, int64_t last, const Executor& team) const {
  const int64_t entries = last - first + 1;
  if (finishes_alone_) {
    for_each_tile(entries, team, [&](int64_t i, int thread) {
      char* const sums = scratch_of(run, thread) + sums_at_;
      for (int64_t segment = 0; segment < segments_; ++segment) run_segment(run, first + i, segment, sums, thread);
      finish(run, first + i, sums, thread);
    });
    return;
  }
  const auto sums_of = [&](int64_t entry) { return run.scratch + sums_at_ + static_cast<size_t>(entry) * sum_bytes_; };
  for_each_tile(entries * segments_, team, [&](int64_t i, int thread) {
    const int64_t entry = first + i / segments_;
    run_segment(run, entry, i % segments_, sums_of(entry), thread);
  });
  for_each_tile(entries, team, [&](int64_t i, int thread) { finish(run, first + i, sums_of(first + i), thread); });
}

// Blocks of rows within blocks of columns, so that the sums over rows, and the keys and values, stay in the caches.
void TiledRunner::run_segment(const Run& run, int64_t outer, int64_t segment, char* sums, int thread) const {
  Entries entries = entries_of(outer * (count_of(loops_) / outer_));
  const int64_t first = segment * blocks_of_segment(), last = std::min(first + blocks_of_segment(), loops_[row_loop_]);
  entries[row_loop_] = first;
  for (const Sum& sum : sums_) clear(run, sum, entries, last - first, sums);
  const bool has_columns = row_loop_ + 1 < loops_.size();
  for (int64_t column = 0; column < (has_columns ? loops_.back() : 1); ++column) {
    if (has_columns) entries[row_loop_ + 1] = column;
    for (entries[row_loop_] = first; entries[row_loop_] < last; ++entries[row_loop_]) run_tile(run, entries, sums, thread);
  }
}

// Clears the sums of the segment that starts at `entries`: its own copy, or its rows.
void TiledRunner::clear(const Run& run, const Sum& sum, const Entries& entries, int64_t blocks, char* sums) const {
  const auto of_block = static_cast<size_t>(sum.strides[row_loop_]);
  const size_t before = static_cast<size_t>(entries[row_loop_]) * of_block;
  const size_t bytes = of_block == 0 ? sum.bytes : std::min(static_cast<size_t>(blocks) * of_block, sum.bytes - before);
  std::memset(place_of(run, sum, entries, sums), 0, bytes);
}

// The address of a tile's sum.
char* TiledRunner::place_of(const Run& run, const Sum& sum, const Entries& entries, char* sums) const {
  const int64_t within = at(entries, sum.strides);
  if (sum.in_place) {
    Entries entry = entries;
    std::fill(entry.begin() + static_cast<std::ptrdiff_t>(row_loop_), entry.end(), 0);
    return static_cast<char*>(run.args[sum.arg]) + at(entry, strides_[sum.arg]) + within;
  }
  const int64_t segment = sum.by_segment ? entries[row_loop_] / blocks_of_segment() : 0;
  return sums + sum.at + static_cast<size_t>(segment) * sum.bytes + within;
}

void TiledRunner::finish(const Run& run, int64_t outer, char* sums, int thread) const {
  if (finish_ == nullptr) return;
  const Entries entries = entries_of(outer * (count_of(loops_) / outer_));
  std::array<const void*, kInlineArgs> inputs;
  std::array<void*, kInlineArgs> outputs;
  size_t count = 0;
  for (const Sum& sum : sums_) {
    if (sum.in_place) continue;
    inputs[count] = sums + sum.at;
    outputs[count++] = static_cast<char*>(run.args[sum.arg]) + at(entries, strides_[sum.arg]);
  }
  finish_->run({inputs.data(), count}, {outputs.data(), count}, scratch_of(run, thread), Executor(1), nullptr);
}

void TiledRunner::run_tile(const Run& run, const Entries& entries, char* sums, int thread) const {
  std::array<void*, 2 * kInlineArgs> pointers;
  std::array<int64_t, kInlineArgs> origins;
  const auto& args = run.args;
  const auto& packed = run.packed;
  // Inputs, positions of first elements, packed weights, outputs.
  const size_t between = tile_origins_.size() + packed.size();
  for (size_t a = 0; a < args.size(); ++a)
    pointers[a < inputs_ ? a : a + between] = static_cast<char*>(args[a]) + at(entries, strides_[a]);
  for (const Sum& sum : sums_) pointers[sum.arg + between] = place_of(run, sum, entries, sums);
  for (size_t f = 0; f < tile_origins_.size(); ++f) {
    origins[f] = at(entries, tile_origins_[f]);
    pointers[inputs_ + f] = &origins[f];
  }
  for (size_t p = 0; p < packed.size(); ++p) {
    const Packing& packing = packings_[p];
    pointers[inputs_ + tile_origins_.size() + p] =
        packed[p] == nullptr ? pointers[packing.input]
                             : packed[p] + at(entries, packing.strides) * static_cast<int64_t>(packing.bytes);
  }
  const std::span<const void* const> inputs(pointers.data(), inputs_ + between);
  const std::span<void* const> outputs(pointers.data() + inputs.size(), args.size() - inputs_);
  plan_of(run, entries).run(inputs, outputs, scratch_of(run, thread), Executor(1), nullptr);
}

const PlanRunner& TiledRunner::plan_of(const Run& run, const Entries& entries) const {
  if (lengths_) {
    if (const std::optional<size_t> length = lengths_->length_of(run.lengths, entries)) return *shorter_plans_[*length];
  }
  const bool has_less_rows = has_less_rows_ && entries[row_loop_] + 1 == loops_[row_loop_];
  const bool has_less_columns = has_less_columns_ && entries[loops_.size() - 1] + 1 == loops_.back();
  return *plans_[(has_less_columns ? (has_less_rows_ ? 2U : 1U) : 0U) + (has_less_rows ? 1U : 0U)];
}

}  // namespace lamina::cpu
