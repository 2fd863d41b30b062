// Extents in parts of one size.
#pragma once

#include <cstdint>

namespace lamina::kernel {

// How many parts of this size an extent has; the last one may be smaller.
constexpr int64_t parts(int64_t extent, int64_t part) { return (extent + part - 1) / part; }

}  // namespace lamina::kernel
