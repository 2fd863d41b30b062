// The vectors that each row of a batch stores after a walk, one per accumulator, and the tree that reduces the vectors of all
// rows to one with a lane per row.
#pragma once

#include <vector>

#include "backends/cpu/emit/accumulators.h"
#include "backends/cpu/emit/rows_in_flight.h"

namespace lamina::cpu {

class RowSums : private Part {
 public:
  explicit RowSums(Emission& emission);

  // For one accumulator: one vector per row, starting at `begin` (in bytes).
  struct Place {
    Combine how;
    kernel::Type type;
    int64_t begin;
  };
  std::vector<Place> places_of(const NodeList& roots) const;
  int64_t end_of(const std::vector<Place>& places) const;
  llvm::Value* address(const Place& sums, llvm::Value* row);  // the row's index in its tile
  llvm::Value* fold(const Place& sums, int lanes);            // over the first `lanes` lanes of each vector

 private:
  llvm::Value* join(ValueList parts);

  llvm::AllocaInst* memory_;
};

}  // namespace lamina::cpu
