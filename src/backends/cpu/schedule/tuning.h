// The numbers that the cost model (cost_model.h) does not know: what shapes the emitted loops, and the choices that are still
// rules: its unit, its reason, and the command that measures it. None of them changes a bit of a result.
//
// To measure one, change it and compare the figures of two runs, with nothing else running on the machine
// (docs/performance.md). `scripts/bench` stands for `scripts/bench --threads 2`, followed by cases, types and shapes; it prints
// each case's share of the memory's speed and its ratio to oneDNN. `call_costs` is what scripts/bench runs last:
// build/bench/bin/call_costs. What decisions 0005 and 0007 tell of a number is not told again here.
#pragma once

#include <cstdint>

namespace lamina::cpu::tuning {

// Memory moves in lines of so many bytes. Not a choice, but what many of them follow.
inline constexpr int64_t kLine = 64;

// Of a cache, what a kernel's data may take; the stack, what others do and unlucky addresses need the rest.
//   scripts/bench --case LayerNorm --types f32,bf16 16384x1024 8192x2048 4096x4096 4608x768
inline constexpr double kRoomOfCache = 0.8;

// ---- tiles: rows that go through a phase together, which hides the latency of a reduction's end behind other rows' work

// Elements of a row, up to which rows of a tile are lanes of a vector: the fold is much beside a short row (0005).
//   scripts/bench --case LayerNorm --types f32 16384x256 8192x768
inline constexpr int64_t kLongestRowOfBatch = 512;

// ---- where the rows to come wait (0007)

// Walks over a row, between which asking for the next row is divided: the earlier ones ask for a quarter each.
//   scripts/bench --case LayerNormBackward --types f32 2048x8192 1024x16384 256x65536
inline constexpr int64_t kSharesOfNextRow = 4;
// Bytes of a group of rows across lanes in one arg, above which the next group is not asked for.
//   lamina replay --bench of a channels-last GroupNorm with 64 channels and 128 x 128 positions
inline constexpr int64_t kMaxGroupAhead = int64_t{512} << 10;

// ---- what is kept between the walks over a row

// Bytes of a tile that are kept in the first-level cache, in f32 or f64, at most.
//   scripts/bench --case LayerNorm --types bf16 16384x768 8192x2048 4096x4096
inline constexpr int64_t kLiveBytes = int64_t{24} << 10;
// The same for a group of rows across lanes, in the second-level cache; it lies on the stack of a thread.
//   lamina replay --bench of a SoftMax over channels-first planes
inline constexpr int64_t kLiveBytesTransposed = int64_t{128} << 10;

// ---- threads

// Bytes that a thread moves with what it takes at a time: some ten microseconds' worth, so that at the end nobody waits long
// for the last ones, and taking costs little beside them.
//   scripts/bench --case LayerNorm --case LayerNormBackward --types f32,bf16 4096x768; oversubscription
inline constexpr int64_t kChunkBytes = 256 << 10;
// Chunks of a thread at least, where there are rows enough: what a thread that comes late does not take, others do. With fewer
// rows than that, those of a kernel without reductions are divided, and with fewer blocks of a row parts of it are not reduced.
//   (as above)
inline constexpr int64_t kMinChunks = 4;

// ---- the shape of loops

// Nodes of a loop's body, above which vectors go one by one: more values in flight than there are registers would spill.
//   scripts/bench --case Add+LayerNorm+GELU --case LayerNormBackward --types f32,bf16 8192x1024
inline constexpr int64_t kMaxNodesSideBySide = 12;
// Elements of partial column sums that a thread combines at a time: whole lines of them.
//   scripts/bench --case LayerNormBackward --types f32 16384x1024
inline constexpr int64_t kColumnUnit = 64;
// Positions of an iteration across rows, per vector of rows.
//   lamina replay --bench of a channels-last GroupNorm with 64 channels and 128 x 128 positions
inline constexpr int kPositionsPerIteration = 4;
// Chunks of 64 positions in one iteration across rows: of a light body, and of one that fills the registers.   (as above)
inline constexpr int64_t kChunksOfSmallBody = 4, kChunksOfLargeBody = 2;
// The same of a body with erf, exp and their like, a group being several vectors: more would be in flight than there are
// registers.
//   lamina replay --bench of a GELUBackward with the ReduceSum of its result over the rows, 2048 x 3072: 9.4 ms with 4, 2.5 ms
//   with 1
inline constexpr int64_t kChunksOfWideFunction = 1;
// Lanes in memory that an iteration of the fold takes.   (as above)
inline constexpr int kLanesPerIteration = 4;
// Vectors between two arrays of lanes: loads wait for stores at the same place in another page of 4 KiB.   (as above)
inline constexpr int kVectorsBetweenArrays = 4;

}  // namespace lamina::cpu::tuning
