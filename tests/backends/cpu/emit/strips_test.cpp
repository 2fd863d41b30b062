// Long rows whose last phase runs in strips of columns. They match the interpreter bit for bit, for every number of rows in the
// last tile, rows that end within a vector or a line, any start within a line of a streamed output, and every machine.
#include <gtest/gtest.h>

#include "backends/cpu/support/described_machines.h"
#include "backends/cpu/support/interpreter_bits.h"
#include "backends/cpu/support/kernels_of_rows.h"
#include "backends/cpu/support/schedules_with.h"

namespace lamina::testing {
namespace {

using kernel::Kernel;
using kernel::Value;

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f64 = DataType::f64;

cpu::Schedule in_strips(const Kernel& kernel, const cpu::Machine& machine, bool follows_lines = false) {
  return schedule_with(kernel, machine, [&](const cpu::Schedule& s) {
    return s.strip == 1024 && s.rows_per_tile == 4 && !s.split && s.follows_lines == follows_lines &&
           s.streamed.empty() != follows_lines;
  });
}

std::vector<DescribedMachine> machines() {
  std::vector<DescribedMachine> all = described_machines();
  all.push_back({"xeon_with_avx2", cpu::capped(xeon().machine, cpu::targets::avx2)});
  return all;
}

class Strips : public OnDescribedMachine {};

TEST_P(Strips, BackwardWithColumnSums) {
  for (const DataType dtype : {f32, bf16, f64}) {
    for (const Shape& shape : {Shape{1, 4093}, Shape{3, 2049}, Shape{4, 4093}, Shape{6, 5120}, Shape{71, 2049}}) {
      const Kernel kernel = backward({shape.rows, shape.size, dtype});
      const cpu::Schedule schedule = in_strips(kernel, machine());
      for (const int threads : {1, 3}) expect_interpreter_bits(kernel, threads, machine(), &schedule);
    }
  }
}

TEST_P(Strips, RowsThatBeginAnywhereInALine) {
  for (const DataType dtype : {f32, bf16}) {
    for (Kernel (*const make)(const Shape&) : {layer_norm, backward}) {
      for (const bool in_threes : {false, true}) {
        const Kernel kernel = make({dtype == f32 ? 90 : 179, 4093, dtype, in_threes});
        const cpu::Schedule schedule = in_strips(kernel, machine(), true);
        for (const int threads : {1, 3}) expect_interpreter_bits(kernel, threads, machine(), &schedule);
      }
    }
  }
}

TEST_P(Strips, RowsThatSumNoColumns) {
  for (const DataType dtype : {f32, bf16, f64}) {
    for (const Shape& shape : {Shape{1, 8192}, Shape{6, 6160}, Shape{131, 6144}}) {
      const Kernel kernel = layer_norm({shape.rows, shape.size, dtype});
      const cpu::Schedule schedule = in_strips(kernel, machine());
      for (const int threads : {1, 3}) expect_interpreter_bits(kernel, threads, machine(), &schedule);
    }
  }
}

// A row without sums is walked once, over the range of the call. With strips, each strip would walk the whole range and, in
// place, multiply its own results again.
TEST_P(Strips, NotForRowsThatSumNothing) {
  const Shape shape{8, 16384, bf16};
  Rows k("scaled", shape);
  const Value src = k.src("src"), gamma = k.weight("gamma");
  k.out(src * gamma, "dst");
  const Kernel kernel = k.finish();
  EXPECT_FALSE(may_have(kernel, machine(), [](const cpu::Schedule& s) { return s.strip > 0; }));
  const Memory memory = memory_for(kernel);
  Memory apart = memory, in_place = memory;
  const cpu::KernelRunner runner(kernel, machine());
  runner.run(std::vector<void*>{apart[0].data(), apart[1].data(), apart[2].data()}, nullptr, cpu::Executor(1));
  runner.run(std::vector<void*>{in_place[0].data(), in_place[1].data(), in_place[0].data()}, nullptr, cpu::Executor(1));
  const auto want = values(kernel, 2, apart[2]), got = values(kernel, 2, in_place[0]);
  for (size_t i = 0; i < want.size(); ++i) ASSERT_TRUE(want[i] == got[i] || (std::isnan(want[i]) && std::isnan(got[i]))) << i;
}

INSTANTIATE_TEST_SUITE_P(Machines, Strips, ::testing::ValuesIn(machines()), name_of_machine);

}  // namespace
}  // namespace lamina::testing
