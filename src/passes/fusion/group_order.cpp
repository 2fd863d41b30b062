#include "passes/fusion/group_order.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace lamina {

std::vector<int> order_groups(const Graph& graph, const std::vector<int>& group_of, int group_count) {
  const auto count = static_cast<size_t>(group_count);
  std::vector<std::vector<int>> successors(count);
  std::vector<int> waiting_for(count, 0), first_op(count, -1);
  for (size_t op = 0; op < graph.ops().size(); ++op) {
    const int group = group_of[op];
    int& first = first_op[static_cast<size_t>(group)];
    if (first < 0) first = static_cast<int>(op);
    for (const ValueIndex value : graph.ops()[op].inputs) {
      const int producer = value == kNoValue ? -1 : graph.value(value).producer.op;
      if (producer < 0 || group_of[static_cast<size_t>(producer)] == group) continue;
      successors[static_cast<size_t>(group_of[static_cast<size_t>(producer)])].push_back(group);
      ++waiting_for[static_cast<size_t>(group)];
    }
  }
  using Entry = std::pair<int, int>;  // first op, group
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (size_t group = 0; group < count; ++group)
    if (waiting_for[group] == 0) ready.emplace(first_op[group], static_cast<int>(group));
  std::vector<int> order;
  while (!ready.empty()) {
    const int group = ready.top().second;
    ready.pop();
    order.push_back(group);
    for (const int next : successors[static_cast<size_t>(group)])
      if (--waiting_for[static_cast<size_t>(next)] == 0) ready.emplace(first_op[static_cast<size_t>(next)], next);
  }
  return order;
}

}  // namespace lamina
