// The input of GroupedMatMul with the ends of its groups.
#pragma once

#include <cstdint>
#include <utility>

#include "backends/cpu/program/program_writer.h"
#include "interface/index_checks.h"
#include "interface/logical_tensor.h"
#include "interface/status.h"

namespace lamina::cpu {

class GroupEnds {
 public:
  GroupEnds(OpPlace place, LogicalTensor offsets) : place_(std::move(place)), offsets_(std::move(offsets)) {}
  static GroupEnds read(ProgramReader& from);
  void write(ProgramWriter& to) const;

  // Calls visit(group, end) for each group. Before that, throws Error if an end is not in 0 to `extent`.
  template <typename Visit>
  void for_each(const void* memory, int64_t extent, const Visit& visit) const {
    for_each_index(offsets_, memory, [&](int64_t group, int64_t end) { check_group_end(place_, group, end, extent); });
    for_each_index(offsets_, memory, visit);
  }

 private:
  OpPlace place_;  // of the input
  LogicalTensor offsets_;
};

}  // namespace lamina::cpu
