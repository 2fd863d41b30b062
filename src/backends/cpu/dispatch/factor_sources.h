// Factors of a product that are no matrix of floats in memory: ProductDispatch asks for their rows or panels.
#pragma once

#include <cstdint>

#include "backends/cpu/program/product_calls.h"

namespace lamina::cpu {

class Source {
 public:
  Source() = default;
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
};

// Weights that are no matrix of floats in memory: makes the panels that register tiles read.
class PanelMaker : public Source {
 public:
  virtual int64_t panel_bytes(int64_t count) const = 0;  // with `count` entries of k
  // Entries of k and columns. `weights`: the pointer that ProductDispatch::run gets, to any kind of memory.
  virtual void make_panel(const void* weights, int64_t first_k, int64_t count, int64_t first_column, int64_t columns,
                          char* panel) const = 0;
};

// Rows of src that are no matrix of floats in memory. `src`: the pointer that ProductDispatch::run gets.
class RowSource : public Source {
 public:
  // If the schedule copies rows: entries of k of some rows of an entry of the batch, in the type of the sums and contiguous;
  // integers without their zero point, in 16 bits. `to_next_row`: bytes.
  virtual void make_rows(const void* src, int64_t entry, int64_t first_row, int64_t rows, int64_t first_k, int64_t count,
                         char* to, int64_t to_next_row) const = 0;
  // If not: k consists of parts of this many entries, which are to_next_k() bytes apart in each row.
  virtual int64_t part() const = 0;
  virtual int64_t to_next_k() const = 0;
  // Finds the pointers to `rows` rows for one part of k, then for the next. Those that are not in memory are made in
  // made_bytes(rows, parts) bytes.
  virtual int64_t made_bytes(int64_t rows, int64_t parts) const = 0;
  virtual void find_rows(const void* src, int64_t entry, int64_t first_row, int64_t rows, int64_t first_part, int64_t parts,
                         const void** to, char* made) const = 0;
  // If not all columns read the same entries, rows are found, not copied.
  virtual ColumnGroups groups() const { return {}; }
};

}  // namespace lamina::cpu
