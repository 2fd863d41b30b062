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
  // Runs `body` for the row of a team, or for each row of its block of rows if `sums_columns`. `place`: the team's index.
  void for_rows(const std::string& place, bool sums_columns, const std::function<void()>& body);
  void begin_row();  // of row `wanted`, if it exists
  void emit_row_pointers();

 private:
  int resident_groups() const;

  ColumnSums& columns_;
};

}  // namespace lamina::gpu
