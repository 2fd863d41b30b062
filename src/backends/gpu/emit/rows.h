// The beginning of a function and of its rows: parameters, threads, and pointers to the args at a row.
#pragma once

#include <functional>
#include <string>

#include "backends/gpu/emit/column_sums.h"

namespace lamina::gpu {

class Rows : private Part {
 public:
  Rows(Emission& emission, ColumnSums& columns) : Part(emission), columns_(columns) {}

  // Opens the next function of the program: the kernel, a phase of a split kernel, or NAME_columns.
  void begin_function(const std::string& suffix);
  void begin_columns_function();
  void emit_threads();  // the team of a thread and its index there
  // Runs `body` for the row of a team, or for row `r` = 0, 1, ... of several: of its block of rows if `sums_columns`. `place`:
  // the team's index. `before`: once before several rows.
  void for_rows(const std::string& place, bool sums_columns, const std::function<void()>& before,
                const std::function<void()>& body);
  std::string count() const;                                // of a team's rows
  std::string number_of_row(const std::string& row) const;  // of a team; `rows` or more if it does not exist
  void begin_row() { begin_row((schedule_.rows_per_group == 1 || schedule_.together) && !runs_several_rows()); }
  void begin_row(bool is_sure);  // of row `wanted`, if it exists
  void emit_row_pointers();

 private:
  bool runs_several_rows() const { return columns_.count() > 0 || schedule_.copies_ahead; }
  int resident_groups() const;

  ColumnSums& columns_;
};

}  // namespace lamina::gpu
