#include "backends/cpu/emit/register_pressure.h"

#include <algorithm>
#include <bit>
#include <set>

#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;

namespace {

// Registers that a walk needs: for each vector, and for all vectors of a chunk together.
struct Pressure {
  int per_vector = 1;
  int shared = 0;  // row values with the same number in each lane
};

Pressure pressure_of(const Emission& e, const WalkTask& task) {
  std::vector<size_t> last_use(e.kernel.nodes.size(), 0);
  std::set<NodeIndex> shared;
  const auto use = [&](NodeIndex user, size_t at) {
    const Node& n = e.kernel.node(user);
    for (int k = 0; k < kernel::operand_count(n); ++k) {
      const NodeIndex operand = n.operands[static_cast<size_t>(k)];
      if (operand < 0) continue;
      if (!e.kernel.node(operand).per_element) shared.insert(operand);
      last_use[static_cast<size_t>(operand)] = std::max(last_use[static_cast<size_t>(operand)], at);
    }
  };
  for (size_t i = 0; i < task.nodes.size(); ++i) use(task.nodes[i], i);
  Pressure found;
  for (const Root& root : task.roots) {
    use(root.node, task.nodes.size());
    if (root.shift != nullptr) ++found.shared;
  }
  found.shared += static_cast<int>(shared.size());
  for (size_t i = 0; i < task.nodes.size(); ++i) {
    const auto is_live = [&](NodeIndex n) { return last_use[static_cast<size_t>(n)] > i; };
    const auto computed = task.nodes.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    found.per_vector = std::max(found.per_vector, static_cast<int>(std::count_if(task.nodes.begin(), computed, is_live)));
  }
  if (e.plan.has_function(task.nodes)) found.per_vector += tuning::kRegistersOfFunction;
  return found;
}

int accumulators_of(const WalkTask& task) {
  int count = 0;
  for (const Root& root : task.roots) count += static_cast<int>(root.accumulators.size());
  return count;
}

int vectors_of_chunk(const Emission& e) { return std::max(kVirtualLanes / e.width, 1); }

}  // namespace

bool may_spill(const Emission& e, const NodeList& nodes) {
  return static_cast<int64_t>(nodes.size()) > tuning::kMaxNodesSideBySide || e.plan.has_function(nodes);
}

size_t vectors_side_by_side(const Emission& e, const WalkTask& task) {
  const Pressure pressure = pressure_of(e, task);
  const int accumulators = accumulators_of(task) * vectors_of_chunk(e) / static_cast<int>(passes_over_lanes(e, task));
  const int free = e.target->registers - accumulators - pressure.shared - 1;
  return std::bit_floor(static_cast<size_t>(std::clamp(free / pressure.per_vector, 1, vectors_of_chunk(e))));
}

size_t passes_over_lanes(const Emission& e, const WalkTask& task) {
  const bool only_reduces = std::all_of(task.roots.begin(), task.roots.end(), [&](const Root& root) {
    return root.reduces() && e.kernel.node(root.node).kind != NodeKind::segment_sum;
  });
  if (!only_reduces || task.roots.empty() || e.across_rows()) return 1;
  const Pressure pressure = pressure_of(e, task);
  const int free = e.target->registers - pressure.shared - pressure.per_vector - 1, vectors = vectors_of_chunk(e);
  int passes = 1;
  while (passes < vectors && accumulators_of(task) * vectors / passes > free) passes *= 2;
  return static_cast<size_t>(passes);
}

}  // namespace lamina::cpu
