// A compiled kernel as data: everything that its execution needs besides its machine code.
#pragma once

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
  bool streams = false;          // calls use it, if the tensors' alignment allows it
  bool times_stores = false;     // that holds for the first calls: later ones store as is faster (dispatch/store_choice.h)
  // Rows that are divided among threads. Empty: none are.
  std::vector<bool> gains_by_split;  // per number of threads; the last entry is for more
  int64_t split_steps = 0;
  int64_t paired_stages = 0;  // the first stages of a group: two steps each, because a thread combines what it has walked
  int64_t state_bytes = 0;    // per row that is split

  bool splits() const { return !gains_by_split.empty(); }

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.extents), visit(self.outer_rank), visit(self.entry_rank), visit(self.args), visit(self.column_sums);
    visit(self.sums_in_f64), visit(self.moved_bytes), visit(self.sharing), visit(self.is_worth_threads),
        visit(self.has_one_thread);
    visit(self.has_parts), visit(self.streamed), visit(self.aligns_to_lines), visit(self.streams), visit(self.times_stores);
    visit(self.gains_by_split), visit(self.split_steps), visit(self.paired_stages), visit(self.state_bytes);
  }
};

}  // namespace lamina::cpu
