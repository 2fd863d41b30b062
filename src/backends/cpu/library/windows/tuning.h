// The numbers of the rules that choose kernels for pools. None changes a bit of a result. benchmarks/corpus measures them.
#pragma once

#include <cstdint>

namespace lamina::cpu::window_tuning {

// The fewest contiguous channels whose pool is a kernel with the channels in a vector.
inline constexpr int64_t kLeastChannels = 16;

// The fewest pixels of a line whose pool is a kernel with pixels in a vector: shorter lines leave too many lanes empty.
inline constexpr int64_t kLeastLine = 48;

// The same for few channels, of which transposed vectors, the alternative, have more empty lanes; and how many are few.
inline constexpr int64_t kLeastLineOfFewChannels = 16;
inline constexpr int64_t kFewChannels = 12;

}  // namespace lamina::cpu::window_tuning
