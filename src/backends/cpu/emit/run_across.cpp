// Positions of a group of rows, with one lane per row. If the walk reduces, each of the 64 virtual lanes may run in registers
// from the block's start to its end; else positions run in order, with the virtual lanes in memory, or in registers if there
// are few positions.
#include <algorithm>

#include "backends/cpu/emit/walk.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

namespace {

class AcrossRun : private Part {
 public:
  AcrossRun(Emission& emission, int step) : Part(emission), step_(step) {}
  void count(const Row& group, llvm::Value* begin, int64_t count, const Body& body) const;

 private:
  void in_order(const Row& group, llvm::Value* begin, int64_t count, const Body& body) const;
  void at_once(const Row& group, llvm::Value* begin, int64_t count, const Body& body) const;
  void by_lanes(const Row& group, llvm::Value* begin, int64_t count, const Body& body) const;
  void lanes_of_chunks(const Row& group, llvm::Value* at, int64_t chunks, int step, const Body& body) const;
  void lanes_of_tail(const Row& group, llvm::Value* begin, llvm::Value* lane, int64_t live, int step, const Body& body) const;

  const int step_;
};

// Across rows, all accumulators have this form.
std::vector<LanesInMemory*> lanes_in_memory(std::span<Root> roots) {
  std::vector<LanesInMemory*> all;
  for (Root& root : roots) {
    for (const auto& accumulator : root.accumulators) all.push_back(static_cast<LanesInMemory*>(accumulator.get()));
  }
  return all;
}

// Resets the lanes in memory, unless several segments fill them.
void AcrossRun::count(const Row& group, llvm::Value* begin, int64_t count, const Body& body) const {
  if (!reduce(body.roots()) || e_.inner_rank() > 1) return in_order(group, begin, count, body);
  if (step_ < e_.group && count >= kVirtualLanes) return by_lanes(group, begin, count, body);
  if (count <= tuning::kPositionsAtOnce) return at_once(group, begin, count, body);
  for (LanesInMemory* accumulator : lanes_in_memory(body.roots())) accumulator->reset();
  in_order(group, begin, count, body);
}

void AcrossRun::in_order(const Row& group, llvm::Value* begin, int64_t count, const Body& body) const {
  const int64_t whole = count / step_ * step_;
  if (whole > 0)
    e_.loop(begin, b_.CreateAdd(begin, i64(whole)), i64(step_),
            [&](llvm::Value* at) { body(positions_at(e_, group.frame, at, step_)); });
  if (count > whole) body(positions_at(e_, group.frame, b_.CreateAdd(begin, i64(whole)), static_cast<int>(count - whole)));
}

// Runs all positions without a loop. The fold reads their lanes from registers.
void AcrossRun::at_once(const Row& group, llvm::Value* begin, int64_t count, const Body& body) const {
  for (LanesInMemory* accumulator : lanes_in_memory(body.roots())) accumulator->hold_run(static_cast<int>(count));
  std::vector<Lanes> all = positions_at(e_, group.frame, begin, static_cast<int>(count));
  for (size_t first = 0; first < all.size(); first += static_cast<size_t>(step_)) {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(first);
    body({from, from + static_cast<std::ptrdiff_t>(std::min(all.size() - first, static_cast<size_t>(step_)))});
  }
}

// Runs lane after lane, each in a register from the block's start to its end. Lanes that the fold joins first, 32 apart, run
// together and are joined immediately, so half of the lanes never need memory.
void AcrossRun::by_lanes(const Row& group, llvm::Value* begin, int64_t count, const Body& body) const {
  const int step = std::max(1, step_ / 2);
  const auto accumulators = lanes_in_memory(body.roots());
  for (LanesInMemory* accumulator : accumulators) accumulator->hold(step);
  e_.loop(i64(0), i64(kVirtualLanes / 2), i64(step), [&](llvm::Value* lane) {
    for (LanesInMemory* accumulator : accumulators) accumulator->start_held();
    lanes_of_chunks(group, b_.CreateAdd(begin, lane), count / kVirtualLanes, step, body);
    lanes_of_tail(group, b_.CreateAdd(begin, i64(count - count % kVirtualLanes)), lane, count % kVirtualLanes, step, body);
    for (LanesInMemory* accumulator : accumulators) accumulator->join_held(lane);
  });
  for (LanesInMemory* accumulator : accumulators) accumulator->release();
}

// Runs the held lanes over `chunks` chunks, a few chunks per iteration. Their first lane is at `at`.
void AcrossRun::lanes_of_chunks(const Row& group, llvm::Value* at, int64_t chunks, int step, const Body& body) const {
  const bool is_small = step > 1 || e_.group > e_.width;
  const int64_t most = !is_small                  ? tuning::kChunksOfLargeBody
                       : body.computes_function() ? tuning::kChunksOfWideFunction
                                                  : tuning::kChunksOfSmallBody;
  const int64_t iterations = chunks / most;
  const auto iteration = [&](llvm::Value* first, int64_t deep) {
    std::vector<Lanes> positions;
    for (int64_t offset = 0; offset < deep * kVirtualLanes; offset += kVirtualLanes / 2) {
      for (Lanes& lanes : positions_at(e_, group.frame, b_.CreateAdd(first, i64(offset)), step)) {
        lanes.number = positions.size();
        positions.push_back(lanes);
      }
    }
    body(positions, static_cast<size_t>(step));
  };
  const int64_t whole = iterations * most * kVirtualLanes;
  if (iterations == 1)
    iteration(at, most);
  else if (iterations > 1)
    e_.loop(at, b_.CreateAdd(at, i64(whole)), i64(most * kVirtualLanes), [&](llvm::Value* first) { iteration(first, most); });
  if (chunks % most != 0) iteration(b_.CreateAdd(at, i64(whole)), chunks % most);
}

// The last chunk, which has only `live` of the lanes.
void AcrossRun::lanes_of_tail(const Row& group, llvm::Value* begin, llvm::Value* lane, int64_t live, int step,
                              const Body& body) const {
  if (live == 0) return;
  for (int i = 0; i < 2 * step; ++i) {
    llvm::Value* const at = b_.CreateAdd(lane, i64(i < step ? i : kVirtualLanes / 2 + i - step));
    e_.when(b_.CreateICmpSLT(at, i64(live)), [&] {
      std::vector<Lanes> positions = positions_at(e_, group.frame, b_.CreateAdd(begin, at), 1);
      positions[0].number = static_cast<size_t>(i);
      body(positions);
    });
  }
}

}  // namespace

void run_across(Emission& e, int step, const Row& group, llvm::Value* begin, int64_t count, const Body& body) {
  AcrossRun(e, step).count(group, begin, count, body);
}

void run_across(Emission& e, int step, const Row& group, llvm::Value* begin, llvm::Value* end, const Body& body) {
  llvm::Value* const iterations = e.b.CreateSDiv(e.b.CreateSub(end, begin), e.i64(step));
  llvm::Value* const rest = e.b.CreateAdd(begin, e.b.CreateMul(iterations, e.i64(step)));
  e.loop(begin, rest, e.i64(step), [&](llvm::Value* at) { body(positions_at(e, group.frame, at, step)); });
  e.loop(rest, end, e.i64(1), [&](llvm::Value* at) { body(positions_at(e, group.frame, at, 1)); });
}

}  // namespace lamina::cpu
