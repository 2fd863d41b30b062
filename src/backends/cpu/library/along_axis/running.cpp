// CumSum and CumProd: each row is one chain of operations, in f64 for floats, so the results do not depend on threads.
#include "backends/cpu/library/along_axis/along_axis_ops.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "backends/cpu/library/along_axis/axis_rows.h"
#include "backends/cpu/threads/executor.h"
#include "interface/element.h"
#include "interface/op_schema.h"
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

class Running final : public Primitive {
 public:
  Running(const kernel::LibraryStep& step, const PrimitiveUse& use, RunRow run_row, std::string name)
      : axis_(wrap_axis(step.op.attribute<int64_t>("axis"), step.inputs[0].rank())),
        extent_((*step.inputs[0].shape)[static_cast<size_t>(axis_)]),
        exclusive_(step.op.attribute<bool>("exclusive")),
        reverse_(step.op.attribute<bool>("reverse")),
        rows_({&step.inputs[0], &step.outputs[0]}, axis_),
        run_row_(run_row),
        threads_(use.threads),
        name_(std::move(name)) {}

  const std::string& name() const override { return name_; }

  void run(std::span<void* const> args, void* /*scratch*/, const Executor& executor) const override {
    const int64_t rows_each = AxisRows::rows_per_unit(extent_);
    for_each_tile((rows_.count() + rows_each - 1) / rows_each, executor.at_most(threads_), [&](int64_t unit, int) {
      for (int64_t row = unit * rows_each; row < std::min((unit + 1) * rows_each, rows_.count()); ++row)
        run_row_(row_of(args, row), exclusive_);
    });
  }

 private:
  Row row_of(std::span<void* const> args, int64_t row) const {
    Row found{args[0], args[1], rows_.begin(0, row), rows_.step(0), rows_.begin(1, row), rows_.step(1), extent_};
    if (!reverse_) return found;
    found.src += (extent_ - 1) * found.src_step;
    found.dst += (extent_ - 1) * found.dst_step;
    found.src_step = -found.src_step;
    found.dst_step = -found.dst_step;
    return found;
  }

  int axis_;
  int64_t extent_;
  bool exclusive_, reverse_;
  AxisRows rows_;  // of src and dst
  RunRow run_row_;
  int threads_;
  std::string name_;
};

}  // namespace

std::unique_ptr<const Primitive> compile_cum_sum(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  return std::make_unique<Running>(step, use, rows_of<Sum>(step.inputs[0].dtype), "running sums");
}

std::unique_ptr<const Primitive> compile_cum_prod(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  return std::make_unique<Running>(step, use, rows_of<Product>(step.inputs[0].dtype), "running products");
}

}  // namespace lamina::cpu
