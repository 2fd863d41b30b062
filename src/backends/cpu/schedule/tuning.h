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
inline constexpr int64_t kLargestGroupAhead = int64_t{512} << 10;

// ---- what is kept between the walks over a row

// Bytes of a tile that are kept in the first-level cache, in f32 or f64, at most.
//   scripts/bench --case LayerNorm --types bf16 16384x768 8192x2048 4096x4096
inline constexpr int64_t kKeptBytes = int64_t{24} << 10;
// The same for a group of rows across lanes, in the second-level cache; it lies on the stack of a thread.
//   lamina replay --bench of a SoftMax over channels-first planes
inline constexpr int64_t kKeptBytesTransposed = int64_t{128} << 10;

// ---- rows across lanes, or elements: what either costs, in cycles, roughly
//   scripts/bench --case LayerNorm --types f32 1048576x5 262144x16 131072x24 65536x61 32768x128
// and the same of LayerNormBackward. Of a vector's worth of elements:
inline constexpr double kContiguous = 2;        // neighbours
inline constexpr double kTransposed = 12;       // transposed in registers
inline constexpr double kGathered = 24;         // a gather or a scatter
inline constexpr double kColumnTransposed = 5;  // transposed for a column sum
// Of a row:
inline constexpr double kSquare = 6;      // each square that is transposed, be it full or not
inline constexpr double kMoments = 37;    // lanes that are folded to mean and variance
inline constexpr double kReduction = 20;  // lanes that are folded to another reduction
// Elements of which the costs above are counted.
inline constexpr int64_t kVectorOfCosts = 16;
// Rows along a dim, from which on they fill enough lanes.   (as above)
inline constexpr int64_t kFewestRowsInLanes = 4;
// Vectors of rows that go together where positions of a row lie apart, so that runs of several lines are read: the first count
// that divides the rows.
//   lamina replay --bench of a channels-last GroupNorm with 64 channels and 128 x 128 positions
inline constexpr int kVectorsPerGroup[] = {4, 2};

// ---- rows that threads divide among them (0007, "Rows that overflow the second-level cache" and after)

// Elements of a row, from which on a thread's part of it is worth a wait for the others after each walk.
//   scripts/bench --case LayerNorm --types f32 4x16384 4x65536 1x1048576
inline constexpr int64_t kShortestSplitRow = 16384;
// The same where each thread reduces rows of its own and only columns are divided.
//   scripts/bench --case LayerNormBackward --types f32,bf16 64x2048 64x4096 64x10000
inline constexpr int64_t kShortestRowOfColumns = 2048;
// Rows, or blocks of rows, up to which so few threads can be idle that dividing may pay.   (as above)
inline constexpr int64_t kMostUnits = 32;
// Of the second-level cache, above which a row, the next one and what rows share do not fit: three fifths.
//   scripts/bench --case LayerNormBackward --types f32,f64 256x32768 256x65536
inline constexpr int64_t kOverflowParts = 5, kOverflowPartsOfRows = 3;
// Elements of a thread between two barriers at most; more of them gained nothing.   (as above)
inline constexpr int64_t kElementsBetweenBarriers = int64_t{64} << 10;
// Of all second-level caches, what the rows between two barriers and those to come may take: three quarters.   (as above)
inline constexpr int64_t kGroupParts = 4, kGroupPartsOfRows = 3;
// The time of the busiest thread, in that of whole rows, at which dividing rows pays: as long where rows overflow the cache,
// nine tenths where not, six tenths where threads reduce rows for each other and so wait once more.
//   scripts/bench --case LayerNormBackward --types f32 96x16384 3x65536 64x4096
inline constexpr double kSplitOfOverflowing = 1, kSplitOfParts = 0.9, kSplitOfWholeRows = 0.6;

// ---- threads

// Bytes that a kernel moves, below which waking threads costs more than they save.
//   call_costs, and scripts/bench --case LayerNorm --types f32 16x768 64x768 128x768
inline constexpr int64_t kSerialBytes = 128 << 10;
// Rows per thread, below which rows of a kernel without reductions are divided along the row.
//   lamina replay --bench of a ReLU on 3 x 1000000
inline constexpr int64_t kFewRowsPerThread = 4;
// Elements of partial column sums that a thread combines at a time: whole lines of them.
//   scripts/bench --case LayerNormBackward --types f32 16384x1024
inline constexpr int64_t kColumnUnit = 64;
// Bytes that a thread moves with what it takes at a time: some ten microseconds' worth, so that at the end nobody waits long
// for the last ones, and taking costs little beside them.
//   scripts/bench --case LayerNorm --case LayerNormBackward --types f32,bf16 4096x768; company
inline constexpr int64_t kChunkBytes = 256 << 10;
// Chunks of a thread at least, where there are rows enough: what a thread that comes late does not take, others do.   (as
// above)
inline constexpr int64_t kFewestChunks = 4;

// ---- the shape of loops

// Nodes of a loop's body, above which vectors go one by one: more values in flight than there are registers would spill.
//   scripts/bench --case Add+LayerNorm+GELU --case LayerNormBackward --types f32,bf16 8192x1024
inline constexpr int64_t kMostNodesSideBySide = 12;
// Positions of an iteration across rows, per vector of rows.
//   lamina replay --bench of a channels-last GroupNorm with 64 channels and 128 x 128 positions
inline constexpr int kPositionsPerIteration = 4;
// Chunks of 64 positions in one iteration across rows: of a light body, and of one that fills the registers.   (as above)
inline constexpr int64_t kChunksOfLightBody = 4, kChunksOfHeavyBody = 2;
// Lanes in memory that an iteration of the fold takes.   (as above)
inline constexpr int kLanesPerIteration = 4;
// Vectors between two arrays of lanes: loads wait for stores at the same place in another page of 4 KiB.   (as above)
inline constexpr int kVectorsBetweenArrays = 4;

}  // namespace lamina::cpu::tuning
