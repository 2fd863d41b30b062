// Every number that a choice of the GPU backend turns on: its unit, its reason, and the command that measures it.
//
// Unlike those of the CPU some of them decide bits: how many threads share a row, how many elements each adds up and how many
// rows stand behind one partial sum of a column are the order of the sums (schedule.h). They are marked; a change of them
// changes results and the golden sources (tests/backends/gpu/golden).
//
// `gpu_norms` is build/bench/bin/gpu_norms, built by the preset `bench` (docs/gpu.md, docs/performance.md): forward, backward
// and Add+LayerNorm of rows of 256 to 65536 elements against the device's copy speed. To measure a number, change it and
// compare two runs on a device that does nothing else.
#pragma once

#include <cstdint>

namespace lamina::gpu::tuning {

// ---- what devices are like

// Bytes that a thread reads or writes at once, at most.
inline constexpr int kAccessBytes = 16;
// Threads of a warp. Bits.
inline constexpr int kWarp = 32;
// Threads of a work-group, at most, as CUDA has it.
inline constexpr int kLargestGroup = 1024;
// Work-groups of a launch, at most, as CUDA has it.
inline constexpr int64_t kMostGroups = 0x7fffffff;
// Elements, from which on an offset inside a tensor takes 64 bits: room for a block and a row beyond it.
inline constexpr int64_t kLargestNarrowOffset = int64_t{1} << 30;

// ---- teams: threads that share a row

// Elements of a thread in a chunk, at most: two registers' worth of doubles, 16 bytes of 16-bit elements. Bits.
//   gpu_norms
inline constexpr int kLongestVector = 8, kLongestVectorF64 = 2;
// Elements of a block of a row that a thread holds in registers; threads are added until none has more. Bits.
//   gpu_norms: rows of 4096 and 8192
inline constexpr int kElementsPerThread = 16;
// Elements of a row for each thread of a team whose rows lie side by side. Bits.
//   lamina replay --engine gpu --bench of a SoftMax over a middle axis
inline constexpr int kElementsPerThreadAcrossRows = 4;
// Threads of a group that holds several teams: small groups fill a multiprocessor evenly.
//   gpu_norms: rows of 256 and 1024
inline constexpr int kUsualGroup = 128;
// Threads of a group without reductions.
//   lamina replay --engine gpu --bench of a GELU
inline constexpr int kFlatGroup = 256;

// ---- column sums

// Rows behind one partial sum of a column, which is written and read once for so many rows of data. Bits.
//   gpu_norms: backward, rows of 256 to 8192
inline constexpr int kColumnRows = 32;
// The same where a row is so long that more of them would leave the device idle. Bits.
//   gpu_norms: backward, rows of 65536
inline constexpr int kLongColumnRows = 8;
// Elements of a thread, up to which partial sums stay in registers, in teams of 1024 threads; kElementsPerThread in others.
//   gpu_norms: backward, rows of 8192
inline constexpr int kColumnRegistersCrowded = 8;
// Columns that lie side by side in a group that adds up partial sums: a warp's.
inline constexpr int kColumnLanes = 32;

// ---- registers

// Words (of 32 bits) that values kept between phases and column sums of a thread may take: most of the 255 registers it may
// have are for the phases themselves.
//   gpu_norms: backward; NVRTC's count of registers and spills (tests/backends/gpu/nvrtc_test.cpp)
inline constexpr int kWordsKept = 64;
// The same in groups of 1024 threads, which have 64 registers each.   (as above)
inline constexpr int kWordsKeptCrowded = 24;
// Nodes of a kernel, up to which 64 registers are enough for a thread if nothing of it is a transcendental function.   (as
// above)
inline constexpr int64_t kFewNodes = 24;
// Chunks of one element in a block, above which their addresses take many registers.   (as above)
inline constexpr int kFewSteps = 4;
// Threads that a multiprocessor should hold at once, so that some load while others reduce: where 64 registers are enough, and
// where not.   (as above)
inline constexpr int kThreadsOfLight = 1024, kThreadsOfHeavy = 512;

// ---- split rows

// Work-groups for each compute unit when teams share a row: a few, so that none is left over at the end.
//   gpu_norms: rows of 65536, with fewer rows than the device has multiprocessors
inline constexpr int64_t kGroupsPerUnit = 4;

// ---- matrix products

// Threads of a work-group along either side of its tile, and elements of a thread along either: a group's two tiles of src and
// weights are read once for 64 x 64 elements. No bits.
//   lamina replay --engine gpu --bench of a MatMul of 1024 rows and columns
inline constexpr int kMatmulSide = 16, kMatmulPerThread = 4;
// Entries of k that lie in local memory at a time: two tiles of 64 rows take 8 KiB with it. No bits: sums run on.
//   (as above)
inline constexpr int kMatmulDepth = 16;

}  // namespace lamina::gpu::tuning
