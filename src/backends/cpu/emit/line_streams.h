// Stores rows as one stream of whole lines, for the realigned walk.
#pragma once

#include <vector>

#include "backends/cpu/emit/memory.h"
#include "backends/cpu/emit/row.h"

namespace lamina::cpu {

class LineStreams : private Part {
 public:
  LineStreams(Emission& emission, Memory& memory) : Part(emission), memory_(memory) {}

  // Vectors per line of the arg's elements.
  size_t vectors_of_line(int arg) const { return static_cast<size_t>(lanes_of_line(arg) / e_.width); }
  // Appends that number of vectors of a row or, at its end, fewer. The lanes of the first one say whether they start the row.
  void append(const Row& row, const Store& to, const ValueList& vectors, const Lanes& first, bool ends_row);
  void end();  // stores the remaining elements after the last row

 private:
  int lanes_of_line(int arg) const;
  llvm::AllocaInst* last_line(int arg);
  llvm::Value* fill_at(int arg, llvm::Value* pointer);
  llvm::Value* lanes_below(llvm::Value* count, int arg);
  llvm::Value* join_at(llvm::Value* fill, llvm::Value* before, llvm::Value* next, int arg);
  llvm::Value* lane_numbers(llvm::Value* first, int arg, int64_t step = 1);

  Memory& memory_;
  std::vector<llvm::AllocaInst*> ends_;  // per realigned arg: the last line's elements so far
};

}  // namespace lamina::cpu
