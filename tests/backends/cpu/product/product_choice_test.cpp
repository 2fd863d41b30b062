// The schedules that the rules of products choose, on described machines.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/product/product_schedule.h"
#include "backends/cpu/support/contractions.h"
#include "backends/cpu/support/described_machines.h"

namespace lamina::testing {
namespace {

using cpu::ProductSchedule;
using kernel::Contraction;

class ProductChoice : public OnDescribedMachine {
 protected:
  const cpu::Machine machine_ = machine();
};

// Few rows read packed weights once. Vectors of a whole line read them as one stream.
TEST_P(ProductChoice, SplitsPanelsForOneTileOfRows) {
  for (const DataType dtype : {DataType::f32, DataType::f64, DataType::bf16}) {
    for (int64_t m = 1; m <= 64; ++m) {
      const Contraction c = contraction_of(m, 4096, 4096, dtype, {});
      const ProductSchedule packed = cpu::choose_product_schedule(c, machine_, {2, true});
      const bool reads_streams = packed.vector_bits < 512 && packed.vectors > 1;
      if (m <= 2) {
        EXPECT_EQ(packed.splits_panels, reads_streams) << describe(packed);
      } else if (m == 64) {
        EXPECT_FALSE(packed.splits_panels) << describe(packed);
      }
      EXPECT_FALSE(packed.splits_panels && packed.prefetches_next) << describe(packed);
      EXPECT_FALSE(cpu::choose_product_schedule(c, machine_, {2, false}).splits_panels) << "in place, " << m << " rows";
    }
  }
}

TEST_P(ProductChoice, TransposesWhereTheCopiesOfWeightsCostMore) {
  const auto is_better = [&](int64_t m, int64_t k, int64_t n, bool along_k, bool packs_ahead = false) {
    const Contraction c = contraction_of(m, k, n, DataType::f32, {.weights_along_k = along_k});
    return cpu::is_better_transposed(c, machine_, {2, packs_ahead});
  };
  for (const int64_t m : {64, 96}) {
    EXPECT_TRUE(is_better(m, 4096, 4096, true)) << m;
    EXPECT_FALSE(is_better(m, 4096, 4096, false)) << "rows would be copied element by element";
    EXPECT_FALSE(is_better(m, 4096, 4096, true, true)) << "nothing is copied in a call";
  }
  EXPECT_FALSE(is_better(2048, 1024, 1024, true)) << "the weights are not the larger factor";
  EXPECT_FALSE(is_better(8, 4096, 4096, true)) << "few rows have tiles of their own";
  EXPECT_TRUE(is_better(300, 64, 3, false)) << "narrower than a vector";
}

TEST_P(ProductChoice, GivesEachThreadAsManyUnits) {
  const auto units = [&](const Contraction& c) {
    const ProductSchedule s = cpu::choose_product_schedule(c, machine_, {2});
    const auto parts = [](int64_t extent, int64_t part) { return (extent + part - 1) / part; };
    return parts(c.matrices.m, s.row_block) * parts(c.matrices.n, s.column_block);
  };
  for (const int64_t m : {64, 96, 128}) {
    const Contraction c = contraction_of(m, 4096, 4096, DataType::f32, {.weights_along_k = true});
    EXPECT_EQ(units(kernel::transposed(c)) % 2, 0) << m;
  }
  for (const int64_t m : {1, 4}) EXPECT_EQ(units(contraction_of(m, 4096, 4096, DataType::f32, {})), 2) << m;
}

// Each block of k loads and stores the sums of all rows; a copy loads and stores the weights. Weights that are not copied are
// read along their rows, by one tile of rows after the other.
TEST_P(ProductChoice, ReadsWeightsInPlaceWhereCopiesCostMore) {
  for (int64_t m = 1; m <= 20; ++m) {
    const ProductSchedule s = cpu::choose_product_schedule(contraction_of(m, 4096, 4096, DataType::f32, {}), machine_, {2});
    EXPECT_TRUE(s.copies_panels || m < s.k_block || s.vector_bits < 512) << m;
    EXPECT_TRUE(s.copies_panels || !s.panels_first) << m;
    EXPECT_TRUE(m > 4 || !s.copies_panels) << m;
    EXPECT_TRUE(m <= 16 || s.copies_panels) << m;
  }
}

TEST_P(ProductChoice, ReadsLargeWeightsAlongTheirRows) {
  if (cpu::vector_bits(machine_) == 512) GTEST_SKIP() << "vectors are whole lines";
  cpu::Machine machine = machine_;
  const auto chosen = [&](int64_t m, int64_t k, int64_t n, int64_t last_cache) {
    machine.caches.last = last_cache;
    return cpu::choose_product_schedule(contraction_of(m, k, n, DataType::f32, {}), machine, {2});
  };
  const int64_t last = int64_t{32} << 20;
  const ProductSchedule large = chosen(16, 4096, 4096, last);
  EXPECT_FALSE(large.copies_panels || large.panels_first) << describe(large);
  EXPECT_TRUE(large.rows < 16 && large.prefetches && large.k_block == 12) << describe(large);
  EXPECT_EQ((4096 + large.column_block - 1) / large.column_block, 2) << describe(large);
  EXPECT_TRUE(chosen(16, 768, 768, last).copies_panels) << "the cache has space for the weights";
  EXPECT_TRUE(chosen(16, 4096, 4096, 0).copies_panels) << "the cache is not known";
  const ProductSchedule short_rows = chosen(1, 4096, 768, last), long_rows = chosen(1, 4096, 4096, last);
  EXPECT_FALSE(short_rows.prefetches) << describe(short_rows);
  EXPECT_GT(short_rows.k_block, long_rows.k_block) << describe(short_rows) << ", " << describe(long_rows);
}

// Long blocks of k carry sums over less often. From memory short ones are read faster.
TEST_P(ProductChoice, ReadsWeightsOfACacheInLongBlocks) {
  if (cpu::vector_bits(machine_) < 512) GTEST_SKIP() << "vectors are parts of lines";
  cpu::Machine machine = machine_;
  const auto block = [&](int64_t size, int64_t last_cache) {
    machine.caches.last = last_cache;
    const ProductSchedule s =
        cpu::choose_product_schedule(contraction_of(1, size, size, DataType::f32, {}), machine, {2, false});
    EXPECT_FALSE(s.copies_panels) << describe(s);
    return s.k_block;
  };
  EXPECT_EQ(block(768, int64_t{32} << 20), 256);
  EXPECT_LT(block(4096, int64_t{32} << 20), 16) << "larger than the cache";
  EXPECT_LT(block(768, 0), 16) << "the cache is not known";
}

TEST_P(ProductChoice, PrefetchesWeightsOfFewRowsIntoTheSecondLevel) {
  const auto chosen = [&](int64_t m, bool packs_ahead) {
    return cpu::choose_product_schedule(contraction_of(m, 4096, 4096, DataType::f32, {}), machine_, {2, packs_ahead});
  };
  for (const int64_t m : {1, 4}) EXPECT_TRUE(chosen(m, true).prefetches && !chosen(m, true).prefetches_to_first) << m;
  EXPECT_EQ(chosen(64, true).prefetches_to_first, chosen(64, true).rows > 4) << describe(chosen(64, true));
  for (const int64_t m : {1, 4, 16, 64}) EXPECT_FALSE(chosen(m, false).prefetches_to_first) << m;
}

// The first-level cache has first / 4096 places for what begins at the same offset of a page.
TEST_P(ProductChoice, CopiesRowsThatCollide) {
  cpu::Machine machine = machine_;
  machine.caches.first = 32 << 10;
  for (const bool packs_ahead : {false, true}) {
    for (const int64_t m : {1, 4, 8, 12, 14}) {
      for (const int64_t k : {1024, 1040, 2048, 4096, 4100}) {
        const ProductSchedule s =
            cpu::choose_product_schedule(contraction_of(m, k, 1024, DataType::f32, {}), machine, {2, packs_ahead});
        EXPECT_EQ(s.copies_rows, k % 1024 == 0 && s.rows > 8) << m << "x" << k << ": " << describe(s);
      }
    }
  }
}

// Each tile of rows reads a packed panel again.
TEST_P(ProductChoice, DividesFewPackedRowsInEqualTiles) {
  if (machine_.instructions->registers < 32) GTEST_SKIP() << "tiles have fewer rows";
  for (int64_t m = 1; m <= 18; ++m) {
    const ProductSchedule s =
        cpu::choose_product_schedule(contraction_of(m, 1040, 4096, DataType::f32, {}), machine_, {2, true});
    const int64_t tiles = (m + s.rows - 1) / s.rows;
    EXPECT_EQ(tiles, m <= 14 ? 1 : 2) << m << " rows: " << describe(s);
    EXPECT_EQ(s.rows, (m + tiles - 1) / tiles) << m << " rows: " << describe(s);
  }
}

TEST_P(ProductChoice, KeepsRowsInTheLastLevelCache) {
  const int64_t k = 4096, bytes = machine_.caches.last / 4;
  const ProductSchedule s = cpu::choose_product_schedule(contraction_of(16384, k, 4096, DataType::f32, {}), machine_, {2});
  EXPECT_TRUE(bytes == 0 || s.row_block * k * 4 <= std::max<int64_t>(bytes, 64 * k * 4)) << s.row_block;
}

// Threads share columns, and weights are copied once for all rows; they share rows where there are few columns.
TEST_P(ProductChoice, CopiesWeightsOnceForAllRows) {
  const auto chosen = [&](int64_t m, int64_t k, int64_t n, int threads) {
    return cpu::choose_product_schedule(contraction_of(m, k, n, DataType::f32, {}), machine_, {threads});
  };
  for (const int64_t m : {17, 32, 64, 127, 256}) {
    for (const int threads : {2, 8}) EXPECT_GE(chosen(m, 768, 768, threads).row_block, m) << threads;
  }
  EXPECT_GE(chosen(256, 256, 256, 2).row_block, 256);
  EXPECT_LT(chosen(64, 768, 768, 2).column_block, 768 / 2) << "others do a part of the work of a late thread";
}

TEST_P(ProductChoice, IsALegalSchedule) {
  for (const int64_t m : {1, 16, 17, 512}) {
    for (const bool along_k : {false, true}) {
      const Contraction c = contraction_of(m, 768, 3072, DataType::f32, {.weights_along_k = along_k});
      const ProductSchedule chosen = cpu::choose_product_schedule(c, machine_, {2});
      EXPECT_LE(chosen.rows, m);
      EXPECT_GT(chosen.k_block, 0);
      EXPECT_LT((chosen.rows + 1) * chosen.vectors, machine_.instructions->registers) << describe(chosen);
      EXPECT_TRUE(chosen.copies_panels || m < 512) << describe(chosen);
      EXPECT_TRUE(!chosen.copies_panels || m > 1) << describe(chosen);            // one row reads each weight once
      EXPECT_TRUE(m > 1 || along_k || !chosen.panels_first) << describe(chosen);  // along the rows in memory
    }
  }
}

// The gradient of weights in 16 bits: rows that are contiguous along m are copied element by element, so a unit has all
// columns.
TEST_P(ProductChoice, CopiesRowsThatAreTransposedForFewUnits) {
  const Contraction c = contraction_of(3072, 256, 768, DataType::bf16, {.src_along_k = false});
  const ProductSchedule schedule = cpu::choose_product_schedule(c, machine_, {.threads = 2});
  EXPECT_TRUE(schedule.copies_rows);
  EXPECT_GE(schedule.column_block, c.matrices.n);
  EXPECT_LT(schedule.row_block, c.matrices.m) << "threads share rows";
}

INSTANTIATE_TEST_SUITE_P(OnMachines, ProductChoice, ::testing::ValuesIn(described_machines()), name_of_machine);

}  // namespace
}  // namespace lamina::testing
