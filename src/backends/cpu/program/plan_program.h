// What the steps of a compiled plan share, as data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/program/bytes.h"
#include "interface/index_checks.h"
#include "interface/logical_tensor.h"
#include "interface/status.h"
#include "kernels/binding.h"

namespace lamina::cpu {

template <>
inline constexpr int kLastEnumerator<kernel::Binding::Source> = static_cast<int>(kernel::Binding::Source::positions);

// The most args of a step that need no memory of the heap; larger regions are not tiled.
inline constexpr size_t kInlineArgs = 64;

// The memory of a compiled plan: scratch contains that of the running step, then the arena.
struct ProgramMemory {
  std::vector<std::vector<float>> tables;
  int64_t positions = 0;  // the number of entries of Binding::Source::positions
  size_t step_bytes = 0;  // the largest scratch that a step needs
  size_t arena_bytes = 0;
  std::vector<size_t> constants = {};  // bytes of the weights that are packed once

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.tables), visit(self.positions), visit(self.step_bytes), visit(self.arena_bytes), visit(self.constants);
  }
};

// Indices in the memory of an arg, as kernel::StepIndices: they are checked before the step runs, and sorted if there are
// `steps` of an order.
struct IndexCheck {
  OpPlace place;  // for the error
  LogicalTensor tensor;
  size_t arg = 0;
  int64_t extent = 0;
  bool sorts = false;
  IndexOrder order;
  size_t sorted = 0;

  // Without place and tensor (stored_places.h).
  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.arg), visit(self.extent), visit(self.sorts), visit(self.order.steps), visit(self.order.ignored);
    visit(self.sorted);
  }
};

}  // namespace lamina::cpu
