// Rows whose blocks have a team each, at the same time: the teams send each other the results of their blocks.
#pragma once

#include <string>

#include "backends/gpu/emit/reductions.h"

namespace lamina::gpu {

class Exchange : private Part {
 public:
  Exchange(Emission& emission, Reductions& reductions) : Part(emission), reductions_(reductions) {}

  // At the beginning of a function: the number of the team among those of its row, where its block starts, and memory.
  void begin();
  void send(int phase);     // the results of the team's block, which are in scope
  void receive(int phase);  // those of all blocks, and joins them

 private:
  bool has_results(int phase) const;
  std::string memory(int64_t number) const;

  Reductions& reductions_;
  const int64_t blocks_ = blocks_of_row(kernel_, e_.order), results_ = count_block_results(kernel_);
};

}  // namespace lamina::gpu
