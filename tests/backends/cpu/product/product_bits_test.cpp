// Every legal schedule of a product gives the bits of the interpreter's chain: sizes around vectors and tiles, both layouts of
// the factors, strides, broadcasts over the batch, a bias of any shape, elements of 16 and 8 bits, one to three threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/library/products/product_runner.h"
#include "backends/cpu/support/contractions.h"
#include "backends/cpu/support/described_machines.h"
#include "backends/cpu/targets/isa/target_hooks.h"
#include "interface/status.h"

namespace lamina::testing {
namespace {

using cpu::ProductSchedule;
using kernel::Contraction;
using kernel::MatrixStack;

size_t bytes_for(const MatrixStack& matrix, const Dims& batch) {
  int64_t last = (matrix.rows - 1) * matrix.row_stride + (matrix.columns - 1) * matrix.column_stride;
  for (size_t d = 0; d < batch.size(); ++d) last += (batch[d] - 1) * matrix.batch_strides[d];
  return static_cast<size_t>(bytes_of(matrix.dtype, last + 1));
}

std::vector<char> random_matrix(const MatrixStack& matrix, const Dims& batch, std::mt19937_64& random) {
  std::vector<char> bytes(bytes_for(matrix, batch));
  std::uniform_real_distribution<double> numbers(-1, 1);
  const double largest = is_byte_integer(matrix.dtype) ? 200 : 1;
  for (int64_t i = 0; i < static_cast<int64_t>(bytes.size()) / bytes_of(matrix.dtype, 1); ++i)
    store_from_double(matrix.dtype, bytes.data(), i, largest * numbers(random));
  return bytes;
}

struct Data {
  Data(const Contraction& c, std::mt19937_64& random)
      : src(random_matrix(c.matrices.src, c.matrices.batch, random)),
        weights(random_matrix(c.matrices.weights, c.matrices.batch, random)),
        bias(random_matrix(c.matrices.bias, c.matrices.batch, random)),
        dst(random_matrix(c.matrices.dst, c.matrices.batch, random)),
        expected(dst) {
    kernel::interpret(c, src.data(), weights.data(), bias.data(), expected.data());
  }
  std::vector<char> src, weights, bias, dst, expected;
};

// Memory at the start of a cache line.
class Aligned {
 public:
  explicit Aligned(size_t bytes) : memory_(bytes + 64) {}
  char* data() { return memory_.data() + (64 - reinterpret_cast<uintptr_t>(memory_.data()) % 64); }

 private:
  std::vector<char> memory_;
};

std::vector<char> result_of(const Contraction& c, const Data& data, const cpu::Machine& machine,
                            const ProductSchedule& schedule, int threads, bool packs_ahead) {
  const cpu::ProductRunner runner(c, machine, schedule, threads, {.are_packed_ahead = packs_ahead});
  const cpu::Executor executor(cpu::Executor::Kind::workers, threads);
  std::vector<char> dst = data.dst;
  Aligned scratch(runner.scratch_bytes()), packed(runner.packed_bytes());
  if (packs_ahead) runner.pack(data.weights.data(), packed.data(), executor);
  runner.run(data.src.data(), packs_ahead ? packed.data() : data.weights.data(),
             c.matrices.has_bias ? data.bias.data() : nullptr, dst.data(), scratch.data(), executor);
  return dst;
}

class ProductBits : public OnDescribedMachine {
 protected:
  // The schedule of the rules, and some others.
  void expect_chain(const Contraction& c, int others = 3) {
    SCOPED_TRACE(kernel::print(c));
    const Data data(c, random_);
    const auto all = cpu::legal_product_schedules(c, machine_);
    const auto expect_expected = [&](const ProductSchedule& schedule, bool packs_ahead) {
      const int threads = 1 + static_cast<int>(random_() % 3);
      EXPECT_TRUE(result_of(c, data, machine_, schedule, threads, packs_ahead) == data.expected)
          << describe(schedule) << ", " << threads << " threads" << (packs_ahead ? ", weights packed ahead" : "");
    };
    for (const bool packs_ahead : {false, true})
      expect_expected(cpu::choose_product_schedule(c, machine_, {2, packs_ahead}), packs_ahead);
    for (int i = 0; i < others; ++i) expect_expected(all.sample(random_), random_() % 2 == 0);
  }
  // Pairs of bf16 are tested wherever they run, also where they are slow.
  const cpu::Machine machine_ = [this] {
    cpu::Machine found = machine();
    found.instructions.multiplies_bf16_pairs = found.instructions.rounds_to_bf16;
    return found;
  }();
  std::mt19937_64 random_{1};
};

TEST_P(ProductBits, AreThoseOfTheChainForSizesAroundVectorsAndTiles) {
  for (const DataType dtype : {DataType::f32, DataType::f64}) {
    for (const int64_t m : {1, 2, 13, 15, 16, 17, 33}) {
      for (const int64_t n : {1, 15, 16, 17, 31, 33, 65}) {
        for (const int64_t k : {1, 17, 61})
          expect_chain(contraction_of(m, k, n, dtype, {.weights_along_k = (m + n + k) % 2 == 0}), 1);
      }
    }
  }
}

// Enough rows that two threads copy the same panel, for a part of them each.
TEST_P(ProductBits, AreThoseOfTheChainWherePanelsAreCut) {
  for (const DataType dtype : {DataType::f32, DataType::bf16}) {
    for (const bool weights_along_k : {false, true}) {
      expect_chain(contraction_of(131, 38, 200, dtype, {.weights_along_k = weights_along_k}));
      expect_chain(contraction_of(260, 19, 90, dtype, {.weights_along_k = weights_along_k, .gap = 2}));
    }
  }
}

TEST_P(ProductBits, AreThoseOfTheChainInEveryLayout) {
  for (const DataType dtype : {DataType::f32, DataType::f64}) {
    for (int layout = 0; layout < 16; ++layout) {
      const FactorLayout of{(layout & 1) != 0, (layout & 2) != 0, (layout & 4) != 0, (layout & 8) != 0 ? 3 : 0};
      expect_chain(contraction_of(31, 67, 63, dtype, of));
      expect_chain(contraction_of(5, 40, 150, dtype, of));
      expect_chain(contraction_of(7, 19, 37, dtype, of, {2, 3}));
      expect_chain(contraction_of(7, 19, 37, dtype, of, {2, 3}, true));
    }
  }
}

// Weights along k become the rows of the transposed product, whose units write their results by squares.
TEST_P(ProductBits, AreThoseOfTheChainForTransposedProducts) {
  const std::vector<DataType> types{DataType::f32, DataType::bf16, DataType::f16};
  for (const DataType dtype : types) {
    for (const auto& [m, k, n] :
         std::vector<std::array<int64_t, 3>>{{17, 64, 131}, {64, 300, 257}, {70, 31, 1100}, {96, 2, 97}}) {
      Contraction c = contraction_of(m, k, n, dtype, {.weights_along_k = true, .gap = static_cast<int>(random_() % 2)}, {2},
                                     random_() % 2 == 0);
      c.multiplies_pairs = dtype == DataType::bf16 && machine_.instructions.multiplies_bf16_pairs && random_() % 2 == 0;
      c.matrices.dst.dtype = types[random_() % 3];
      c.matrices.has_bias = random_() % 2 == 0;
      c.matrices.bias = {m, n, static_cast<int64_t>(random_() % 2) * n, 1, {0}, types[random_() % 3]};
      const Contraction swapped = kernel::transposed(c);
      EXPECT_FALSE(cpu::choose_product_schedule(swapped, machine_, {2}).panels_first) << kernel::print(swapped);
      expect_chain(swapped);
    }
  }
}

// Tiles copy the next panel, of the next block of k or of the next columns.
TEST_P(ProductBits, AreThoseOfTheChainWherePanelsAreCopiedAhead) {
  const std::vector<DataType> types{DataType::f32, DataType::bf16, DataType::f16, DataType::f64};
  for (const DataType dtype : types) {
    for (const auto& [m, k, n] :
         std::vector<std::array<int64_t, 3>>{{33, 301, 261}, {64, 64, 256}, {150, 90, 100}, {70, 3, 512}}) {
      Contraction c = contraction_of(m, k, n, dtype, {.gap = 1});
      c.multiplies_pairs = dtype == DataType::bf16 && machine_.instructions.multiplies_bf16_pairs && k != 301;
      const Data data(c, random_);
      ProductSchedule schedule = cpu::choose_product_schedule(c, machine_, {2});
      const bool is_as_wide = dtype == DataType::f32 || dtype == DataType::f64 || c.multiplies_pairs;
      EXPECT_EQ(schedule.copies_next, is_as_wide) << kernel::print(c);
      schedule.copies_next = true;
      for (const int64_t k_block : {7, 40, 301}) {
        schedule.k_block = k_block;
        for (const int threads : {1, 2, 3})
          EXPECT_TRUE(result_of(c, data, machine_, schedule, threads, false) == data.expected) << describe(schedule);
      }
    }
  }
  const Contraction many = contraction_of(2048, 768, 3072, DataType::f32, {});
  EXPECT_FALSE(cpu::choose_product_schedule(many, machine_, {2}).copies_next) << "copies take little of the time";
}

// Tiles read each vector of a panel from its own place.
TEST_P(ProductBits, AreThoseOfTheChainWherePanelsAreSplit) {
  for (const DataType dtype : {DataType::f32, DataType::f64, DataType::bf16, DataType::f16}) {
    for (const int64_t m : {1, 2, 5, 9}) {
      for (const int64_t n : {7, 64, 131, 260}) {
        for (const bool weights_along_k : {false, true}) {
          Contraction c = contraction_of(m, 45, n, dtype, {.weights_along_k = weights_along_k, .gap = 1});
          const Data data(c, random_);
          ProductSchedule schedule = cpu::choose_product_schedule(c, machine_, {2, true});
          schedule.splits_panels = true;
          for (const int64_t k_block : {10, 45}) {
            schedule.k_block = k_block;
            EXPECT_TRUE(result_of(c, data, machine_, schedule, 2, true) == data.expected)
                << kernel::print(c) << ", " << describe(schedule);
          }
        }
      }
    }
  }
}

// All panels of some rows of weights by a tile of rows, then by the next tile.
TEST_P(ProductBits, AreThoseOfTheChainWhereTilesReadAlongRows) {
  cpu::Machine machine = machine_;
  machine.caches.last = 1;  // so that any weights are larger
  for (const DataType dtype : {DataType::f32, DataType::bf16}) {
    for (const int64_t m : {7, 16}) {
      for (const int64_t n : {7, 131, 260}) {
        Contraction c = contraction_of(m, 45, n, dtype, {.gap = 1});
        const Data data(c, random_);
        const ProductSchedule schedule = cpu::choose_product_schedule(c, machine, {2});
        EXPECT_TRUE(!schedule.copies_panels && !schedule.panels_first) << describe(schedule);
        EXPECT_TRUE(result_of(c, data, machine, schedule, 2, false) == data.expected)
            << kernel::print(c) << ", " << describe(schedule);
      }
    }
  }
}

TEST_P(ProductBits, AreThoseOfTheChainWithLongSums) {
  expect_chain(contraction_of(29, 1031, 70, DataType::f32, {}));
  expect_chain(contraction_of(3, 1031, 270, DataType::f64, {.weights_along_k = true}));
  expect_chain(contraction_of(1, 2053, 131, DataType::f32, {}), 8);
}

// A tile that transposes weights prefetches groups of entries of k: several whole ones, one and a rest, and less than one.
TEST_P(ProductBits, AreThoseOfTheChainWithGroupsAlongK) {
  for (const DataType dtype : {DataType::f32, DataType::f64, DataType::bf16, DataType::f16}) {
    for (const int64_t k : {4096, 1100, 530, 62}) {
      for (const int64_t m : {1, 3}) expect_chain(contraction_of(m, k, 70, dtype, {.weights_along_k = true, .gap = m - 1}), 2);
    }
  }
}

TEST_P(ProductBits, IncludeABiasOfAnyShape) {
  for (const auto& [row, column] : std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {0, 1}, {1, 0}, {40, 1}, {1, 20}, {0, 2}}) {
    for (const int64_t n : {32, 37}) {
      Contraction c = contraction_of(20, 45, n, DataType::f32, {.gap = 1});
      c.matrices.has_bias = true;
      c.matrices.bias = {20, n, row, column, {}, DataType::f32};
      expect_chain(c);
    }
  }
}

TEST_P(ProductBits, IncludeWhatTheyAreAddedTo) {
  for (const bool dst_along_columns : {true, false}) {
    Contraction c = contraction_of(20, 700, 37, DataType::f32, {.dst_along_columns = dst_along_columns});
    c.adds = true;
    expect_chain(c);
  }
}

// Each matrix has a type of its own.
TEST_P(ProductBits, RoundSumsOfNarrowTypesOnce) {
  const std::vector<DataType> types{DataType::bf16, DataType::f16, DataType::f32};
  for (int layout = 0; layout < 16; ++layout) {
    const FactorLayout of{(layout & 1) != 0, (layout & 2) != 0, (layout & 4) != 0, (layout & 8) != 0 ? 3 : 0};
    for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{{1, 70, 150}, {5, 40, 37}, {19, 130, 70}, {40, 67, 33}}) {
      Contraction c = contraction_of(m, k, n, types[random_() % 2], of, {2}, random_() % 2 == 0);
      c.matrices.weights.dtype = types[random_() % 2];
      c.matrices.dst.dtype = types[random_() % 3];
      c.matrices.has_bias = random_() % 2 == 0;
      c.matrices.bias = {m, n, static_cast<int64_t>(random_() % 2) * n, 1, {0}, types[random_() % 3]};
      expect_chain(c, 5);
    }
  }
}

TEST_P(ProductBits, KeepSumsOfNarrowTypesBetweenBlocksOfK) {
  for (const DataType dtype : {DataType::bf16, DataType::f16}) {
    for (const int64_t m : {1, 16, 50}) {
      const Contraction c = contraction_of(m, 1000, 37, dtype, {});
      const Data data(c, random_);
      ProductSchedule schedule = cpu::choose_product_schedule(c, machine_, {2});
      for (const int64_t k_block : {300, 1000}) {
        schedule.k_block = k_block;
        EXPECT_TRUE(result_of(c, data, machine_, schedule, 2, false) == data.expected) << describe(schedule);
      }
    }
  }
}

TEST_P(ProductBits, AreThoseOfTheChainOverPairsOfBf16) {
  if (!machine_.instructions.multiplies_bf16_pairs) GTEST_SKIP() << "this machine does not multiply pairs of bf16";
  const std::vector<DataType> types{DataType::bf16, DataType::f16, DataType::f32};
  for (int layout = 0; layout < 16; ++layout) {
    const FactorLayout of{(layout & 1) != 0, (layout & 2) != 0, (layout & 4) != 0, (layout & 8) != 0 ? 3 : 0};
    for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{
             {1, 70, 150}, {1, 2, 1}, {1, 1, 16}, {3, 64, 48}, {5, 41, 37}, {16, 130, 33}, {19, 131, 70}, {40, 68, 32}}) {
      Contraction c = contraction_of(m, k, n, DataType::bf16, of, {2}, random_() % 2 == 0);
      c.multiplies_pairs = true;
      c.matrices.dst.dtype = types[random_() % 3];
      c.matrices.has_bias = random_() % 2 == 0;
      c.matrices.bias = {m, n, static_cast<int64_t>(random_() % 2) * n, 1, {0}, types[random_() % 3]};
      expect_chain(c, 5);
    }
  }
  Contraction added = contraction_of(20, 701, 37, DataType::bf16, {});
  added.matrices.dst.dtype = DataType::f32;
  added.multiplies_pairs = added.adds = true;
  expect_chain(added);
}

// Numbers below 2^-126 count as zeros, in factors and in sums.
TEST_P(ProductBits, OfPairsFlushSmallNumbers) {
  if (!machine_.instructions.multiplies_bf16_pairs) GTEST_SKIP() << "this machine does not multiply pairs of bf16";
  Contraction c = contraction_of(2, 64, 32, DataType::bf16, {});
  c.matrices.dst.dtype = DataType::f32;
  c.multiplies_pairs = true;
  Data data(c, random_);
  for (int64_t i = 0; i < 2 * 64; ++i)
    store_from_double(DataType::bf16, data.src.data(), i, static_cast<double>(i % 5 - 2) * (i < 64 ? 0.5e-38 : 1.5e-38));
  kernel::interpret(c, data.src.data(), data.weights.data(), nullptr, data.expected.data());
  const ProductSchedule schedule = cpu::choose_product_schedule(c, machine_, {2});
  EXPECT_TRUE(result_of(c, data, machine_, schedule, 1, false) == data.expected) << describe(schedule);
}

TEST_P(ProductBits, OfNarrowTypesIncludeWhatTheyAreAddedTo) {
  Contraction c = contraction_of(20, 700, 37, DataType::bf16, {});
  c.matrices.dst.dtype = DataType::f32;
  c.adds = true;
  expect_chain(c);
}

TEST_P(ProductBits, OfIntegersAreExactSumsTimesAScale) {
  for (int layout = 0; layout < 16; ++layout) {
    const FactorLayout of{(layout & 1) != 0, (layout & 2) != 0, (layout & 4) != 0, (layout & 8) != 0 ? 3 : 0};
    for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{{1, 71, 150}, {5, 40, 37}, {19, 1, 70}, {40, 133, 33}}) {
      Contraction c = contraction_of(m, k, n, DataType::f32, of, {2}, random_() % 2 == 0);
      c.matrices.src.dtype = random_() % 2 == 0 ? DataType::u8 : DataType::s8;
      c.matrices.weights.dtype = random_() % 2 == 0 ? DataType::u8 : DataType::s8;
      c.matrices.dst.dtype = std::array{DataType::f32, DataType::bf16, DataType::f16}[random_() % 3];
      c.matrices.has_bias = random_() % 2 == 0;
      c.matrices.bias = {m, n, static_cast<int64_t>(random_() % 2) * n, 1, {0}, DataType::f32};
      const bool has_zero_points = random_() % 2 == 0;
      c.integers = kernel::IntegerFactors{.src_zero_point = has_zero_points ? 3 : 0,
                                          .weights_zero_point = has_zero_points ? -5 : 0,
                                          .scales = std::vector<float>(random_() % 2 == 0 ? 1 : static_cast<size_t>(n))};
      for (float& scale : c.integers->scales) scale = 1e-4F * static_cast<float>(1 + random_() % 100);
      expect_chain(c, 5);
    }
  }
}

TEST_P(ProductBits, OfIntegersAreExactForTheLargestSums) {
  Contraction c = contraction_of(3, 20001, 20, DataType::f32, {.weights_along_k = true});
  c.matrices.src.dtype = DataType::u8, c.matrices.weights.dtype = DataType::s8;
  c.integers = kernel::IntegerFactors{.src_zero_point = 255, .weights_zero_point = 127, .scales = {1}};
  Data data(c, random_);
  std::fill(data.src.begin(), data.src.end(), 0);
  std::fill(data.weights.begin(), data.weights.end(), static_cast<char>(-128));
  kernel::interpret(c, data.src.data(), data.weights.data(), nullptr, data.expected.data());
  EXPECT_EQ(load_as_double(DataType::f32, data.expected.data(), 0), static_cast<float>(20001 * 255 * 255));
  const ProductSchedule schedule = cpu::choose_product_schedule(c, machine_, {2});
  EXPECT_TRUE(result_of(c, data, machine_, schedule, 2, false) == data.expected) << describe(schedule);
}

// All of them, for a product with full and partial tiles.
TEST_P(ProductBits, AreTheSameUnderEverySchedule) {
  for (const Contraction& c :
       {contraction_of(17, 37, 70, DataType::f32, {}), contraction_of(3, 77, 70, DataType::bf16, {.weights_along_k = true})}) {
    const Data data(c, random_);
    size_t number = 0;
    for (const ProductSchedule& schedule : cpu::legal_product_schedules(c, machine_)) {
      if (number++ % 7 != 0) continue;
      ASSERT_TRUE(result_of(c, data, machine_, schedule, 2, number % 2 == 0) == data.expected) << describe(schedule);
    }
    EXPECT_GT(number, 100U);
  }
}

// A machine of another architecture gets code too, which this one cannot run.
TEST(ProductCode, IsGeneratedForEveryMachine) {
  for (const DescribedMachine& described : machines_of_all_architectures()) {
    if (!described.machine.instructions.architecture->hooks->initialize()) continue;
    SCOPED_TRACE(described.name);
    for (const bool along_k : {false, true}) {
      for (const DataType dtype : {DataType::f32, DataType::bf16, DataType::f16, DataType::s8}) {
        Contraction c = contraction_of(20, 100, 70, dtype, {.weights_along_k = along_k});
        if (dtype == DataType::s8) c.integers = kernel::IntegerFactors{.scales = {1}}, c.matrices.dst.dtype = DataType::f32;
        const ProductSchedule schedule = cpu::choose_product_schedule(c, described.machine, {2});
        EXPECT_NO_THROW(cpu::ProductRunner(c, described.machine, schedule, 2)) << describe(schedule);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OnMachines, ProductBits, ::testing::ValuesIn(described_machines()), name_of_machine);

}  // namespace
}  // namespace lamina::testing
