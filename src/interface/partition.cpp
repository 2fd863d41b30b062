#include "interface/partition.h"

#include <unordered_set>

namespace lamina {

std::vector<uint64_t> op_ids(const Partition& partition) {
  std::vector<uint64_t> ids;
  std::unordered_set<uint64_t> known;
  const auto add = [&](uint64_t id) {  // an op may be there more than once (passes/repeat_dequantize.h)
    if (known.insert(id).second) ids.push_back(id);
  };
  for (const int position : partition.ops) {
    const Op& op = partition.graph->op(position);
    add(op.id);
    for (const Origin& origin : op.origins) add(origin.id);
  }
  return ids;
}

}  // namespace lamina
