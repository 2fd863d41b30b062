// Rows that leave as one stream of whole lines: what the realigned walk stores.
#pragma once

#include <vector>

#include "backends/cpu/emit/memory.h"
#include "backends/cpu/emit/row.h"

namespace lamina::cpu {

class LineStreams : private Part {
 public:
  LineStreams(Emission& emission, Memory& memory) : Part(emission), memory_(memory) {}

  // Vectors of a line of the arg's elements.
  size_t vectors_of_line(int arg) const { return static_cast<size_t>(lanes_of_line(arg) / e_.width); }
  // So many vectors of a row or, at its end, fewer. The first one's lanes tell whether they begin it.
  void append(const Row& row, const Store& to, const ValueList& vectors, const Lanes& first, bool ends_row);
  void end();  // what is left when the last row is done

 private:
  int lanes_of_line(int arg) const;
  llvm::AllocaInst* last_line(int arg);
  llvm::Value* fill_at(int arg, llvm::Value* pointer);
  llvm::Value* lanes_below(llvm::Value* count, int arg);
  llvm::Value* join_at(llvm::Value* fill, llvm::Value* before, llvm::Value* next, int arg);
  llvm::Value* lane_numbers(llvm::Value* first, int arg, int64_t step = 1);

  Memory& memory_;
  std::vector<llvm::AllocaInst*> ends_;  // per arg that is realigned: its last line's worth of elements so far
};

}  // namespace lamina::cpu
