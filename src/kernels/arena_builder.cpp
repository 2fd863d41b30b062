#include "kernels/arena_builder.h"

#include <algorithm>
#include <variant>

namespace lamina::kernel {

Binding ArenaBuilder::add(int64_t bytes, size_t step) {
  blocks_.push_back({bytes, step, step});
  home_.push_back(home_.size());
  return {Binding::Source::arena, blocks_.size() - 1};
}

void ArenaBuilder::begin_at(const Binding& block, size_t step) {
  ArenaBlock& home = blocks_[home_[block.index]];
  home.first_step = std::min(home.first_step, step);
}

void ArenaBuilder::join(size_t earlier, size_t later) {
  home_[later] = home_[earlier];
  blocks_[home_[earlier]].last_step = blocks_[later].last_step;
  blocks_[later].bytes = 0;
}

size_t ArenaBuilder::finish(std::vector<PlanStep>& steps, size_t alignment) const {
  const ArenaLayout layout = lay_out(blocks_, alignment);
  for (PlanStep& step : steps) {
    for (Binding& binding : std::visit([](auto& each) -> std::vector<Binding>& { return each.args; }, step)) {
      if (binding.source == Binding::Source::arena) binding.index = layout.offsets[home_[binding.index]];
    }
  }
  return layout.bytes;
}

}  // namespace lamina::kernel
