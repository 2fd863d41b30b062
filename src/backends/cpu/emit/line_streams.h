// Rows that leave as one stream of whole lines: what the realigned walk stores.
#pragma once

#include <vector>

#include "backends/cpu/emit/memory.h"
#include "backends/cpu/emit/row.h"

namespace lamina::cpu {

class LineStreams : private Part {
 public:
  LineStreams(Emission& emission, Memory& memory) : Part(emission), memory_(memory) {}

  // A vector of a row; lanes tell whether it begins it, and the last one has a mask if it is not full.
  void append(const Row& row, int arg, llvm::Value* value, const Lanes& at);
  void end();  // what is left when the last row is done

 private:
  llvm::AllocaInst* last_vector(int arg);
  llvm::Value* fill_at(int arg, llvm::Value* pointer);
  llvm::Value* lanes_below(llvm::Value* count);
  llvm::Value* join_at(llvm::Value* fill, llvm::Value* before, llvm::Value* next);
  llvm::Value* lane_numbers(llvm::Value* first, int64_t step = 1);
  void store_line(llvm::Value* address, int arg, llvm::Value* line, llvm::Value* mask);
  kernel::Type lane_type() const { return e_.wide ? kernel::Type::f64 : kernel::Type::f32; }

  Memory& memory_;
  std::vector<llvm::AllocaInst*> ends_;  // per arg that is realigned: its last vector so far
};

}  // namespace lamina::cpu
