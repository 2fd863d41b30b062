#include "backends/cpu/dispatch/group_ends.h"

#include "backends/cpu/dispatch/program_checks.h"
#include "backends/cpu/program/stored_places.h"

namespace lamina::cpu {

GroupEnds GroupEnds::read(ProgramReader& from) {
  OpPlace place = read_place(from);
  LogicalTensor offsets = read_tensor(from);
  require(offsets.dtype == DataType::s32 || offsets.dtype == DataType::s64, "offsets of groups");
  return {std::move(place), std::move(offsets)};
}

void GroupEnds::write(ProgramWriter& to) const {
  write_place(to, place_);
  write_tensor(to, offsets_);
}

}  // namespace lamina::cpu
