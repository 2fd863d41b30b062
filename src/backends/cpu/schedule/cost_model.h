// Predicts the approximate time of a kernel's call under a schedule on a machine, so that a good legal schedule is known
// before any is compiled. Inputs are a few constants of the machine (Costs), and the bytes and vectors of the kernel's loops.
#pragma once

#include <cstddef>
#include <vector>

#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/machine.h"
#include "backends/cpu/schedule/schedule.h"
#include "kernels/loop_plan.h"
#include "kernels/numerics.h"

namespace lamina::cpu {

class CostModel {
 public:
  // The kernel is a result of with_rows_arranged. The kernel and the machine must outlive this.
  CostModel(const kernel::Kernel& kernel, const Machine& machine);

  // The time of a call on all cores. The previous call has left the memory in the caches, as far as it fits.
  double microseconds(const Schedule& schedule) const;
  // The time of a row on its thread, in which schedules of whole rows differ. It depends on the number of rows only through
  // the level of cache that fits all of them.
  double nanoseconds_of_row(const Schedule& schedule) const;
  // Whether a call is long enough to wake other threads.
  bool is_worth_threads() const { return is_worth_threads_; }

 private:
  // One walk over a row: its work per vector of elements.
  struct Walk {
    std::vector<int> loads;  // args, each once
    int operations = 0, functions = 0, conversions = 0, reductions = 0, sums = 0;
    int gathers = 0;              // loads and stores of elements that are not contiguous
    int functions_of_before = 0;  // the number of functions that an earlier walk has computed
    int functions_for_later = 0;  // the number that this walk computes and a later one needs
    bool stores = false;
  };
  struct Row;
  struct Walking;
  struct Work;
  Walk walk_of(const kernel::LoopPlan& plan, int phase) const;
  bool is_apart(const kernel::Node& access) const;
  bool is_own(const kernel::Arg& arg) const;
  void count_traffic(const Schedule& schedule, Row& row) const;
  Row row_of(const Schedule& schedule) const;
  double read_again(double bytes, const Row& row) const;
  double written_live(const Row& row) const;
  double shared_line(const Schedule& schedule, const Row& row, bool in_strips) const;
  void read_first(const Walk& walk, int arg, const Schedule& schedule, const Row& row, Work& work) const;
  bool has_functions() const;
  double waiting_stores(const Schedule& schedule, const Row& row, bool within) const;
  void read_own(size_t place, int arg, const Schedule& schedule, const Row& row, Work& work) const;
  double rows_together(const Walk& walk, const Schedule& schedule) const;
  void add_walk(size_t place, const Schedule& schedule, const Row& row, Walking& walking) const;
  bool is_one_chunk() const { return size_ <= numerics::kVirtualLanes; }
  double ends_of_row(const Schedule& schedule) const;
  double walk_count() const;
  double asked_in_turn(const Schedule& schedule, const Row& row) const;
  double along_row(const Schedule& schedule) const;
  double falsely_shared_lines() const;
  double virtual_lanes(const Schedule& schedule, bool transposes) const;
  double across_row(const Schedule& schedule) const;

  const kernel::Kernel& kernel_;
  Machine machine_;
  Footprint bytes_;
  std::vector<Walk> walks_;
  bool reduces_whole_;
  double of_row_values_;  // nanoseconds per vector of rows: computing and moving values per row
  bool is_worth_threads_ = false;
  int threads_ = 1;
  double first_, second_;  // bytes
  double last_level_, rows_, size_, moved_;
};

}  // namespace lamina::cpu
