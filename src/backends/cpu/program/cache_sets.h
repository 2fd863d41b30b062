// Which rows of a matrix get into each other's way in a first-level cache: those that begin at the same sets, which repeat each
// page.
#pragma once

#include <cstdint>
#include <numeric>

namespace lamina::cpu {

inline constexpr int64_t kBytesOfWay = 4096;

// The number of rows, `row_bytes` apart, that begin at different places of a way.
inline int64_t different_beginnings(int64_t row_bytes) { return kBytesOfWay / std::gcd(kBytesOfWay, row_bytes); }

}  // namespace lamina::cpu
