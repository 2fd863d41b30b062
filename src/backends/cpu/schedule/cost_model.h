// How long a call of a kernel takes by a schedule on a machine, roughly: so that of all legal schedules a good one is known
// before any is compiled. A few constants of the machine (Costs) and the bytes and vectors that the kernel's loops say.
#pragma once

#include <cstddef>
#include <vector>

#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/machine.h"
#include "backends/cpu/schedule/schedule.h"

namespace lamina::cpu {

class CostModel {
 public:
  // The kernel is as with_rows_arranged leaves it; it and the machine live as long as this.
  CostModel(const kernel::Kernel& kernel, const Machine& machine);

  // Of a call by all cores, over memory that the call before has left in the caches as far as it fits.
  double microseconds(const Schedule& schedule) const;
  // Of a row, for the thread that has it: what schedules of whole rows differ in. Of the number of rows it depends only through
  // the caches that hold them all.
  double nanoseconds_of_row(const Schedule& schedule) const;
  // Whether a call takes long enough for other threads to be woken for it.
  bool is_worth_threads() const { return is_worth_threads_; }

 private:
  // One walk over a row: what it does with each vector of elements.
  struct Walk {
    std::vector<int> loads;  // args, once each
    int operations = 0, functions = 0, conversions = 0, reductions = 0, sums = 0;
    int functions_of_before = 0;  // of the functions, those that an earlier walk has computed
    bool stores = false;
  };
  struct Row;
  struct Walking;
  struct Work;
  Walk walk_of(int phase);
  bool is_own(const kernel::Arg& arg) const;
  void count_traffic(const Schedule& schedule, Row& row) const;
  Row row_of(const Schedule& schedule) const;
  double read_again(double bytes, const Row& row) const;
  double shared_line(const Schedule& schedule, const Row& row, bool in_strips) const;
  void read_first(const Walk& walk, int arg, const Schedule& schedule, const Row& row, Work& work) const;
  void read_own(size_t place, int arg, const Schedule& schedule, const Row& row, Work& work) const;
  static double rows_together(const Walk& walk, const Schedule& schedule);
  void add_walk(size_t place, const Schedule& schedule, const Row& row, Walking& walking) const;
  double ends_of_row(const Schedule& schedule) const;
  double along_row(const Schedule& schedule) const;
  double falsely_shared_lines() const;
  double across_row(const Schedule& schedule) const;

  const kernel::Kernel& kernel_;
  const Machine& machine_;
  Footprint bytes_;
  std::vector<int> first_walk_;  // per node, of the functions
  std::vector<Walk> walks_;
  bool reduces_whole_;
  bool is_worth_threads_ = false;
  int threads_ = 1;
  double first_, second_;  // bytes
  double last_level_, rows_, size_, moved_;
};

}  // namespace lamina::cpu
