// Memory between the steps of a plan: values that are never needed at the same time share bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lamina::kernel {

struct ArenaBlock {
  int64_t bytes = 0;
  size_t first_step = 0, last_step = 0;  // from the step that writes it to the last that reads it, both included
};

struct ArenaLayout {
  std::vector<size_t> offsets;  // per block, multiples of the alignment
  size_t bytes = 0;
};

// Largest blocks first, each at the lowest place that no block of its time takes. The same blocks get the same places on every
// machine. `alignment` is a power of two. Throws Error(out_of_memory) where the sizes do not add up in 64 bits.
ArenaLayout lay_out(std::span<const ArenaBlock> blocks, size_t alignment);

}  // namespace lamina::kernel
