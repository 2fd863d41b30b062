// Every number that a choice of the GPU backend depends on: its unit, its reason, and the command that measures it.
//
// Unlike those of the CPU, some of them decide bits: the order of summation (sum_order.h) follows from them. They are marked
// "Bits". Changing one changes results and the golden sources (tests/backends/gpu/golden).
//
// `gpu_norms` is build/bench/bin/gpu_norms, built by the preset `bench` (docs/gpu.md, docs/performance_gpu.md). It runs
// forward, backward and Add+LayerNorm of rows of 256 to 65536 elements, and compares with the device's copy speed. To measure a
// number, change it and compare two runs on an idle device.
#pragma once

#include <array>
#include <cstdint>

#include "backends/gpu/schedule/matrix_tile.h"

namespace lamina::gpu::tuning {

// ---- properties of devices

// The most bytes that a thread reads or writes at once.
inline constexpr int kAccessBytes = 16;
// Threads per warp, and lanes that are folded first. Bits.
inline constexpr int kWarp = 32;
// The most threads per work-group, as in CUDA, and the most lanes of a row. Bits.
inline constexpr int kMaxGroup = 1024;
// The most work-groups per launch, as in CUDA.
inline constexpr int64_t kMaxGroups = 0x7fffffff;
// Tensors with more elements use 64-bit offsets. The limit leaves space for a block and a row beyond it.
inline constexpr int64_t kMaxNarrowOffset = int64_t{1} << 30;

// ---- teams: threads that share a row

// The most elements of a thread in a chunk: two registers of doubles, or 16 bytes of 16-bit elements. Bits.
//   gpu_norms
inline constexpr int kLongestVector = 8, kLongestVectorF64 = 2;
// The most elements of a lane in a block of a row: more elements need more lanes. Bits.
//   gpu_norms: rows of 4096 and 8192
inline constexpr int kElementsPerThread = 16;
// Elements of a lane in rows that are adjacent in memory. Bits.
//   lamina replay --engine gpu --bench of a SoftMax over a middle axis
inline constexpr int kElementsPerThreadAcrossRows = 4;
// The most chunks of a thread by default. Four loads of 16 bytes in flight hide the latency of memory, and what each thread
// computes once per row is spread over their elements.
//   gpu_norms, and lamina tune --engine gpu of its rows: 1.2 to 1.8 times as fast as one or two chunks
inline constexpr int kChunksOfThread = 4;
// The most elements of a thread by default if columns are summed: each needs a register per sum.
//   lamina tune --engine gpu of backward norms on an H100: 1.14 times as fast as 32 for rows of 256 and 4096 elements of bf16
inline constexpr int kElementsWithColumnSums = 16;
// Threads per group that contains several teams. Small groups fill a multiprocessor evenly.
//   gpu_norms: rows of 256 and 1024
inline constexpr int kUsualGroup = 128;
// Threads per group in kernels without reductions.
//   lamina replay --engine gpu --bench of a GELU
inline constexpr int kFlatGroup = 256;

// The most lanes of a thread, unless a work-group has too few threads.
//   lamina tune --engine gpu
inline constexpr int kMostLanesOfThread = 8;
// The loop over a thread's chunks is unrolled up to this number of chunks. Its values stay in registers only if it is.
//   NVRTC's count of registers and spills (tests/backends/gpu/nvrtc_test.cpp)
inline constexpr int kMostUnrolledChunks = 32;

// ---- column sums

// Rows per partial sum of a column. The partial sum is written and read once for this number of rows. Bits.
//   gpu_norms: backward, rows of 256 to 8192
inline constexpr int kColumnRows = 32;
// The same for rows so long that more rows per sum would leave the device idle. Bits.
//   gpu_norms: backward, rows of 65536
inline constexpr int kLongColumnRows = 8;
// Columns per group that adds partial sums: one per thread of a warp.
inline constexpr int kColumnLanes = 32;

// ---- registers

// The most 32-bit words of a thread for values that are live between phases and for column sums. The phases need most of the
// at most 255 registers.
//   gpu_norms: backward; NVRTC's count of registers and spills (tests/backends/gpu/nvrtc_test.cpp)
inline constexpr int kLiveWords = 64;
// The same in groups of 1024 threads, which have 64 registers per thread.   (as above)
inline constexpr int kLiveWordsCrowded = 24;
// The registers of a multiprocessor, as in CUDA.
inline constexpr int kRegisters = 65536;
// The local memory of a multiprocessor, of compute capability 9.0.
inline constexpr int kLocalBytes = 228 << 10;
// Registers of a thread for addresses, row values and values that a chunk's elements need in between. NVRTC spills at most a
// few registers where the estimate of schedule/registers.h fits.   (as above)
inline constexpr int kScalarRegisters = 12;
// More of them if sums of columns are in registers: for the loop over rows, and for each walk of it, whose loads the compiler
// starts before the previous walk ends.   (as above)
inline constexpr int kRowLoopRegisters = 8, kRowLoopWalkRegisters = 16;
// Up to this number of nodes, 64 registers per thread are enough for a kernel without transcendental functions.   (as above)
inline constexpr int64_t kFewNodes = 24;
// Above this number of one-element chunks in a block, their addresses need many registers.   (as above)
inline constexpr int kFewSteps = 4;
// The number of threads that should be resident on a multiprocessor, so that some load while others reduce: for kernels with
// few values in registers, and for others.   (as above)
inline constexpr int kThreadsOfFewRegisters = 1024, kThreadsOfManyRegisters = 512;
// A schedule with fewer resident threads is no default.   (as above)
inline constexpr int kLeastResidentThreads = 384;

// ---- clusters of groups

// The most bytes of a row that each of two groups on a multiprocessor finds in its first-level cache when it reads them again.
//   gpu_norms: forward, rows of 65536; two groups take 0.71 (f32) and 0.65 (bf16) of the time of one with the row in registers
inline constexpr int kCachedBytesOfGroup = 96 << 10;

// ---- rows copied ahead

// Rows of a team in local memory: the one that it computes and the next.
inline constexpr int kRowsInLocalMemory = 2;
// The most local memory of a work-group for reductions and exchanged results.
inline constexpr int kLocalBytesOfReductions = 16 << 10;
// The most bytes of a row that a thread copies ahead by default. A thread that loads more at once waits for a smaller share of
// its time; teams of a cluster wait for each other too.
//   gpu_norms: backward; 64 bytes in bf16 take 0.8 to 0.97 times as long, 128 bytes in f32 0.97 to 1.03 times
inline constexpr int kBytesAheadOfThread = 96;
// The most rows that a team runs one after the other if no columns are summed. The first one is waited for, and a device that
// is full must not wait long for its last teams.
//   gpu_norms: forward, rows of 65536
inline constexpr int64_t kRowsOfTeam = 8;

// ---- split rows

// Work-groups per compute unit if teams share a row. A few per unit avoid an idle tail.
//   gpu_norms: rows of 65536, with fewer rows than the device has multiprocessors
inline constexpr int64_t kGroupsPerUnit = 4;

// ---- matrix products

// Threads of a work-group along each side of its tile, and elements of a thread along each side, in a product of f64 and where
// no tile below fits a device: a group's tiles of src and weights are read once for 64 x 64 elements. No bits.
//   lamina replay --engine gpu --bench of a MatMul of 1024 rows and columns
inline constexpr int kMatmulSide = 16, kMatmulPerThread = 4;
// Entries of k in local memory at a time: two tiles of 64 rows take 8 KiB, and a thread holds 8 elements of the next tiles.
// With more elements per thread, registers are left for fewer. No bits: sums continue across tiles.
//   gpu_products: f32. 4096 rows of 128 x 128 take 3,706 us with 8 entries, 4,049 with 16
inline constexpr int kMatmulDepth = 16, kMatmulDepthOfLargeTiles = 8;
// Tiles of products of f32 by threads: threads down and across, elements of a thread down and across, entries of k at a time,
// and tiles in local memory (product_tile.h). Then their times as in kMatrixTiles. No bits.
//   gpu_products: f32, on an H100, of 64 to 4096 rows
struct TimedProductTile {
  int threads_down, threads_across, per_thread_rows, per_thread_columns, depth, stages;
  double alone, of_many;
  int elements_of_thread() const { return per_thread_rows * per_thread_columns; }
};
inline constexpr std::array<TimedProductTile, 6> kProductTiles = {{{16, 16, 8, 8, kMatmulDepthOfLargeTiles, 1, 8950, 7113},
                                                                   {16, 16, 4, 8, kMatmulDepth, 1, 5430, 4248},
                                                                   {16, 16, 4, 4, kMatmulDepth, 1, 3125, 2394},
                                                                   {8, 16, 8, 4, kMatmulDepth, 2, 3219, 1994},
                                                                   {8, 16, 4, 4, kMatmulDepth, 1, 2864, 1223},
                                                                   {8, 8, 4, 4, kMatmulDepth, 2, 3840, 668}}};
// The most elements of a thread in a convolution, whose loads need many registers, and in a matrix product.
inline constexpr int kElementsOfConvolution = 16, kElementsOfMatmul = 64;
// The same, and columns of a thread, in a product of up to 16 rows. It waits for weights from memory: a group loads 8 KiB of
// them at once, and a matrix of 4096 columns has 256 groups.   (as above, of one row)
inline constexpr int kMatmulDepthOfFewRows = 128, kMatmulColumnsOfFewRows = 1;

// Tiles of products by matrix instructions, the largest first: rows, columns, entries of k at a time, tiles in local memory,
// warps down and across, whether by four warps. Then their times on an H100, in nanoseconds per 64 entries of k: of a
// multiprocessor's only tile, and of each of many. The first is longer where several work-groups fit on a multiprocessor, which
// then hide each other's latency. No bits.
//   gpu_products: as many rows as the tile has, and 4096 rows
struct TimedTile : MatrixTile {
  double alone, of_many;
};
inline constexpr std::array<TimedTile, 9> kMatrixTiles = {{{{128, 256, 64, 4, 8, 1, true}, 686, 824},
                                                           {{256, 128, 64, 4, 8, 1, true}, 814, 868},
                                                           {{128, 128, 64, 6, 8, 1, true}, 498, 514},
                                                           {{128, 64, 64, 6, 8, 1, true}, 412, 392},
                                                           {{64, 128, 64, 8, 4, 1, true}, 394, 378},
                                                           {{64, 64, 64, 6, 4, 1, true}, 336, 210},
                                                           {{128, 128, 32, 3, 2, 4}, 1134, 833},
                                                           {{64, 64, 64, 3, 2, 2}, 477, 233},
                                                           {{16, 32, 128, 4, 1, 2}, 245, 94}}};

// Sums that are divided among work-groups (product_segments.h): the number of work-groups to give work to, for tiles of 64 x 64
// elements; the fewest terms of a segment of a gradient of weights, and of a matrix product, where each row pays for reading
// and writing its partial sums; and what the length of a segment is a multiple of, which every tile's depth divides. Bits.
//   gpu_products: gradients of weights, and products of k of 16384
inline constexpr int64_t kGroupsOfDividedSums = 512, kSegmentSide = 64;
inline constexpr int64_t kLeastTermsOfGradient = 1024, kLeastTermsOfMatrix = 8192;
inline constexpr int64_t kSegmentUnit = 128;

// Factors of convolutions that are copied with their channels last (emit/channels_last.h): threads of a work-group, and chunks
// of 16 bytes of a thread, each of which is eight loads that are under way together. No bits. Not measured.
inline constexpr int kThreadsOfCopy = 256, kChunksOfCopyingThread = 2;
// The time of such a copy, in picoseconds: of its launch, and of an element, which is read and written once; and the time of an
// element that the sums copy to local memory alone instead of in a chunk. On an H100. No bits.
//   gpu_products: NCX takes 33 to 81 us longer than NXC without copies, for 7 to 58 million elements
inline constexpr double kPicosecondsOfCopyFunction = 2e6, kPicosecondsOfCopiedElement = 1.4;
inline constexpr double kPicosecondsOfElementCopiedAlone = 2;

// The most columns of a group of a convolution for which each element has a thread of its own: a tile would be mostly empty.
// No bits. Not measured.
inline constexpr int64_t kFewColumns = 4;

// ---- programs along one axis

// Threads of a work-group; each has a row or an element of its own. No bits. Not measured.
inline constexpr int kRowProgramThreads = 128;

}  // namespace lamina::gpu::tuning
