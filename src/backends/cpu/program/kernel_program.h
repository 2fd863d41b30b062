// A compiled kernel as data: everything that its execution needs besides its machine code.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/cpu/program/row_sharing.h"
#include "interface/data_type.h"
#include "interface/logical_tensor.h"

namespace lamina::cpu {

struct KernelProgram {
  struct Arg {
    DataType dtype = DataType::f32;
    bool is_output = false;
    Dims strides;  // in elements, per dim; 0 where the tensor does not vary

    template <typename Self, typename Visit>
    static void for_each_field(Self& self, const Visit& visit) {
      visit(self.dtype), visit(self.is_output), visit(self.strides);
    }
  };

  Dims extents;  // outer dims, then inner dims
  int outer_rank = 0;
  int entry_rank = 0;  // the first dims, which number the entries of column sums
  std::vector<Arg> args = {};
  std::vector<int> column_sums = {};  // args, in the order of the sums
  bool sums_in_f64 = false;           // partial column sums
  int64_t moved_bytes = 0;
  RowSharing sharing;
  bool is_worth_threads = false;
  bool has_one_thread = false;  // rows of an output share bytes
  bool has_parts = false;       // rows and columns may run one by one
  // The schedules.
  std::vector<int> streamed;     // args that the code writes past the caches; empty: there is no such code
  bool aligns_to_lines = false;  // its walks begin at a line of the first of them
  // Per code, whether it stores past the caches. Code 0 is that of the first calls. Where the tensors' alignment does not allow
  // such stores, the first code that has none runs.
  std::vector<bool> streams = {false};
  size_t timed_codes = 1;  // later calls use the fastest of the first codes, this many of them (dispatch/access_choice.h)
  // The memory of values that stay live between the walks over a row, unless these are on the stack.
  int64_t live_bytes = 0;  // of a thread
  int slots = 1;           // the largest number of threads that have such memory
  // Rows that are divided among threads. Empty: none are.
  std::vector<bool> gains_by_split;  // per number of threads; the last entry is for more
  int64_t split_steps = 0;
  int64_t paired_stages = 0;  // the first stages of a group: two steps each, because a thread combines what it has walked
  int64_t state_bytes = 0;    // per row that is split

  bool splits() const { return !gains_by_split.empty(); }
  size_t code_without_streaming() const {
    return static_cast<size_t>(std::find(streams.begin(), streams.end(), false) - streams.begin());
  }

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.extents), visit(self.outer_rank), visit(self.entry_rank), visit(self.args), visit(self.column_sums);
    visit(self.sums_in_f64), visit(self.moved_bytes), visit(self.sharing), visit(self.is_worth_threads),
        visit(self.has_one_thread);
    visit(self.has_parts), visit(self.streamed), visit(self.aligns_to_lines), visit(self.streams), visit(self.timed_codes);
    visit(self.live_bytes), visit(self.slots);
    visit(self.gains_by_split), visit(self.split_steps), visit(self.paired_stages), visit(self.state_bytes);
  }
};

}  // namespace lamina::cpu
