// Weights that a program packs once, and that are constants of a model: which of them are packed alike, and how to pack them
// when the model is exported.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/dispatch/program_runner.h"
#include "backends/exported_model.h"

namespace lamina::cpu {

struct PackedWeights {
  std::string key;      // those with the same key are packed alike; "": unknown
  size_t constant = 0;  // its number in the program
  size_t bytes = 0;     // as packed
  const ProgramRunner::Step* step = nullptr;
  size_t packing = 0;  // of a tiled step: its number there
};

// `ports`: of the program.
std::vector<PackedWeights> packed_weights(const ExportedModel::Partition& ports, const ProgramRunner& program);

// `inputs`: the memory of the program's inputs, of which only constants are read. `packed`: weights.bytes bytes, all 0, aligned
// to 64 bytes. Code for another machine is not needed: without addresses of code, elements are copied one by one.
void pack(const PackedWeights& weights, const ProgramRunner& program, std::span<const void* const> inputs, void* packed);

}  // namespace lamina::cpu
