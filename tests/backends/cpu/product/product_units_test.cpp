// The units of a product cover it once, and threads have the same work if units may be cut. The next panel is prefetched whole.
#include "backends/cpu/dispatch/product_units.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "backends/cpu/dispatch/next_panel.h"

namespace lamina::testing {
namespace {

using cpu::ProductProgram;
using cpu::ProductUnit;

ProductProgram program_of(int64_t m, int64_t n, int threads, int64_t row_block, int64_t column_block) {
  ProductProgram program;
  program.matrices.m = m, program.matrices.n = n;
  program.threads = threads;
  program.rows = 5, program.columns = 80;
  program.row_block = row_block, program.column_block = column_block;
  program.are_packed_ahead = true;
  return program;
}

// Of each element of dst, how many units have it.
std::vector<int> cover(const ProductProgram& program, const std::vector<ProductUnit>& units) {
  std::vector<int> counts(static_cast<size_t>(program.matrices.m * program.matrices.n), 0);
  for (const ProductUnit& unit : units)
    for (int64_t row = unit.first_row; row < unit.end_row(); ++row)
      for (int64_t column = unit.first_column; column < unit.end_column; ++column)
        ++counts[static_cast<size_t>(row * program.matrices.n + column)];
  return counts;
}

int64_t work_of(const std::vector<ProductUnit>& units, int64_t first, int64_t count) {
  int64_t work = 0;
  for (int64_t i = first; i < first + count; ++i)
    work += units[static_cast<size_t>(i)].rows() * units[static_cast<size_t>(i)].columns();
  return work;
}

TEST(ProductUnits, CoverAProductOnce) {
  std::mt19937_64 random(1);
  const auto number = [&](int64_t most) { return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  for (int trial = 0; trial < 300; ++trial) {
    const ProductProgram program =
        program_of(number(120), number(500), static_cast<int>(number(9)), 5 * number(30), 80 * number(7));
    for (const bool may_cut : {false, true}) {
      const std::vector<ProductUnit> units = product_units(program, may_cut);
      const std::vector<int> counts = cover(program, units);
      EXPECT_TRUE(std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; })) << trial << may_cut;
      for (const ProductUnit& unit : units) {
        EXPECT_EQ(unit.first_column % program.columns, 0);
        EXPECT_LE(unit.height + (unit.taller > 0 ? 1 : 0), program.rows);
      }
    }
  }
}

// 1024 columns are 12.8 panels: without cuts one of two threads has seven of them.
TEST(ProductUnits, HaveTheSameWorkForEachThreadIfTheyAreCut) {
  for (const int threads : {2, 3, 7}) {
    const ProductProgram program = program_of(196, 1024, threads, 200, 160);
    const std::vector<ProductUnit> units = product_units(program, true);
    const int64_t of_thread = std::ssize(units) / threads, tile = program.rows * program.columns;
    ASSERT_EQ(std::ssize(units), of_thread * threads);
    for (int t = 0; t < threads; ++t)
      EXPECT_NEAR(static_cast<double>(work_of(units, t * of_thread, of_thread)), 196.0 * 1024 / threads,
                  static_cast<double>(tile));
  }
}

// A cut leaves tiles of the heights for which there is code.
TEST(ProductUnits, KeepTheHeightsOfTilesWhereTheyAreCut) {
  const ProductProgram program = program_of(49, 2048, 2, 50, 320);  // ten tiles, of 5 and 4 rows
  for (const ProductUnit& unit : product_units(program, true)) EXPECT_EQ(unit.height, unit.is_empty() ? 0 : 4);
}

TEST(ProductUnits, FindTheTileOfARow) {
  const ProductUnit unit{.first_row = 7, .tiles = 5, .taller = 2, .height = 3, .first_column = 0, .end_column = 80};
  int64_t row = unit.first_row;
  for (int64_t tile = 0; tile < unit.tiles; ++tile) {
    const int64_t end = row + unit.height + (tile < unit.taller ? 1 : 0);
    for (; row < end; ++row) EXPECT_EQ(unit.tile_of(row), tile) << row;
  }
  EXPECT_EQ(row, unit.end_row());
}

// Each tile prefetches as many lines, at even distances, and all tiles the whole panel but not another one.
TEST(NextPanel, IsPrefetchedByAllTilesTogether) {
  for (const int64_t row_bytes : {64, 256, 320, 512}) {
    for (int64_t tiles = 1; tiles <= row_bytes; ++tiles) {
      const int64_t step = cpu::prefetched_for_entry(row_bytes, tiles);
      EXPECT_EQ(64 % step, 0) << tiles;
      if (step < 64) {
        EXPECT_GE(step * tiles, row_bytes) << tiles;
        EXPECT_LT(step * tiles, 2 * row_bytes) << tiles;
      }
    }
    EXPECT_EQ(cpu::prefetched_for_entry(row_bytes, row_bytes + 1), 0);
  }
}

TEST(NextPanel, IsThatOfTheNextBlockOrOfTheNextColumns) {
  const ProductProgram program{.columns = 80, .k_block = 100};
  const auto order = [&](bool blocks_first) {
    std::vector<std::pair<int64_t, int64_t>> places;
    for (std::optional<cpu::PanelPlace> place = cpu::PanelPlace{0, 160}; place;
         place = cpu::place_after(*place, program, blocks_first, 160, 320, 200))
      places.emplace_back(place->first_k, place->column);
    return places;
  };
  using Places = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(order(true), (Places{{0, 160}, {0, 240}, {100, 160}, {100, 240}}));
  EXPECT_EQ(order(false), (Places{{0, 160}, {100, 160}, {0, 240}, {100, 240}}));
}

}  // namespace
}  // namespace lamina::testing
