// Rows that are written as one stream of whole cache lines. They match the interpreter bit for bit, for every offset of the
// first row in a line and every boundary between threads, and no byte around the outputs changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/support/described_machines.h"
#include "backends/cpu/support/interpreter_bits.h"
#include "backends/cpu/support/kernels_of_rows.h"
#include "backends/cpu/support/schedules_with.h"
#include "interface/status.h"

namespace lamina::testing {
namespace {

using kernel::Kernel;
using kernel::Value;

constexpr std::byte kGuard{0x5A};
constexpr size_t kGuards = 128;  // bytes before and after the buffer

// A buffer that starts `offset` bytes after a line boundary, with guard bytes around it.
class Guarded {
 public:
  Guarded(const std::vector<std::byte>& content, size_t bytes, size_t offset)
      : bytes_(bytes), memory_(bytes + 2 * kGuards + 512, kGuard) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    begin_ = memory_.data() + (64 - address % 64) % 64 + kGuards + offset;
    std::memcpy(begin_, content.data(), bytes);
  }
  std::byte* data() { return begin_; }
  bool guards_stand() const {
    const auto stands = [](const std::byte* from) {
      return std::all_of(from, from + kGuards, [](std::byte b) { return b == kGuard; });
    };
    return stands(begin_ - kGuards) && stands(begin_ + bytes_);
  }

 private:
  size_t bytes_;
  std::vector<std::byte> memory_;
  std::byte* begin_;
};

int64_t bytes_of_arg(const Kernel& kernel, size_t a) { return bytes_of(kernel.args[a].dtype, span(kernel, kernel.args[a])); }

// All NaNs count as equal.
void expect_same(const Kernel& kernel, size_t a, const std::vector<std::byte>& want, const std::byte* got) {
  const auto size = static_cast<size_t>(bytes_of_arg(kernel, a));
  if (std::memcmp(want.data(), got, size) == 0) return;
  const auto wanted = values(kernel, a, want), found = values(kernel, a, std::vector<std::byte>(got, got + size));
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_TRUE((std::isnan(wanted[i]) && std::isnan(found[i])) || std::memcmp(&wanted[i], &found[i], sizeof(double)) == 0)
        << kernel.args[a].name << "[" << i << "]: " << found[i] << ", interpreter " << wanted[i];
  }
}

void expect_bits_at_every_offset(const Kernel& kernel, const cpu::KernelRunner& runner) {
  const Memory initial = memory_for(kernel);
  Memory expected = initial;
  std::vector<kernel::InterpretedArg> args;
  for (size_t a = 0; a < kernel.args.size(); ++a) args.push_back({expected[a].data(), span(kernel, kernel.args[a])});
  kernel::interpret(kernel, args);
  std::vector<std::byte> scratch(runner.scratch_bytes() + 64);
  for (int64_t offset = 0; offset < 32; offset += 5) {
    for (const int threads : {1, 3}) {
      SCOPED_TRACE(join("offset ", offset, ", threads ", threads));
      std::vector<Guarded> buffers;
      for (size_t a = 0; a < kernel.args.size(); ++a)
        buffers.emplace_back(initial[a], static_cast<size_t>(bytes_of_arg(kernel, a)),
                             static_cast<size_t>(bytes_of(kernel.args[a].dtype, offset)));
      std::vector<void*> pointers;
      for (Guarded& buffer : buffers) pointers.push_back(buffer.data());
      runner.run(pointers, scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64,
                 cpu::Executor(threads));
      for (size_t a = 0; a < kernel.args.size(); ++a) {
        EXPECT_TRUE(buffers[a].guards_stand()) << kernel.args[a].name;
        ASSERT_NO_FATAL_FAILURE(expect_same(kernel, a, expected[a], buffers[a].data()));
      }
    }
  }
}

// Uses a stream where the machine can join lines, otherwise walks along lines.
void expect_bits_at_every_offset(const Kernel& kernel, const cpu::Machine& machine) {
  const bool realigns = machine.instructions->joins_lines;
  const cpu::Schedule schedule = schedule_with(kernel, machine, [&](const cpu::Schedule& s) {
    return !s.streamed.empty() && s.realigns == realigns && !s.transposed && !s.split;
  });
  expect_bits_at_every_offset(kernel, cpu::KernelRunner(kernel, machine, schedule));
}

// The sum is an output too.
Kernel add_layer_norm(const Shape& shape) {
  Rows k("add_layer_norm", shape);
  const Value sum = k.src("a") + k.src("b");
  const auto moments = k.builder().moments(sum);
  k.out(k.builder().center(sum, moments, 1.0 / sqrt(moments.variance + 1e-5)) * k.weight("gamma"), "dst");
  k.out(sum, "sum");
  return k.finish();
}

constexpr int64_t kElements = int64_t{1} << 18;

class RealignedRows : public OnDescribedMachine {};

TEST_P(RealignedRows, LayerNorm) {
  for (const int64_t size : {65, 257, 1003, 4093})
    expect_bits_at_every_offset(layer_norm({kElements / size + 3, size}), machine());
  for (const int64_t size : {99, 2061})
    expect_bits_at_every_offset(layer_norm({kElements / 2 / size + 3, size, DataType::f64}), machine());
}

// Rows of two to four vectors, which form one chunk.
TEST_P(RealignedRows, ShortRows) {
  for (const int64_t size : {23, 31, 33, 47, 63})
    expect_bits_at_every_offset(layer_norm({kElements / size + 3, size}), machine());
  expect_bits_at_every_offset(layer_norm({kElements / 2 / 31 + 3, 31, DataType::f64}), machine());
}

TEST_P(RealignedRows, TwoOutputs) {
  for (const int64_t size : {29, 100, 2063})
    expect_bits_at_every_offset(add_layer_norm({kElements / size + 3, size}), machine());
}

// A line has two vectors: of the last two vectors of a row, one may be missing, or both may be partial.
TEST_P(RealignedRows, OfSixteenBits) {
  for (const int64_t size : {129, 257, 1008, 1021, 4093})
    expect_bits_at_every_offset(layer_norm({kElements / size, size, DataType::bf16}), machine());
  expect_bits_at_every_offset(layer_norm({kElements / 523, 523, DataType::f16}), machine());
  expect_bits_at_every_offset(add_layer_norm({kElements / 300, 300, DataType::bf16}), machine());
}

// The caches of a machine do not influence this schedule.
INSTANTIATE_TEST_SUITE_P(Machines, RealignedRows, ::testing::Values(epyc(), desktop()), name_of_machine);

TEST(RealignedRowsTwin, NotWhereRowsLieApartOrFillLines) {
  const auto realigns = [](const Kernel& kernel) {
    return may_have(kernel, epyc().machine, [](const cpu::Schedule& s) { return s.realigns; });
  };
  EXPECT_TRUE(realigns(layer_norm({8192, 257})));
  EXPECT_FALSE(realigns(layer_norm({8192, 256})));
  EXPECT_FALSE(realigns(layer_norm({8192, 257, DataType::f32, true}))) << "a gap after each three rows";
  EXPECT_TRUE(realigns(layer_norm({16384, 257, DataType::bf16})));
  EXPECT_FALSE(realigns(layer_norm({65536, 61, DataType::bf16}))) << "less than a chunk of 16 bits";
  EXPECT_FALSE(realigns(backward({8192, 257}))) << "column sums";
  EXPECT_FALSE(realigns(layer_norm({262144, 15}))) << "less than a vector";
}

// Whole lines justify the masked ends of the walk only in rows of many lines.
TEST(RowsOfFewLines, AreNotStreamed) {
  const auto streams = [](const Kernel& kernel) {
    return !cpu::choose_schedule(kernel, epyc().machine, true).streamed.empty();
  };
  EXPECT_FALSE(streams(layer_norm({524288, 33, DataType::bf16})));
  EXPECT_TRUE(streams(layer_norm({131072, 257, DataType::bf16})));
  EXPECT_TRUE(streams(layer_norm({131072, 64, DataType::bf16}))) << "whole lines";
  EXPECT_FALSE(streams(backward({524288, 17})));
  EXPECT_TRUE(streams(backward({16384, 1021})));
}

// Rows of a few lines, shorter than a chunk of 64 elements: the sums show that no element is processed twice.
TEST(RowsOfFewLines, OfDoublesGiveTheInterpretersBits) {
  const cpu::Machine machine = to_run_here(epyc().machine);
  for (const int64_t size : {33, 47, 57, 63}) {
    Rows k("scaled_with_sums", {(int64_t{4} << 20) / size / 8 + 3, size, DataType::f64});
    const Value x = k.src("src");
    k.out(x * k.weight("gamma"), "dst");
    k.column(x, "sums");
    const Kernel kernel = k.finish();
    const cpu::Schedule schedule = schedule_with(kernel, machine, [](const cpu::Schedule& s) { return s.follows_lines; });
    expect_interpreter_bits(kernel, 2, machine, &schedule);
  }
}

}  // namespace
}  // namespace lamina::testing
