// The guarantees about bits (docs/numerics.md): results do not depend on the number of threads, the instruction set, alignment,
// row strides, in-place execution or the run. A row's results do not depend on other rows, and all results equal those of
// golden_bits.tsv.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "backends/cpu/numerics/bits.h"
#include "backends/cpu/support/described_machines.h"
#include "support/files.h"

namespace lamina::testing {
namespace {

struct Size {
  int64_t rows, size;
};

struct Case {
  const BitsCase* graph;
  DataType dtype;
};
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const BitsCase& graph : bits_cases()) {
    for (const DataType dtype : graph.dtypes) cases.push_back({&graph, dtype});
  }
  return cases;
}
std::string name_of_case(const Case& c) { return join(c.graph->name, "_", name_of(c.dtype)); }
void PrintTo(const Case& c, std::ostream* out) { *out << name_of_case(c); }

std::string describe(const RunVariant& v) {
  return join(v.threads, " threads, ", v.most == nullptr ? "all" : v.most->name, " instructions, row gap ", v.row_gap,
              ", offset ", v.offset, v.in_place ? ", in place" : "");
}

class SameBits : public ::testing::TestWithParam<Case> {
 protected:
  BitsRun run_of(Size size) const { return {*GetParam().graph, size.rows, size.size, GetParam().dtype}; }
};

// Several threads run from 128 KiB on. The first size has several blocks of 64 rows for column sums; the second has few rows of
// several blocks of 4096 elements, which threads share.
TEST_P(SameBits, ForThreadsInstructionsPlacementOnEveryRun) {
  for (const Size size : {Size{700, 61}, Size{3, 4 * 4096 + 77}}) {
    BitsRun run = run_of(size);
    const std::vector<OutputBits> expected = run();
    for (const cpu::Target* const most : targets_here()) {
      for (const int64_t row_gap : {0, 1, 16}) {
        for (const int64_t offset : {0, 1, 5}) {
          for (const bool in_place : {false, true}) {
            for (const int threads : {1, 2, 3, 8}) {
              const RunVariant variant{threads, most, row_gap, offset, in_place};
              for (int again = 0; again < (threads == 8 ? 3 : 1); ++again)
                ASSERT_TRUE(run(variant) == expected) << size.rows << " x " << size.size << ", " << describe(variant);
            }
          }
        }
      }
    }
  }
}

// Shorter than a vector, one element, typical, two blocks of 4096, and one long row.
TEST_P(SameBits, ForThreadsAndInstructionsAtEverySize) {
  const auto all = targets_here();
  const cpu::Target *const middle = all[all.size() / 2], *const best = all.back();
  const std::pair<const cpu::Target*, int> choices[] = {{all[0], 1}, {all[0], 3}, {middle, 2}, {best, 3}, {best, 8}};
  for (const Size size : {Size{9000, 5}, Size{70, 1}, Size{131, 768}, Size{9, 4097}, Size{1, 50'001}}) {
    BitsRun run = run_of(size);
    const std::vector<OutputBits> expected = run();
    for (const auto& [most, threads] : choices) {
      const RunVariant variant{.threads = threads, .most = most};
      ASSERT_TRUE(run(variant) == expected) << size.rows << " x " << size.size << ", " << describe(variant);
    }
  }
}

// Threads share the rows, and sums over rows have two blocks.
TEST_P(SameBits, ForTwoBlocksOfLongRows) {
  BitsRun run = run_of({66, 16'385});
  ASSERT_TRUE(run({.threads = 3}) == run());
}

// Rows r and r + 7 have the same numbers. 4096 rows exceed the caches, so their stores may be streamed, aligned or not.
TEST_P(SameBits, ForARowInAnyBatch) {
  for (const int64_t size : {512, 577, 16'385}) {
    const std::vector<OutputBits> seven = run_of({7, size})();
    for (const int64_t rows : {int64_t{1}, size > 4096 ? int64_t{20} : int64_t{4096}}) {
      BitsRun run = run_of({rows, size});
      for (const RunVariant& variant :
           {RunVariant{.threads = 2},
            RunVariant{.threads = 3, .most = targets_here()[targets_here().size() / 2], .row_gap = 3, .offset = 5}}) {
        const std::vector<OutputBits> other = run(variant);
        ASSERT_EQ(other.size(), seven.size());
        for (size_t o = 0; o < seven.size(); ++o) {
          if (seven[o].rows != 7) continue;  // sums over rows
          const size_t row_bytes = seven[o].elements.size() / 7;
          const int64_t count = GetParam().graph->counts_rows ? std::min<int64_t>(rows, 7) : rows;
          for (size_t r = 0; r < static_cast<size_t>(count); ++r) {
            ASSERT_EQ(other[o].elements.compare(r * row_bytes, row_bytes, seven[o].elements, r % 7 * row_bytes, row_bytes), 0)
                << "output " << o << ", row " << r << " of " << rows << " x " << size << ", " << describe(variant);
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, SameBits, ::testing::ValuesIn(all_cases()),
                         [](const auto& test) { return name_of_case(test.param); });

// ---- the same bits as in the golden file

std::string golden_text(const cpu::Machine& machine) {
  std::ostringstream text;
  for (const Case& c : all_cases()) {
    for (const Size size : {Size{70, 61}, Size{131, 768}, Size{3, 20'557}}) {
      const uint64_t hash = hash_of(BitsRun(*c.graph, size.rows, size.size, c.dtype, machine)({.threads = 2}));
      text << c.graph->name << "\t" << name_of(c.dtype) << "\t" << size.rows << "\t" << size.size << "\t" << std::hex << hash
           << std::dec << "\n";
    }
  }
  return text.str();
}

// A change of the numerics changes these hashes: check the accuracy (accuracy_test.cpp), then run this test with
// LAMINA_RENEW_GOLDEN_BITS=1 to rewrite the file, and explain the change in the commit: from then on, results differ between
// versions of lamina.
class GoldenBits : public OnDescribedMachine {};

TEST_P(GoldenBits, AreThoseOfTheLastVersion) {
  const std::string path = LAMINA_SOURCE_DIR "/tests/backends/cpu/numerics/golden_bits.tsv";
  const std::string actual = golden_text(machine());
  if (std::getenv("LAMINA_RENEW_GOLDEN_BITS") != nullptr) {
    std::ofstream(path, std::ios::trunc) << actual;
    GTEST_SKIP() << path << " is renewed";
  }
  EXPECT_EQ(actual, text_of(path));
}

INSTANTIATE_TEST_SUITE_P(Machines, GoldenBits, ::testing::ValuesIn(described_machines()), name_of_machine);

}  // namespace
}  // namespace lamina::testing
