#include "backends/cpu/tiled_runner.h"

#include <algorithm>
#include <array>

#include "backends/cpu/threads/executor.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

constexpr size_t kPackedBytes = 32 << 20;  // of packed weights in scratch
constexpr size_t kInlineArgs = 64;         // a step has no more: regions that would are not tiled

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

int64_t count_of(const Dims& loops) {
  int64_t count = 1;
  for (const int64_t extent : loops) count *= extent;
  return count;
}

}  // namespace

TiledRunner::TiledRunner(const kernel::TiledStep& step, const StepCompiler& compiler, const ConstantOf& constant_of)
    : loops_(step.loops),
      rows_(step.rows),
      last_rows_(step.loops.back() % step.rows),
      inputs_(step.inputs.size()),
      strides_(step.strides),
      slots_(compiler.machine.cores) {
  loops_.back() = (loops_.back() + rows_ - 1) / rows_;
  for (Dims& strides : strides_) strides.back() *= rows_;
  TileUse use;
  list_packings(step, use);
  for (const kernel::Plan& plan : step.plans) {
    use.like = plans_.empty() ? nullptr : plans_.front().get();
    plans_.push_back(std::make_unique<const PlanRunner>(plan, compiler, &use));
    thread_bytes_ = std::max(thread_bytes_, aligned(plans_.back()->scratch_bytes()));
  }
  place_packings(step, constant_of);
  const std::string tiles = join("tile of ", rows_, " rows, ", count_of(loops_), " tiles: ");
  for (const PlanRunner::StepText& text : plans_.front()->texts())
    texts_.push_back({text.name, tiles + text.text, text.schedule});
}

bool TiledRunner::from_cache() const {
  return std::all_of(plans_.begin(), plans_.end(), [](const auto& plan) { return plan->from_cache(); });
}

// Packed weights are further inputs of the tile's plan, behind its own.
void TiledRunner::list_packings(const kernel::TiledStep& step, TileUse& use) {
  for (const kernel::PlanStep& part : step.plans.front().steps) {
    const auto* const heavy = std::get_if<kernel::LibraryStep>(&part);
    if (heavy == nullptr || heavy->inputs.size() < 2) continue;
    const kernel::Binding& weights = heavy->args[1];
    if (weights.source != kernel::Binding::Source::input || strides_[weights.index].back() != 0) continue;
    use.packed_inputs[heavy->op.id] = inputs_ + packings_.size();
    packings_.push_back({heavy->op.id, weights.index, nullptr, 1, Dims(loops_.size(), 0), 0, 0, -1});
  }
}

void TiledRunner::place_packings(const kernel::TiledStep& step, const ConstantOf& constant_of) {
  for (Packing& packing : packings_) {
    packing.primitive = plans_.front()->primitive(packing.op);
    for (size_t loop = loops_.size() - 1; loop-- > 0;) {
      if (strides_[packing.input][loop] == 0) continue;
      packing.strides[loop] = packing.count;
      packing.count *= loops_[loop];
    }
    packing.bytes = aligned(packing.primitive->packed_bytes());
    if (packing.bytes > 0) packing.constant = constant_of(step.args[packing.input]);
  }
  choose_wave();
  for (Packing& packing : packings_) {
    packing.at = threads_at_;
    if (packing.constant < 0) threads_at_ += static_cast<size_t>(std::min(packing.count, wave_)) * packing.bytes;
  }
}

// Which packed weights the tiles of an entry of the outer loops read.
int64_t TiledRunner::number_of(const Packing& packing, int64_t outer) const {
  int64_t number = 0;
  for (size_t loop = loops_.size() - 1; loop-- > 0; outer /= loops_[loop])
    number += outer % loops_[loop] * packing.strides[loop];
  return number;
}

// All at once where their packed weights are few, or come back later; else as many as are worth kPackedBytes.
void TiledRunner::choose_wave() {
  for (size_t loop = 0; loop + 1 < loops_.size(); ++loop) outer_ *= loops_[loop];
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

// Blocks of rows are next to each other: they share what lies in the caches.
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

// Packs those numbered first to last; `packed` is where the first goes.
void TiledRunner::pack(const Packing& packing, std::span<void* const> args, char* scratch, char* packed, int64_t first,
                       int64_t last, const Executor& team) const {
  for_each_tile(last - first + 1, team, [&](int64_t i, int thread) {
    int64_t bytes = 0;
    for (size_t loop = 0; loop < loops_.size(); ++loop) {
      if (packing.strides[loop] == 0) continue;
      bytes += (first + i) / packing.strides[loop] % loops_[loop] * strides_[packing.input][loop];
    }
    packing.primitive->pack(static_cast<char*>(args[packing.input]) + bytes, packed + static_cast<size_t>(i) * packing.bytes,
                            scratch + threads_at_ + static_cast<size_t>(thread) * thread_bytes_, Executor(1));
  });
}

// Where the weights numbered 0 lie packed, or would lie, for tiles of the outer entries first to last; null: weights are taken
// as they are.
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
  const int64_t blocks = loops_.back();
  for (int64_t first = 0; first < outer_; first += wave_) {
    const int64_t last = std::min(first + wave_, outer_) - 1;
    std::array<char*, kInlineArgs> weights;
    for (size_t p = 0; p < packings_.size(); ++p) weights[p] = packed(p, args, scratch, first, last, team, constants);
    const std::span<char* const> all(weights.data(), packings_.size());
    for_each_tile((last - first + 1) * blocks, team,
                  [&](int64_t tile, int thread) { run_tile(args, all, scratch, first * blocks + tile, thread); });
  }
}

void TiledRunner::run_tile(std::span<void* const> args, std::span<char* const> packed, char* scratch, int64_t tile,
                           int thread) const {
  const Entries entries = entries_of(tile);
  std::array<void*, 2 * kInlineArgs> pointers;
  // Inputs, packed weights, outputs.
  for (size_t a = 0; a < args.size(); ++a)
    pointers[a < inputs_ ? a : a + packed.size()] = static_cast<char*>(args[a]) + at(entries, strides_[a]);
  for (size_t p = 0; p < packed.size(); ++p) {
    const Packing& packing = packings_[p];
    pointers[inputs_ + p] = packed[p] == nullptr
                                ? pointers[packing.input]
                                : packed[p] + at(entries, packing.strides) * static_cast<int64_t>(packing.bytes);
  }
  const bool is_last = last_rows_ > 0 && entries[loops_.size() - 1] + 1 == loops_.back();
  const std::span<const void* const> inputs(pointers.data(), inputs_ + packed.size());
  const std::span<void* const> outputs(pointers.data() + inputs.size(), args.size() - inputs_);
  plans_[is_last ? 1 : 0]->run(inputs, outputs, scratch + threads_at_ + static_cast<size_t>(thread) * thread_bytes_,
                               Executor(1), nullptr);
}

}  // namespace lamina::cpu
