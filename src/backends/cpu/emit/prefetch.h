// Prefetching: requests data before the kernel reads it.
#pragma once

#include <vector>

#include "backends/cpu/emit/in_register_transpose.h"

namespace lamina::cpu {

class Prefetch : private Part {
 public:
  Prefetch(Emission& emission, InRegisterTranspose& transpose) : Part(emission), transpose_(transpose) {}

  void prefetch_ends(const Row& row);  // the lines at both ends of streamed rows
  // Emitted next to vectors [first, first + count) of a chunk.
  void prefetch_along(const std::vector<Row*>& rows, const NodeList& nodes, const std::vector<Lanes>& chunk, size_t first,
                      size_t count, int phase);
  // Emitted next to positions of a group, `run` of which are consecutive.
  void prefetch_across(const Row& group, const std::vector<Lanes>& positions, size_t run, int phase);

 private:
  struct Ahead {              // the prefetches of a walk
    int64_t pace = 0;         // bytes per element
    int64_t before = 0;       // bytes per element that other walks prefetch before these
    bool of_own_row = false;  // they are in this row, else in the next one
  };
  struct Range {
    int64_t begin, end;
  };
  struct Share {  // the part from begin / whole to end / whole
    int64_t begin, end, whole;
    Range of(int64_t size) const { return {size * begin / whole, size * end / whole}; }
  };
  void hint(llvm::Value* address, int level, bool writes = false);
  Ahead ahead_of(int64_t element_bytes, int phase) const;
  llvm::Value* bytes_ahead(int64_t row_bytes, int64_t element_bytes, const Ahead& asked);
  static Share share_of(int64_t walk, int64_t walks);
  void prefetch_rows(const Row& group, int arg, const std::vector<Lanes>& positions, const Range& rows);
  void prefetch_positions(const Row& group, int arg, const std::vector<Lanes>& positions, size_t run, const Share& share);

  InRegisterTranspose& transpose_;
};

}  // namespace lamina::cpu
