// Memory for values that pass between the steps of a plan. Values that are never needed at the same time share bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lamina::kernel {

struct ArenaBlock {
  int64_t bytes = 0;
  size_t first_step = 0, last_step = 0;  // from the step that writes it to the last step that reads it, inclusive
};

struct ArenaLayout {
  std::vector<size_t> offsets;  // per block, multiples of the alignment
  size_t bytes = 0;
};

// Places the largest blocks first, each at the lowest offset that no live block uses. The layout does not depend on the
// machine. `alignment` is a power of two. Throws Error(out_of_memory) if the sizes overflow 64 bits.
ArenaLayout lay_out(std::span<const ArenaBlock> blocks, size_t alignment);

}  // namespace lamina::kernel
