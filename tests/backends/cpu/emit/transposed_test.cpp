// The transposed schedule maps rows to lanes. Its results have the interpreter's bits, like those of every schedule, for every
// memory layout of an arg, for partial groups of rows, and on every machine.
#include <gtest/gtest.h>

#include "backends/cpu/support/described_machines.h"
#include "backends/cpu/support/interpreter_bits.h"
#include "backends/cpu/support/kernels_of_rows.h"
#include "backends/cpu/support/schedules_with.h"

namespace lamina::testing {
namespace {

using kernel::Builder;
using kernel::Kernel;
using kernel::Reduction;
using kernel::Value;

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16, f64 = DataType::f64;

// The memory layout of the elements of [groups, channels | size].
enum class Layout { blocked, plain, apart };

struct Case {
  const char* name;
  int64_t groups, channels, size;
  Layout src, dst;
  DataType dtype = f32;
};

Dims strides_of(Layout layout, const Case& c) {
  switch (layout) {
    case Layout::blocked: return {c.channels * c.size, 1, c.channels};
    case Layout::plain: return {c.channels * c.size, c.size, 1};
    case Layout::apart: return {c.channels * c.size * 6, 2, c.channels * 2 + 2};
  }
  return {};
}

class KernelOfCase {
 public:
  explicit KernelOfCase(const Case& c) : c_(c), builder_("transposed", {c.groups, c.channels, c.size}, 2) {}

  Value in(const char* name, Dims strides) { return builder_.load(arg(name, std::move(strides), false)); }
  Value src(const char* name) { return in(name, strides_of(c_.src, c_)); }
  Value weight(const char* name) { return in(name, {0, 0, 1}); }
  Value per_row(const char* name) { return in(name, {c_.channels, 1, 0}); }
  void out(Value value, const char* name) { builder_.store(value, arg(name, strides_of(c_.dst, c_), true)); }
  void row_out(Value value, const char* name) { builder_.store(value, arg(name, {c_.channels, 1, 0}, true, row_type())); }
  void column(Value value, const char* name) {
    builder_.column_sum(
        value, builder_.add_arg(
                   {.name = name, .dtype = row_type(), .output = true, .column = true, .strides = {0, 0, 1}, .table = {}}));
  }
  Builder& builder() { return builder_; }
  Kernel finish() {
    Kernel kernel = builder_.finish();
    kernel::simplify_dims(kernel);
    return kernel;
  }

 private:
  DataType row_type() const { return c_.dtype == f64 ? f64 : f32; }
  int arg(const char* name, Dims strides, bool output) { return arg(name, std::move(strides), output, c_.dtype); }
  int arg(const char* name, Dims strides, bool output, DataType dtype) {
    return builder_.add_arg({.name = name, .dtype = dtype, .output = output, .strides = std::move(strides), .table = {}});
  }

  Case c_;
  Builder builder_;
};

Kernel layer_norm(const Case& c) { return layer_norm_of(KernelOfCase(c)); }

Kernel layer_norm_backward(const Case& c) {
  KernelOfCase k(c);
  const Value centered = k.src("src") - k.per_row("mean"), dy = k.src("diff_dst"), weighted = dy * k.weight("gamma");
  const Value sum = k.builder().reduce(Reduction::sum, weighted),
              product = k.builder().reduce(Reduction::sum, weighted * centered);
  k.out(weighted - sum - centered * product, "diff_src");
  k.column(dy * centered, "diff_gamma");
  k.column(dy, "diff_beta");
  return k.finish();
}

Kernel softmax(const Case& c) {
  KernelOfCase k(c);
  const Value x = k.src("src");
  const Value shifted = x - k.builder().reduce(Reduction::maximum, x);
  const Value power = k.builder().map(kernel::MapOp::exp, shifted);
  k.out(power / k.builder().reduce(Reduction::sum, power), "dst");
  return k.finish();
}

Kernel copy(const Case& c) {
  KernelOfCase k(c);
  k.out(k.src("src") * 2.0, "dst");
  return k.finish();
}

cpu::Schedule schedule_of(const Kernel& kernel, const cpu::Machine& machine = epyc().machine) {
  return cpu::choose_schedule(cpu::with_rows_arranged(kernel, machine), machine, true);
}

// The chosen schedule if its lanes are rows, else the first such one. Equal layouts of a copy are one run without rows.
cpu::Schedule across_rows(const Kernel& kernel, const cpu::Machine& machine) {
  const auto is_across = [](const cpu::Schedule& s) { return s.transposed; };
  const cpu::Schedule chosen = schedule_of(kernel, machine);
  const bool is_given = chosen.transposed || !may_have(cpu::with_rows_arranged(kernel, machine), machine, is_across);
  return is_given ? chosen : schedule_with(kernel, machine, is_across);
}

class Transposed : public ::testing::TestWithParam<Case> {
 protected:
  static void expect_bits_everywhere(Kernel (*make)(const Case&)) {
    const Kernel kernel = make(GetParam());
    for (const DescribedMachine& described : described_machines()) {
      SCOPED_TRACE(described.name);
      const cpu::Machine machine = to_run_here(described.machine);
      const cpu::Schedule schedule = across_rows(kernel, machine);
      for (const int threads : {1, 3}) expect_interpreter_bits(kernel, threads, machine, &schedule);
    }
  }
};

TEST_P(Transposed, LayerNorm) { expect_bits_everywhere(layer_norm); }
TEST_P(Transposed, LayerNormBackward) { expect_bits_everywhere(layer_norm_backward); }
TEST_P(Transposed, SoftMax) { expect_bits_everywhere(softmax); }
TEST_P(Transposed, Copy) { expect_bits_everywhere(copy); }

// Where no row is contiguous, and for short rows or one layout of two on machines with wide vectors.
TEST_P(Transposed, IsTheScheduleChosen) {
  const Case& c = GetParam();
  const bool is_short = c.src == Layout::plain && c.dst == Layout::plain;
  for (const DescribedMachine& described : described_machines()) {
    const int bits = vector_bits(described.machine);
    if ((c.src == Layout::blocked && c.dst == Layout::blocked) || bits >= 512 || (bits == 256 && !is_short)) {
      // half as many lanes, and twice as many vectors to transpose
      const bool is_costly = c.dtype == f64 && is_short && bits < 512;
      EXPECT_EQ(schedule_of(layer_norm(c), described.machine).transposed, !is_costly) << described.name;
    }
    // equal layouts become one loop over all elements
    EXPECT_EQ(schedule_of(copy(c), described.machine).transposed, c.src != c.dst) << described.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Transposed,
                         ::testing::Values(Case{"blocks_of_16", 7, 16, 300, Layout::blocked, Layout::blocked},
                                           Case{"blocks_of_8", 9, 8, 130, Layout::blocked, Layout::blocked},
                                           Case{"blocks_of_12", 5, 12, 67, Layout::blocked, Layout::blocked},
                                           Case{"channels_last", 3, 50, 70, Layout::blocked, Layout::blocked},
                                           Case{"channels_last_by_4", 3, 64, 300, Layout::blocked, Layout::blocked},
                                           Case{"channels_last_by_2", 3, 96, 128, Layout::blocked, Layout::blocked},
                                           Case{"channels_last_bf16", 3, 64, 95, Layout::blocked, Layout::blocked, bf16},
                                           Case{"channels_last_f64", 2, 32, 257, Layout::blocked, Layout::blocked, f64},
                                           Case{"channels_last_long", 1, 64, 5000, Layout::blocked, Layout::blocked},
                                           Case{"plain_to_blocks", 5, 16, 77, Layout::plain, Layout::blocked},
                                           Case{"blocks_to_plain", 5, 16, 77, Layout::blocked, Layout::plain},
                                           Case{"rows_of_16", 9, 30, 16, Layout::plain, Layout::plain},
                                           Case{"rows_of_5", 9, 30, 5, Layout::plain, Layout::plain},
                                           Case{"several_blocks", 1, 16, 9000, Layout::blocked, Layout::blocked},
                                           Case{"large", 40, 32, 1024, Layout::blocked, Layout::blocked},
                                           Case{"bf16", 7, 16, 130, Layout::blocked, Layout::blocked, bf16},
                                           Case{"f16_to_blocks", 4, 16, 70, Layout::plain, Layout::blocked, f16},
                                           Case{"f64", 7, 16, 130, Layout::blocked, Layout::blocked, f64},
                                           Case{"f64_short", 40, 4, 12, Layout::plain, Layout::plain, f64}),
                         [](const auto& test) { return test.param.name; });

// Strided positions are loaded as runs of several vectors if the rows divide evenly and no column is summed.
TEST(TransposedTwin, SeveralVectorsOfChannelsLast) {
  const auto rows = [](const Kernel& kernel) { return schedule_of(kernel).rows_per_group; };
  const auto channels = [](int64_t count) { return Case{"channels", 3, count, 128, Layout::blocked, Layout::blocked}; };
  EXPECT_EQ(rows(layer_norm(channels(64))), 64);
  EXPECT_EQ(rows(layer_norm(channels(96))), 32);
  EXPECT_EQ(rows(layer_norm(channels(80))), 16);
  EXPECT_EQ(rows(layer_norm(channels(16))), 16);
  EXPECT_EQ(rows(layer_norm_backward(channels(64))), 16);
}

// No axis is contiguous: any direction of the lanes needs a gather, so the lanes stay along the row.
TEST(TransposedTwin, NotWhereRowsLieApartToo) {
  const Case c{"apart", 4, 400, 16, Layout::apart, Layout::apart};
  const Kernel kernel = copy(c);
  EXPECT_FALSE(schedule_of(kernel).transposed);
  expect_interpreter_bits(kernel, 1, cpu::host_machine());
}

TEST(TransposedTwin, NotForLongContiguousRows) {
  EXPECT_FALSE(schedule_of(layer_norm({"long", 4, 64, 1024, Layout::plain, Layout::plain})).transposed);
}

}  // namespace
}  // namespace lamina::testing
