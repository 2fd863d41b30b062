// CumSum: each row is one chain of additions, in f64 for floats, so the sums do not depend on threads.
#include "backends/cpu/library/along_axis/along_axis_ops.h"

#include <algorithm>
#include <string>
#include <type_traits>

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

// Load(memory, at) returns an element as Sum, and Store(memory, at, sum) rounds a sum to an element.
template <typename Sum, typename Load, typename Store>
void sum_row(const Row& row, bool exclusive, const Load& load, const Store& store) {
  Sum sum = 0;
  for (int64_t i = 0; i < row.count; ++i) {
    const Sum before = sum;
    sum += load(row.src_memory, row.src + i * row.src_step);
    store(row.dst_memory, row.dst + i * row.dst_step, exclusive ? before : sum);
  }
}

// Sums of integers wrap around.
template <typename Element>
void sum_elements(const Row& row, bool exclusive) {
  using Sum = std::conditional_t<std::is_floating_point_v<Element>, double, uint64_t>;
  sum_row<Sum>(
      row, exclusive, [](const void* memory, int64_t at) { return static_cast<Sum>(load_element<Element>(memory, at)); },
      [](void* memory, int64_t at, Sum sum) { store_element(memory, at, static_cast<Element>(sum)); });
}

template <DataType dtype>
void sum_narrow_floats(const Row& row, bool exclusive) {
  sum_row<double>(
      row, exclusive, [](const void* memory, int64_t at) { return load_as_double(dtype, memory, at); },
      [](void* memory, int64_t at, double sum) { store_from_double(dtype, memory, at, sum); });
}

using SumRow = void (*)(const Row& row, bool exclusive);

SumRow sums_of(DataType dtype) {
  switch (dtype) {
    case DataType::f32: return sum_elements<float>;
    case DataType::f64: return sum_elements<double>;
    case DataType::bf16: return sum_narrow_floats<DataType::bf16>;
    case DataType::f16: return sum_narrow_floats<DataType::f16>;
    default: return visit_integer_type(dtype, [](auto of_type) -> SumRow { return sum_elements<decltype(of_type)>; });
  }
}

class CumSum final : public Primitive {
 public:
  CumSum(const kernel::LibraryStep& step, const PrimitiveUse& use)
      : axis_(wrap_axis(step.op.attribute<int64_t>("axis"), step.inputs[0].rank())),
        extent_((*step.inputs[0].shape)[static_cast<size_t>(axis_)]),
        exclusive_(step.op.attribute<bool>("exclusive")),
        reverse_(step.op.attribute<bool>("reverse")),
        rows_({&step.inputs[0], &step.outputs[0]}, axis_),
        sum_(sums_of(step.inputs[0].dtype)),
        threads_(use.threads) {}

  const std::string& name() const override { return name_; }

  void run(std::span<void* const> args, void* /*scratch*/, const Executor& executor) const override {
    const int64_t rows_each = AxisRows::rows_per_unit(extent_);
    for_each_tile((rows_.count() + rows_each - 1) / rows_each, executor.at_most(threads_), [&](int64_t unit, int) {
      for (int64_t row = unit * rows_each; row < std::min((unit + 1) * rows_each, rows_.count()); ++row)
        sum_(row_of(args, row), exclusive_);
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
  SumRow sum_;
  int threads_;
  std::string name_ = "running sums";
};

}  // namespace

std::unique_ptr<const Primitive> compile_cum_sum(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  return std::make_unique<CumSum>(step, use);
}

}  // namespace lamina::cpu
