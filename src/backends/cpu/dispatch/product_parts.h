// The parts of a product that threads take, and where their data are: inside of ProductDispatch.
#pragma once

#include <cstdint>

#include "backends/cpu/dispatch/product_dispatch.h"

namespace lamina::cpu {

// Rows and columns of one entry of the batch, and some entries of k, on one thread.
struct ProductDispatch::Unit {
  int64_t entry;
  Memory at;         // of the entry
  ProductUnit part;  // of dst
  // Scratch memory: copied weights; copied rows of src; tiles of dst and of the bias; the sums of the unit.
  char *panels, *rows, *tile, *bias, *sums;
  int64_t terms, end_k;  // of the sums, in elements and in entries of k
  int64_t first_k = 0, count = 0;
  int64_t end_column = part.end_column;  // `part` may be one panel of the unit
  NextPanel* next = nullptr;             // of a schedule that copies it
  int64_t number = 0;                    // of all units
};

// Rows of src as a register tile reads them, or the pointers to them. Distances are in bytes.
struct ProductDispatch::Rows {
  int64_t first, count;
  const char* src;
  int64_t to_next_row, to_next_k;
};

// The weights of as many columns as a register tile has.
struct ProductDispatch::Panel {
  int64_t first_column, columns;
  const char* weights;
  int64_t to_next_k;  // bytes; to the next column if tiles transpose the weights
};

// What a register tile adds to, or writes.
struct ProductDispatch::Sums {
  char* at;
  int64_t to_next_row;  // bytes
};

}  // namespace lamina::cpu
