#include "interface/partition.h"

namespace lamina {

std::vector<uint64_t> op_ids(const Partition& partition) {
  std::vector<uint64_t> ids;
  for (const int position : partition.ops) {
    const Op& op = partition.graph->op(position);
    ids.push_back(op.id);
    for (const Origin& origin : op.origins) ids.push_back(origin.id);
  }
  return ids;
}

}  // namespace lamina
