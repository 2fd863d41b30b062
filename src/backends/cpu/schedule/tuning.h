// The numbers that are not part of the cost model (cost_model.h): those that shape the emitted loops, and those of choices
// that are still rules. Each has its unit, its reason, and the command that measures it. None changes a bit of a result.
//
// To measure a number, change it and compare two runs on an idle machine (docs/performance.md). `scripts/bench` means
// `scripts/bench --threads 2`, followed by cases, types and shapes; it prints each case's fraction of the memory bandwidth
// and its ratio to oneDNN. `call_costs` is the last program of scripts/bench: build/bench/bin/call_costs. Decisions 0005 and
// 0007 document some numbers, which is not repeated here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/program/tuning.h"

namespace lamina::cpu::tuning {

// ---- tiles: rows that run a phase together, which hides the latency of a reduction's end behind other rows' work

// The longest rows, in elements, whose tiles are lanes of a vector: the fold is expensive compared with a short row (0005).
//   scripts/bench --case LayerNorm --types f32 16384x256 8192x768
inline constexpr int64_t kLongestRowOfBatch = 512;

// ---- the cache level of prefetched rows (0007)

// The prefetches of the next row are divided among the walks over a row: each earlier walk prefetches a quarter.
//   scripts/bench --case LayerNormBackward --types f32 2048x8192 1024x16384 256x65536
inline constexpr int64_t kSharesOfNextRow = 4;
// Distance in bytes by which a line in memory must be prefetched.   schedules forward:f32:2100000x16
inline constexpr int64_t kNeededAhead = 4 << 10;
// Above this number of bytes of a group of rows across lanes in one arg, the next group is not prefetched.
//   lamina replay --bench of a channels-last GroupNorm with 64 channels and 128 x 128 positions
inline constexpr int64_t kMaxGroupAhead = int64_t{512} << 10;

// ---- values that are kept between the walks over a row

// The most bytes of a tile that are kept in the first-level cache, in f32 or f64.
//   scripts/bench --case LayerNorm --types bf16 16384x768 8192x2048 4096x4096
inline constexpr int64_t kLiveBytes = int64_t{24} << 10;
// The same for a group of rows across lanes, in the second-level cache.
//   lamina replay --bench of a SoftMax over channels-first planes
inline constexpr int64_t kLiveBytesTransposed = int64_t{128} << 10;
// The most bytes of values of erf, exp or a similar function: they take longer to compute again than a distant cache to send
// them.   schedules softmax:f32:86x16384 softmax:f32:8x128256 softmax:bf16:86x16384
inline constexpr int64_t kLiveBytesOfFunctions = int64_t{1} << 20;
// The most bytes of live values that are on a thread's stack, above kLiveBytes, as nodes have a chunk more than their rows.
// Each call takes scratch memory and returns it, which short ones notice (0076).
inline constexpr int64_t kLiveBytesOnStack = int64_t{28} << 10;

// ---- the shape of loops

// Above this number of nodes in a loop's body, vectors run one by one: interleaving them would spill registers.
//   scripts/bench --case Add+LayerNorm+GELU --case LayerNormBackward --types f32,bf16 8192x1024
inline constexpr int64_t kMaxNodesSideBySide = 12;
// Registers that erf, exp or a similar function needs beside the values of the walk.
//   LAMINA_MAX_ISA=avx2 schedules softmax:f32:40x16384 softmax:bf16:200x768
inline constexpr int kRegistersOfFunction = 5;
// Vectors whose functions have their operations interleaved, with few registers. Cores with many also reorder far enough.
//   LAMINA_MAX_ISA=avx2 schedules gelu:f32:200x768 softmax:f32:40x16384
inline constexpr size_t kFunctionsSideBySide = 2;
// Lines of a streamed arg that are stored one after another before those of another, if a vector is less than a line.
//   LAMINA_MAX_ISA=avx2 schedules sum:bf16:32768x1024 sum:f32:16384x1024
inline constexpr int64_t kLinesOfStream = 2;
// Positions per iteration across rows, for each vector of rows.
//   lamina replay --bench of a channels-last GroupNorm with 64 channels and 128 x 128 positions
inline constexpr int kPositionsPerIteration = 4;
// Chunks of 64 positions per iteration across rows: for a body with few live values, and for one that fills the registers.
// (as above)
inline constexpr int64_t kChunksOfSmallBody = 4, kChunksOfLargeBody = 2;
// The same for a body with erf, exp or similar functions, if a group is several vectors: more chunks would need more
// registers than there are.
//   lamina replay --bench of a GELUBackward with the ReduceSum of its result over the rows, 2048 x 3072: 9.4 ms with 4,
//   2.5 ms with 1
inline constexpr int64_t kChunksOfWideFunction = 1;
// Lanes in memory per iteration of the fold.   (as above)
inline constexpr int kLanesPerIteration = 4;
// The most positions of a reduction across rows that run without a loop, so that its lanes are registers: twice as many vectors
// as AVX-512 has are live in mean and variance.   schedules forward:f32:90000x16 forward:bf16:90000x31
inline constexpr int64_t kPositionsAtOnce = 32;
// Vectors between two arrays of lanes: loads wait for stores at the same offset in another page of 4 KiB.   (as above)
inline constexpr int kVectorsBetweenArrays = 4;

}  // namespace lamina::cpu::tuning
