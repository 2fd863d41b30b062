// A compiled tiled step as data: loops, where the args of a tile are, what is packed for all tiles, and the sums to which tiles
// add. The plans of the tiles are programs of their own (dispatch/tile_dispatch.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "interface/data_type.h"
#include "interface/logical_tensor.h"

namespace lamina::cpu {

// How to choose, in each execution, the tiles that leave out columns which a causal mask hides (kernel::ShorterTiles).
struct TileLengthsProgram {
  // A dim of the values that a tile reads, in elements.
  struct Extent {
    int64_t count = 0, stride = 0;
    template <typename Self, typename Visit>
    static void for_each_field(Self& self, const Visit& visit) {
      visit(self.count), visit(self.stride);
    }
  };
  // Added to, or subtracted from, `seen_more`.
  struct Offset {
    size_t input = 0;
    bool is_long = false;  // s64, else s32
    int sign = 1;
    template <typename Self, typename Visit>
    static void for_each_field(Self& self, const Visit& visit) {
      visit(self.input), visit(self.is_long), visit(self.sign);
    }
  };
  // The input that must be -infinity.
  struct Hidden {
    size_t input = 0;
    DataType dtype = DataType::undef;
    template <typename Self, typename Visit>
    static void for_each_field(Self& self, const Visit& visit) {
      visit(self.input), visit(self.dtype);
    }
  };

  std::vector<int64_t> lengths;  // ascending
  int64_t seen_more = 0;
  std::vector<Offset> offsets = {};
  std::optional<Hidden> hidden = std::nullopt;
  size_t values = 0;  // input
  DataType value_type = DataType::f32;
  int64_t all_rows = 0, rows = 0;  // rows: of a tile
  size_t row_loop = 0;
  std::vector<Extent> dims = {};  // of the values, by falling strides
  Dims loops, strides;            // strides: of the values, in bytes from one entry or block to the next
  Dims numbers;                   // per loop: distance between numbers of distinct values
  int64_t count = 1;              // distinct values

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.lengths), visit(self.seen_more), visit(self.offsets), visit(self.hidden), visit(self.values);
    visit(self.value_type), visit(self.all_rows), visit(self.rows), visit(self.row_loop), visit(self.dims);
    visit(self.loops), visit(self.strides), visit(self.numbers), visit(self.count);
  }
};

struct TileProgram {
  // Weights that all blocks of rows read. They are packed before the tiles run, once per entry of the other loops.
  struct Packing {
    size_t step = 0;           // the product, in the plan of a full tile
    size_t input = 0;          // input number of the tile's plan
    int64_t count = 1;         // number of distinct weights
    Dims strides;              // per loop: distance between packings; 0 if the entries share one
    size_t at = 0, bytes = 0;  // in scratch, if it is not constant; size of one
    int constant = -1;         // -1: packed by every execution
    template <typename Self, typename Visit>
    static void for_each_field(Self& self, const Visit& visit) {
      visit(self.step), visit(self.input), visit(self.count), visit(self.strides), visit(self.at), visit(self.bytes);
      visit(self.constant);
    }
  };
  // A sum to which tiles add, in f32.
  struct Sum {
    size_t arg = 0;           // the output
    bool in_place = false;    // in the output itself
    bool by_segment = false;  // one copy per segment
    size_t at = 0;            // offset among the sums of an entry
    size_t bytes = 0;         // of a copy
    Dims strides;             // per loop: bytes from one entry or block to the next
    template <typename Self, typename Visit>
    static void for_each_field(Self& self, const Visit& visit) {
      visit(self.arg), visit(self.in_place), visit(self.by_segment), visit(self.at), visit(self.bytes), visit(self.strides);
    }
  };

  Dims loops;           // numbers of entries, for rows and columns in blocks
  size_t row_loop = 0;  // loops after it: columns
  int64_t segments = 1;
  bool has_less_rows = false, has_less_columns = false;  // whether the last block is smaller
  size_t inputs = 0;
  std::vector<Dims> tile_origins;  // per additional input of a tile, and loop: positions from one entry or block to the next
  std::vector<Dims> strides;       // per arg and loop: bytes from one entry or block to the next
  std::optional<TileLengthsProgram> lengths;
  size_t lengths_at = 0;  // offset in scratch
  std::vector<Sum> sums;
  // The thread that runs the entry finishes it; else all threads do, after its segments.
  bool finishes_alone = true;
  size_t sum_bytes = 0, sums_at = 0;  // of an entry's sums; offset in the scratch of the thread or of all
  std::vector<Packing> packings;
  int64_t outer = 1;  // entries of the loops before the loop over rows
  int64_t wave = 1;   // number of these at a time, so that packed weights need little memory
  int slots = 1;      // the largest number of threads
  size_t threads_at = 0, thread_bytes = 0;

  // The number of the packed weights that the tiles of an entry of the outer loops read.
  int64_t number_of(const Packing& packing, int64_t entry) const {
    int64_t number = 0;
    for (size_t loop = row_loop; loop-- > 0; entry /= loops[loop]) number += entry % loops[loop] * packing.strides[loop];
    return number;
  }

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.loops), visit(self.row_loop), visit(self.segments), visit(self.has_less_rows), visit(self.has_less_columns);
    visit(self.inputs), visit(self.tile_origins), visit(self.strides), visit(self.lengths), visit(self.lengths_at);
    visit(self.sums), visit(self.finishes_alone), visit(self.sum_bytes), visit(self.sums_at);
    visit(self.packings), visit(self.outer), visit(self.wave), visit(self.slots), visit(self.threads_at);
    visit(self.thread_bytes);
  }
};

}  // namespace lamina::cpu
