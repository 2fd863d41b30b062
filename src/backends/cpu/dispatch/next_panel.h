// The panel of weights that follows: register tiles copy or prefetch it while they use the one before.
#pragma once

#include <cstdint>
#include <optional>

#include "backends/cpu/program/product_calls.h"
#include "backends/cpu/program/product_program.h"

namespace lamina::cpu {

struct NextPanel {
  int64_t slot = 0;        // of the panel that is used
  int64_t unit = 0;        // that uses this panel
  bool is_copied = false;  // this panel, when it is used
  const char* from = nullptr;
  char* to = nullptr;
  int64_t columns = 0, entries = 0;      // of k, in elements; 0: there is no next panel
  int64_t from_row = 0, to_row = 0;      // bytes between entries
  int64_t rows_of_tile = 0, copied = 0;  // entries

  // Of a call of this many tiles, which use `count` entries of k, of `elements` elements each: what it copies.
  void share(int64_t tiles, int64_t count, int64_t elements, ProductStrides& strides);
};

// A block of k of a panel.
struct PanelPlace {
  int64_t first_k, column;
};

// In the order in which a unit of these columns uses its panels. `blocks_first`: a block of k of all panels, then the next one.
std::optional<PanelPlace> place_after(PanelPlace place, const ProductProgram& program, bool blocks_first, int64_t first_column,
                                      int64_t end_column, int64_t end_k);

// The bytes of the next panel that each of `tiles` tiles prefetches for an entry of k, of which a panel has `row_bytes`: all
// together the panel, and less than another one. It is a power of two, at most a line: with 24 bytes, lines are prefetched at
// uneven distances of time, and a product that waits for memory takes 1.07 times as long. 0: the work with a panel is so
// long that the next one is not prefetched.
int64_t prefetched_for_entry(int64_t row_bytes, int64_t tiles);

}  // namespace lamina::cpu
