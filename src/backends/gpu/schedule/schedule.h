// How a GPU runs a kernel: which threads share a row, and what they keep in registers. Schedules change speed alone: the order
// of summation (sum_order.h) decides the bits.
//
// A *team* of threads shares a row and plays the lanes of its order of summation: thread t plays the lanes t, t + team,
// t + 2 team, ... The shapes of teams, in the field's terms:
//   packed        several rows in a warp (team < 32)
//   warp, block   one row per warp (team 32) or per work-group (team > 32)
//   transposed    rows are contiguous in memory across the row, not along it: neighbouring threads run neighbouring rows
//   flat          no reduction: every thread runs one chunk of the whole grid
//   split         rows of several blocks, if they are few or their columns are summed: several teams share a row block by
//                 block, with one launch per phase. Each team joins the results of the blocks of earlier phases, in their order
//   cluster       rows of a few blocks: each block has a team, the teams run at the same time and keep their blocks in
//   registers.
//                 Each sends the results of its block to the others, and joins those of all blocks in their order. Each team is
//                 a work-group of a cluster, whose groups write into each other's local memory; or (together) all teams are
//                 one work-group
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/gpu/schedule/sum_order.h"
#include "kernels/loop_plan.h"

namespace lamina::gpu {

// The properties of a device that schedules depend on.
struct DeviceLimits {
  int max_group = 1024;   // threads in a work-group
  int compute_units = 1;  // work-groups that can run at the same time, at least
  bool has_f64 = true;
  int local_bytes = 48 << 10;             // local memory of a work-group, at most
  bool multiplies_by_four_warps = false;  // has matrix instructions of four warps (wgmma)
  bool copies_beside_threads = false;     // copies to local memory while threads compute (cp.async)
  int cluster_groups = 1;                 // work-groups that run together and write into each other's local memory, at most
};

// schedule_fields.def documents each field. A new field only needs its line there, and the code of emit/ that reads it.
struct Schedule {
#define LAMINA_FIELD(type, name, usual, ...) type name = usual;
#include "backends/gpu/schedule/schedule_fields.def"

  // The fields in their order: visit(name, pointer to member).
  template <typename Visit>
  static constexpr void for_each_field(const Visit& visit) {
#define LAMINA_FIELD(type, name, usual, ...) visit(#name, &Schedule::name);
#include "backends/gpu/schedule/schedule_fields.def"
  }
  int group_size() const { return team * rows_per_group; }
  bool operator==(const Schedule&) const = default;
};

// The fields that differ from those of Schedule{} (backends/schedule/schedule_text.h).
std::string describe(const Schedule& schedule);
std::optional<Schedule> schedule_of(std::string_view description);

// The default among legal_schedules. Only `split` depends on the number of rows.
Schedule choose_schedule(const kernel::Kernel& kernel, const DeviceLimits& limits);

// "packed", "warp", "block", "transposed", "split", "cluster", "together" or "flat", followed by "columns" if there are column
// sums.
std::string name_of(const kernel::Kernel& kernel, const Schedule& schedule);

// The chunks of a thread in one block of a row.
int chunks_of_thread(const SumOrder& order, const Schedule& schedule);
int elements_of_thread(const SumOrder& order, const Schedule& schedule);
// Whether the loop over them is unrolled, so that values and sums of a thread may stay in registers.
bool unrolls_chunks(const SumOrder& order, const Schedule& schedule);

// Whether each block of the row may have a team that is a work-group of a cluster.
bool may_be_cluster(const kernel::Kernel& kernel, const SumOrder& order, int cluster_groups, const Schedule& schedule);

// The args of which a team copies the next row, in chunks of 16 bytes, the bytes of one row of them for a work-group, and the
// local memory of the work-group for them.
std::vector<int> args_copied_ahead(const kernel::Kernel& kernel, int vector);
int bytes_copied_ahead(const kernel::Kernel& kernel, const SumOrder& order, const Schedule& schedule);
int local_bytes_of_copies(const kernel::Kernel& kernel, const SumOrder& order, const Schedule& schedule);
bool may_copy_ahead(const kernel::Kernel& kernel, const SumOrder& order, int local_bytes, const Schedule& schedule);

// The values of a row that stay in registers between phases: loads before functions, as far as the registers suffice.
kernel::LoopPolicy loop_policy(const kernel::Kernel& kernel, const Schedule& schedule);

}  // namespace lamina::gpu
