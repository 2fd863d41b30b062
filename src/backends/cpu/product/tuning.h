// The numbers of the rules that choose product schedules. None changes a bit of a result. benchmarks/products measures them.
#pragma once

#include <array>
#include <cstdint>

namespace lamina::cpu::product_tuning {

// Rows of weights that are read at the same time if few rows of dst read them in place: streams that hardware prefetchers
// follow. Rows whose length is a multiple of a page use the same sets of the first-level cache, so more of them evict each
// other's lines before these are read whole, unless a vector is a whole line.
inline constexpr int64_t kStreams = 8;
inline constexpr int64_t kStreamsOfLines = 64;

// Likewise, if several tiles of rows read them, which carry over more sums for each block of these rows.
inline constexpr int64_t kStreamsOfTiles = 12;

// The same for vectors of a line without prefetches, if the weights are at most a part of the last-level cache: the cache, in
// parts of this. From there long blocks, which carry sums over less often, are as fast to read as short ones.
inline constexpr int64_t kRowsInCache = 256;
inline constexpr int64_t kShareOfWeights = 2;

// Such tiles read weights in place if these are larger than a part of the last-level cache: the rows of dst, in parts of this.
inline constexpr int64_t kRowsInLastCache = 32;

// The longest row, in bytes, for which vectors that are narrower than a line read longer blocks of k, without prefetching: a
// page. Blocks of longer rows, each in other pages, take longer from memory.
inline constexpr int64_t kShortRow = 4096;

// Bytes of each of these rows that are prefetched ahead, at least: by vectors of less than a line, and of a line, which are
// read from more rows.
inline constexpr int64_t kBytesAlongColumns = 1024;
inline constexpr int64_t kBytesAlongColumnsOfLines = 256;

// The most rows of dst for which weights are read in place: carrying their sums over through the first-level cache costs less
// than copying the weights.
inline constexpr int64_t kFewRows = 16;

// Of the second-level cache, for a panel that is copied for few rows of dst: in parts of the cache.
inline constexpr int64_t kShareOfSecondCache = 4;

// Of the last-level cache, for the rows of a unit, which are read again for each panel: in parts of the cache. Other programs
// and the weights use the others.
inline constexpr int64_t kShareOfLastCache = 4;

// Bytes of each column that are prefetched ahead of the copy of a panel, if the weights are contiguous along k.
inline constexpr int64_t kBytesAlongK = 512;

// Of the first-level cache, for a group of entries of k of the columns that a tile transposes: it has space for this group, for
// the next one, which is prefetched, and for src.
inline constexpr int64_t kShareOfGroup = 3;

// Bytes of a packed panel that are prefetched ahead of the register tile.
inline constexpr int64_t kBytesOfPanelAhead = 2048;

// The most rows of a register tile that uses lines of packed weights as fast as memory sends them.
inline constexpr int kRowsThatWaitForMemory = 4;

// Multiply-adds of vectors, and entries of k, in a step of the loop of a register tile, at most. With more, a smaller part of
// its instructions advance pointers and count: a core that shares its front end with another thread has 3 a cycle for each.
inline constexpr int kMultiplyAddsOfStep = 48;
inline constexpr int kMostEntriesOfStep = 4;

// The most tiles of rows for which each converts packed weights of 16 bits, instead of a conversion of the panel before.
inline constexpr int64_t kTilesThatConvert = 2;

// Of a register tile: narrower ones load too much of src for a multiplication.
inline constexpr int kLeastVectors = 2;

// Sums that multiply-adds of one core keep busy: two per cycle, each after four cycles, and a quarter more, because loads do
// not come evenly.
inline constexpr double kSumsInFlight = 10;

// Units per thread, so that a late thread delays the others by a fraction.
inline constexpr int64_t kUnitsPerThread = 4;

// The rows of a unit, at least: enough to read a panel for them.
inline constexpr int64_t kRowsOfUnit = 64;

// The most rows of dst whose tiles copy the next panel: with more, the time of copies matters less than the space for two
// panels.
inline constexpr int64_t kMostRowsCopyNext = 256;

// The rows of that panel that are prefetched ahead of their copy.
inline constexpr int64_t kRowsCopiedAhead = 8;

// The time to transpose a vector as a part of a square, in multiplications.
inline constexpr double kTimeOfSquares = 8;

// Units that write their results by squares: the most rows, of which more save little of the copies of the weights, and the
// parts of the second-level cache for the sums and for a block of k of the weights.
inline constexpr int64_t kRowsOfSquares = 1024;
inline constexpr int64_t kShareForSums = 4;
inline constexpr int64_t kShareForPanels = 2;

// The fewest rows that are kept in the second-level cache for all panels, which are read again for each such block of rows.
inline constexpr int64_t kLeastRowsKept = 128;

// Rows of the parts of a grouped product, whose groups have any number. Each part reads its weights again, and may copy them.
inline constexpr std::array<int64_t, 14> kRowsOfParts{1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512};

// The most terms of the sums of such a part, if groups divide k.
inline constexpr int64_t kMostTerms = 1024;

// The widest panel, in parts of all registers: wider ones save no more loads of src.
inline constexpr int kShareOfRegisters = 4;

// Vectors of a panel of integers: enough sums to hide the latency of multiply-adds for one row.
inline constexpr int kDequantizedVectors = 4;

// The most entries of k for which a panel of integers has one row of scales. Shorter runs allow smaller blocks of k, longer
// ones repeat fewer scales.
inline constexpr int64_t kLongestRun = 256;

// The fewest channels for which the rows of a convolution are found, not copied: each pointer is loaded once for them.
inline constexpr int64_t kLeastPart = 8;

// The most channels for which a row of taps has one pointer, and is copied at the borders of an image.
inline constexpr int64_t kChannelsOfLines = 32;

// Bytes of integers that are prefetched ahead: hardware prefetchers stop at the end of a page.
inline constexpr int64_t kIntegersAhead = 4096;

// The fewest channels, of both tensors, for which a convolution with strides is generated code (benchmarks/convolutions).
inline constexpr int64_t kLeastSparseChannels = 128;

// Pixels of a tile along lines whose columns have their own channels, at most: weights are loaded once for them.
inline constexpr int64_t kMostPixels = 8;

// Registers that allow such a tile three vectors.
inline constexpr int64_t kRegistersForThreeVectors = 32;

// The most channels of src for which a convolution goes along lines: for more, other code has enough work per pixel.
inline constexpr int64_t kChannelsOfLineTiles = 4;

// The fewest pixels of a line for which a dense convolution goes along lines, and of a tile that loads each pixel once: fewer
// do not keep multiply-adds busy.
inline constexpr int64_t kLeastPixels = 7;

// The most terms of such a line, for each of which a tile has code.
inline constexpr int64_t kTermsOfLineTiles = 32;

}  // namespace lamina::cpu::product_tuning
