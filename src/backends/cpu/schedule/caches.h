// The caches that a core has to itself.
#pragma once

#include <cstdint>

namespace lamina::cpu {

struct Caches {
  int64_t first = int64_t{32} << 10, second = int64_t{1} << 20;  // bytes, of data
};

// This machine's; what it does not tell is as above.
const Caches& machine_caches();

}  // namespace lamina::cpu
