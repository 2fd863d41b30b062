// Linear recurrences and their gradients: each row is one chain of operations, so the results do not depend on threads. Rows
// next to each other are computed together, because their chains do not wait for each other.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "backends/cpu/dispatch/along_axis_steps.h"
#include "backends/cpu/dispatch/axis_rows.h"
#include "backends/cpu/dispatch/program_checks.h"
#include "backends/cpu/dispatch/step_kinds.h"
#include "backends/cpu/threads/executor.h"
#include "interface/element.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

constexpr int64_t kMostRows = 16;  // of a block
constexpr size_t kMostTensors = 5;

// Rows next to each other. Places are in elements.
struct Block {
  struct Tensor {
    void* memory;
    int64_t first, step, row_step;  // of the first row, the place of its first element; to the next element; to the next row
  };
  std::array<Tensor, kMostTensors> tensors;
  int64_t rows, count;
  bool is_full;  // kMostRows rows, which are neighbours in all tensors
};

template <typename Element>
struct Stored {
  using Value = Element;
  static constexpr bool as_they_are = true;
  static Value load(const void* memory, int64_t at) { return load_element<Element>(memory, at); }
  static void store(void* memory, int64_t at, Value value) { store_element(memory, at, value); }
};
template <DataType dtype>
struct StoredNarrow {
  using Value = float;
  static constexpr bool as_they_are = false;
  static Value load(const void* memory, int64_t at) { return static_cast<float>(load_as_double(dtype, memory, at)); }
  static void store(void* memory, int64_t at, Value value) { store_from_double(dtype, memory, at, static_cast<double>(value)); }
};

template <typename Type>
using Values = std::array<typename Type::Value, kMostRows>;  // an element of each row

template <typename Type>
Values<Type> load(const Block& block, size_t tensor, int64_t i) {
  const auto& [memory, first, step, row_step] = block.tensors[tensor];
  Values<Type> values{};
  const int64_t at = first + i * step;
  if (Type::as_they_are && block.is_full) {
    std::memcpy(values.data(), static_cast<const typename Type::Value*>(memory) + at, sizeof(values));
  } else {
    for (int64_t row = 0; row < block.rows; ++row) values[static_cast<size_t>(row)] = Type::load(memory, at + row * row_step);
  }
  return values;
}

template <typename Type>
void store(const Block& block, size_t tensor, int64_t i, const Values<Type>& values) {
  const auto& [memory, first, step, row_step] = block.tensors[tensor];
  const int64_t at = first + i * step;
  if (Type::as_they_are && block.is_full) {
    std::memcpy(static_cast<typename Type::Value*>(memory) + at, values.data(), sizeof(values));
  } else {
    for (int64_t row = 0; row < block.rows; ++row) Type::store(memory, at + row * row_step, values[static_cast<size_t>(row)]);
  }
}

// Tensors: factors, src, dst.
template <typename Type>
void run_forward(const Block& block) {
  Values<Type> state{};
  for (int64_t i = 0; i < block.count; ++i) {
    const Values<Type> factors = load<Type>(block, 0, i), src = load<Type>(block, 1, i);
    for (size_t row = 0; row < kMostRows; ++row) state[row] = factors[row] * state[row] + src[row];
    store<Type>(block, 2, i, state);
  }
}

// Tensors: diff_dst, factors, dst, diff_factors, diff_src. From the end of the recurrence to its beginning.
template <typename Type>
void run_backward(const Block& block) {
  Values<Type> carried{};
  for (int64_t i = block.count; i-- > 0;) {
    const Values<Type> diff_dst = load<Type>(block, 0, i), factors = load<Type>(block, 1, i);
    const Values<Type> before = i > 0 ? load<Type>(block, 2, i - 1) : Values<Type>{};
    Values<Type> diff_src, diff_factors;
    for (size_t row = 0; row < kMostRows; ++row) {
      diff_src[row] = diff_dst[row] + carried[row];
      diff_factors[row] = diff_src[row] * before[row];
      carried[row] = factors[row] * diff_src[row];
    }
    store<Type>(block, 3, i, diff_factors);
    store<Type>(block, 4, i, diff_src);
  }
}

using RunBlock = void (*)(const Block& block);

template <typename Type>
RunBlock blocks_of(bool is_backward) {
  return is_backward ? run_backward<Type> : run_forward<Type>;
}

RunBlock blocks_of(const RecurrenceProgram& program) {
  switch (program.dtype) {
    case DataType::f64: return blocks_of<Stored<double>>(program.is_backward);
    case DataType::bf16: return blocks_of<StoredNarrow<DataType::bf16>>(program.is_backward);
    case DataType::f16: return blocks_of<StoredNarrow<DataType::f16>>(program.is_backward);
    default: return blocks_of<Stored<float>>(program.is_backward);
  }
}

class Recurrence final : public Primitive {
 public:
  explicit Recurrence(RecurrenceProgram program)
      : program_(std::move(program)),
        rows_(program_.rows),
        run_block_(blocks_of(program_)),
        name_(program_.is_backward ? "gradient of a linear recurrence" : "linear recurrence"),
        line_(program_.rows.shape.empty() ? 1 : program_.rows.shape.back()),
        are_neighbours_(true) {
    for (const Dims& strides : program_.rows.strides)
      are_neighbours_ = are_neighbours_ && strides.size() > 1 && strides[strides.size() - 2] == 1;
  }

  const std::string& name() const override { return name_; }

  void write(ProgramWriter& to) const override {
    to.write(StepKind::recurrence);
    to.write(program_);
  }
  void run(std::span<void* const> args, void* /*scratch*/, const Executor& executor) const override {
    if (rows_.count() == 0) return;
    const int64_t blocks_of_line = (line_ + kMostRows - 1) / kMostRows, blocks = rows_.count() / line_ * blocks_of_line;
    const int64_t blocks_each = AxisRows::rows_per_unit(program_.extent * kMostRows);
    for_each_tile((blocks + blocks_each - 1) / blocks_each, executor.at_most(program_.threads), [&](int64_t unit, int) {
      for (int64_t block = unit * blocks_each; block < std::min((unit + 1) * blocks_each, blocks); ++block)
        run_block_(block_of(args, block / blocks_of_line * line_, block % blocks_of_line * kMostRows));
    });
  }

 private:
  // The rows from `first` of the line on: the rows that differ in the last of the other axes only.
  Block block_of(std::span<void* const> args, int64_t line, int64_t first) const {
    Block block{.tensors = {}, .rows = std::min(kMostRows, line_ - first), .count = program_.extent, .is_full = false};
    block.is_full = are_neighbours_ && block.rows == kMostRows;
    for (size_t t = 0; t < program_.rows.strides.size(); ++t) {
      const Dims& strides = program_.rows.strides[t];
      const auto [begin, step] = rows_.walk(t, line + first, program_.extent, program_.reverse);
      block.tensors[t] = {args[t], begin, step, strides.size() > 1 ? strides[strides.size() - 2] : 0};
    }
    return block;
  }

  const RecurrenceProgram program_;
  AxisRows rows_;
  RunBlock run_block_;
  std::string name_;
  int64_t line_;         // rows that differ in the last of the other axes only
  bool are_neighbours_;  // these rows, in all tensors
};

}  // namespace

std::unique_ptr<const Primitive> recurrence_step(RecurrenceProgram program) {
  return std::make_unique<const Recurrence>(std::move(program));
}

std::unique_ptr<const Primitive> read_recurrence(ProgramReader& from, size_t args) {
  auto program = from.get<RecurrenceProgram>();
  check(program);
  require(args == program.rows.strides.size(), "the args of a linear recurrence");
  return recurrence_step(std::move(program));
}

}  // namespace lamina::cpu
