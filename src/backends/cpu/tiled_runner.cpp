#include "backends/cpu/tiled_runner.h"

#include <algorithm>
#include <array>

#include "backends/cpu/threads/executor.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

constexpr size_t kInlineArgs = 64;  // a step has no more: regions that would are not tiled

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
      slots_(std::max(thread_count(0), 1)) {
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
  for (const PlanRunner::StepText& text : plans_.front()->texts()) texts_.push_back({text.name, tiles + text.text});
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
    packing.at = threads_at_;
    if (packing.constant < 0) threads_at_ += static_cast<size_t>(packing.count) * packing.bytes;
  }
}

// Blocks of rows are next to each other: they share what lies in the caches.
int64_t TiledRunner::entry_of(size_t loop, int64_t tile) const {
  for (size_t inner = loops_.size(); --inner > loop;) tile /= loops_[inner];
  return tile % loops_[loop];
}

void TiledRunner::pack(const Packing& packing, std::span<void* const> args, char* scratch, char* packed, int team) const {
  for_each_tile(packing.count, team, [&](int64_t index, int thread) {
    int64_t bytes = 0;
    for (size_t loop = 0; loop < loops_.size(); ++loop) {
      if (packing.strides[loop] == 0) continue;
      bytes += index / packing.strides[loop] % loops_[loop] * strides_[packing.input][loop];
    }
    packing.primitive->pack(static_cast<char*>(args[packing.input]) + bytes,
                            packed + static_cast<size_t>(index) * packing.bytes,
                            scratch + threads_at_ + static_cast<size_t>(thread) * thread_bytes_, 1);
  });
}

// Where the packed weights lie; null: they are taken as they are.
char* TiledRunner::packed(size_t index, std::span<void* const> args, char* scratch, int team,
                          PackedConstants* constants) const {
  const Packing& packing = packings_[index];
  if (packing.bytes == 0) return nullptr;
  if (packing.constant < 0) {
    pack(packing, args, scratch, scratch + packing.at, team);
    return scratch + packing.at;
  }
  return static_cast<char*>(
      constants->get(static_cast<size_t>(packing.constant), static_cast<size_t>(packing.count) * packing.bytes,
                     [&](void* memory) { pack(packing, args, scratch, static_cast<char*>(memory), team); }));
}

void TiledRunner::run(std::span<void* const> args, char* scratch, int threads, PackedConstants* constants) const {
  const int team = std::min(thread_count(threads), slots_);
  std::array<char*, kInlineArgs> weights;
  for (size_t p = 0; p < packings_.size(); ++p) weights[p] = packed(p, args, scratch, team, constants);
  const std::span<char* const> all(weights.data(), packings_.size());
  for_each_tile(count_of(loops_), team, [&](int64_t tile, int thread) { run_tile(args, all, scratch, tile, thread); });
}

void TiledRunner::run_tile(std::span<void* const> args, std::span<char* const> packed, char* scratch, int64_t tile,
                           int thread) const {
  std::array<void*, 2 * kInlineArgs> pointers;
  // Inputs, packed weights, outputs.
  for (size_t a = 0; a < args.size(); ++a) {
    int64_t bytes = 0;
    for (size_t loop = 0; loop < loops_.size(); ++loop) bytes += entry_of(loop, tile) * strides_[a][loop];
    pointers[a < inputs_ ? a : a + packed.size()] = static_cast<char*>(args[a]) + bytes;
  }
  for (size_t p = 0; p < packed.size(); ++p) {
    const Packing& packing = packings_[p];
    int64_t index = 0;
    for (size_t loop = 0; loop + 1 < loops_.size(); ++loop) index += entry_of(loop, tile) * packing.strides[loop];
    pointers[inputs_ + p] =
        packed[p] == nullptr ? pointers[packing.input] : packed[p] + static_cast<size_t>(index) * packing.bytes;
  }
  const bool is_last = last_rows_ > 0 && entry_of(loops_.size() - 1, tile) + 1 == loops_.back();
  const std::span<const void* const> inputs(pointers.data(), inputs_ + packed.size());
  const std::span<void* const> outputs(pointers.data() + inputs.size(), args.size() - inputs_);
  plans_[is_last ? 1 : 0]->run(inputs, outputs, scratch + threads_at_ + static_cast<size_t>(thread) * thread_bytes_, 1,
                               nullptr);
}

}  // namespace lamina::cpu
