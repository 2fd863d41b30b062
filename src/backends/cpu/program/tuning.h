// The numbers that shape how threads share work at run time. None changes a bit of a result. schedule/tuning.h says how to
// measure them, and has those of the code generator.
#pragma once

#include <cstdint>

namespace lamina::cpu::tuning {

// Size of a cache line in bytes. Not a choice, but many choices depend on it.
inline constexpr int64_t kLine = 64;

// Whether a vector of this number of bits is a line, so that no other access shares its lines with it.
constexpr bool is_line(int64_t vector_bits) { return vector_bits >= 8 * kLine; }

// The fraction of a cache that a kernel's data may use. The stack, other programs and conflict misses need the rest.
//   scripts/bench --case LayerNorm --types f32,bf16 16384x1024 8192x2048 4096x4096 4608x768
inline constexpr double kRoomOfCache = 0.8;

// ---- threads

// Bytes that a thread moves per chunk of work: about ten microseconds, so that threads do not wait long for the last ones,
// and taking a chunk costs little in comparison.
//   scripts/bench --case LayerNorm --case LayerNormBackward --types f32,bf16 4096x768; oversubscription
inline constexpr int64_t kChunkBytes = 256 << 10;
// The least number of chunks per thread, if there are enough rows: other threads take the chunks of a thread that comes late.
// With fewer rows, those of a kernel without reductions are divided, and with fewer blocks of a row, parts of it are not
// reduced.
//   (as above)
inline constexpr int64_t kMinChunks = 4;

// Elements of partial column sums that a thread combines at a time, in whole lines.
//   scripts/bench --case LayerNormBackward --types f32 16384x1024
inline constexpr int64_t kColumnUnit = 64;

}  // namespace lamina::cpu::tuning
