// The memory between the steps of a plan under construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/arena.h"
#include "kernels/plan.h"

namespace lamina::kernel {

// The blocks of the arena while steps are added. A block is live from the step that writes it to the last step that reads it.
class ArenaBuilder {
 public:
  // Returns the block as a binding whose index is its number.
  Binding add(int64_t bytes, size_t step);
  void use(const Binding& block, size_t step) { blocks_[block.index].last_step = step; }
  // The block is live from this step on, if it was live only from a later one.
  void begin_at(const Binding& block, size_t step);
  const ArenaBlock& block(size_t number) const { return blocks_[home_[number]]; }
  // The later block uses the memory of the earlier one from now on.
  void join(size_t earlier, size_t later);
  // Replaces the numbers of blocks by offsets. Returns the bytes of the arena.
  size_t finish(std::vector<PlanStep>& steps, size_t alignment) const;

 private:
  std::vector<ArenaBlock> blocks_;
  std::vector<size_t> home_;  // per block: the block whose memory it uses, itself by default
};

}  // namespace lamina::kernel
