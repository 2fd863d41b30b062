// CumSum and CumProd: each row is one chain of operations, in f64 for floats, so the results do not depend on threads.
#include "backends/cpu/dispatch/along_axis_steps.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "backends/cpu/dispatch/axis_rows.h"
#include "backends/cpu/dispatch/program_checks.h"
#include "backends/cpu/dispatch/step_kinds.h"
#include "backends/cpu/threads/executor.h"
#include "interface/element.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

// A row: `count` elements, the first of which is at `src` and `dst`.
struct Row {
  const void* src_memory;
  void* dst_memory;
  int64_t src, src_step, dst, dst_step, count;
};

struct Sum {
  static constexpr int neutral = 0;
  template <typename T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Product {
  static constexpr int neutral = 1;
  template <typename T>
  T operator()(T a, T b) const {
    return a * b;
  }
};

// Load(memory, at) returns an element as Value, and Store(memory, at, value) rounds a value to an element.
template <typename Combine, typename Value, typename Load, typename Store>
void run_row(const Row& row, bool exclusive, const Load& load, const Store& store) {
  Value value = Combine::neutral;
  for (int64_t i = 0; i < row.count; ++i) {
    const Value before = value;
    value = Combine()(value, load(row.src_memory, row.src + i * row.src_step));
    store(row.dst_memory, row.dst + i * row.dst_step, exclusive ? before : value);
  }
}

// Integers wrap around.
template <typename Combine, typename Element>
void run_elements(const Row& row, bool exclusive) {
  using Value = std::conditional_t<std::is_floating_point_v<Element>, double, uint64_t>;
  run_row<Combine, Value>(
      row, exclusive, [](const void* memory, int64_t at) { return static_cast<Value>(load_element<Element>(memory, at)); },
      [](void* memory, int64_t at, Value value) { store_element(memory, at, static_cast<Element>(value)); });
}

template <typename Combine, DataType dtype>
void run_narrow_floats(const Row& row, bool exclusive) {
  run_row<Combine, double>(
      row, exclusive, [](const void* memory, int64_t at) { return load_as_double(dtype, memory, at); },
      [](void* memory, int64_t at, double value) { store_from_double(dtype, memory, at, value); });
}

using RunRow = void (*)(const Row& row, bool exclusive);

template <typename Combine>
RunRow rows_of(DataType dtype) {
  switch (dtype) {
    case DataType::f32: return run_elements<Combine, float>;
    case DataType::f64: return run_elements<Combine, double>;
    case DataType::bf16: return run_narrow_floats<Combine, DataType::bf16>;
    case DataType::f16: return run_narrow_floats<Combine, DataType::f16>;
    default: return visit_integer_type(dtype, [](auto of_type) -> RunRow { return run_elements<Combine, decltype(of_type)>; });
  }
}

RunRow rows_of(const RunningProgram& program) {
  return program.combine == RunningProgram::Combine::sum ? rows_of<Sum>(program.dtype) : rows_of<Product>(program.dtype);
}

class Running final : public Primitive {
 public:
  explicit Running(RunningProgram program)
      : program_(std::move(program)),
        rows_(program_.rows),
        run_row_(rows_of(program_)),
        name_(program_.combine == RunningProgram::Combine::sum ? "running sums" : "running products") {}

  const std::string& name() const override { return name_; }

  void write(ProgramWriter& to) const override {
    to.write(StepKind::running);
    to.write(program_);
  }
  void run(std::span<void* const> args, void* /*scratch*/, const Executor& executor) const override {
    const int64_t rows_each = AxisRows::rows_per_unit(program_.extent);
    for_each_tile((rows_.count() + rows_each - 1) / rows_each, executor.at_most(program_.threads), [&](int64_t unit, int) {
      for (int64_t row = unit * rows_each; row < std::min((unit + 1) * rows_each, rows_.count()); ++row)
        run_row_(row_of(args, row), program_.exclusive);
    });
  }

 private:
  Row row_of(std::span<void* const> args, int64_t row) const {
    const auto [src, src_step] = rows_.walk(0, row, program_.extent, program_.reverse);
    const auto [dst, dst_step] = rows_.walk(1, row, program_.extent, program_.reverse);
    return {args[0], args[1], src, src_step, dst, dst_step, program_.extent};
  }

  const RunningProgram program_;
  AxisRows rows_;
  RunRow run_row_;
  std::string name_;
};

}  // namespace

std::unique_ptr<const Primitive> running_step(RunningProgram program) {
  return std::make_unique<const Running>(std::move(program));
}

std::unique_ptr<const Primitive> read_running(ProgramReader& from, size_t args) {
  auto program = from.get<RunningProgram>();
  check(program);
  require(args == 2, "the args of a running sum or product");
  return running_step(std::move(program));
}

}  // namespace lamina::cpu
