// TopK, CumSum, CumProd and linear recurrences.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "backends/reference/op_run.h"
#include "backends/reference/rows.h"
#include "interface/op_schema.h"

namespace lamina::reference {
namespace {

Rows rows_along_axis(const OpRun& run, const Dims& shape) {
  return axis_rows(shape, static_cast<size_t>(wrap_axis(run.attribute<int64_t>("axis"), static_cast<int>(shape.size()))));
}

// Whether a comes before b in ascending order. NaN is the largest value.
bool is_less(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

void top_k(const OpRun& run) {
  const Tensor& src = run.in("src");
  const bool largest = run.attribute<bool>("largest"), is_long = is_long_integer(src.dtype),
             is_signed = is_signed_integer(src.dtype);
  Tensor* const values = run.wants("dst") ? &run.out("dst") : nullptr;
  Tensor* const indices = run.wants("indices") ? &run.out("indices") : nullptr;
  const Rows rows = rows_along_axis(run, src.shape);
  if (values != nullptr && is_long) values->integers.resize(values->values.size());
  if (indices != nullptr) indices->integers.resize(indices->values.size());
  const auto comes_before = [&](int64_t a, int64_t b) {
    if (largest) std::swap(a, b);
    const auto x = is_long ? integer_at(src, a) : 0, y = is_long ? integer_at(src, b) : 0;
    if (is_long) return is_signed ? static_cast<int64_t>(x) < static_cast<int64_t>(y) : x < y;
    return is_less(src[a], src[b]);
  };
  const Rows sorted{rows.count, run.attribute<int64_t>("k"), rows.inner};
  std::vector<int64_t> order(static_cast<size_t>(rows.size));
  for (int64_t row = 0; row < rows.count; ++row) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return comes_before(rows.at(row, a), rows.at(row, b)); });
    for (int64_t i = 0; i < sorted.size; ++i) {
      const int64_t from = order[static_cast<size_t>(i)], to = sorted.at(row, i);
      if (values != nullptr) (*values)[to] = src[rows.at(row, from)];
      if (values != nullptr && is_long)
        values->integers[static_cast<size_t>(to)] = src.integers[static_cast<size_t>(rows.at(row, from))];
      if (indices == nullptr) continue;
      (*indices)[to] = static_cast<double>(from);
      indices->integers[static_cast<size_t>(to)] = from;
    }
  }
}

// Calls add(element, is_first) for the elements of each row in the order in which they are combined.
template <typename Add>
void for_each_in_order(const OpRun& run, const Dims& shape, const Add& add) {
  const bool reverse = run.attribute<bool>("reverse");
  const Rows rows = rows_along_axis(run, shape);
  for (int64_t row = 0; row < rows.count; ++row) {
    for (int64_t i = 0; i < rows.size; ++i) add(rows.at(row, reverse ? rows.size - 1 - i : i), i == 0);
  }
}

// Combine is std::plus or std::multiplies, and `neutral` its neutral element.
template <typename Combine, int neutral>
void running(const OpRun& run) {
  const Tensor& src = run.in("src");
  Tensor& dst = run.out("dst");
  const auto exclusive = run.attribute<bool>("exclusive");
  const Combine combine;
  if (is_integer(src.dtype)) {
    prepare_integers(dst);
    uint64_t value = neutral;
    return for_each_in_order(run, src.shape, [&](int64_t at, bool is_first) {
      const uint64_t before = is_first ? neutral : value;
      value = combine(before, integer_at(src, at));
      set_integer(dst, at, exclusive ? before : value);
    });
  }
  double value = neutral;
  for_each_in_order(run, src.shape, [&](int64_t at, bool is_first) {
    const double before = is_first ? neutral : value;
    value = combine(before, src[at]);
    dst[at] = exclusive ? before : value;
  });
}

// Calls visit(place, place of the element before or -1) for the elements of each row in the order of the recurrence, or against
// it.
template <typename Visit>
void for_each_state(const OpRun& run, const Dims& shape, bool against, const Visit& visit) {
  const bool from_the_end = run.attribute<bool>("reverse") != against;
  const Rows rows = rows_along_axis(run, shape);
  const int64_t before = run.attribute<bool>("reverse") ? 1 : -1;
  for (int64_t row = 0; row < rows.count; ++row) {
    for (int64_t k = 0; k < rows.size; ++k) {
      const int64_t i = from_the_end ? rows.size - 1 - k : k, j = i + before;
      visit(rows.at(row, i), j >= 0 && j < rows.size ? rows.at(row, j) : int64_t{-1}, k == 0);
    }
  }
}

void linear_recurrence(const OpRun& run) {
  const Tensor &factors = run.in("factors"), &src = run.in("src");
  Tensor& dst = run.out("dst");
  double state = 0;
  for_each_state(run, src.shape, false, [&](int64_t at, int64_t, bool is_first) {
    state = factors[at] * (is_first ? 0 : state) + src[at];
    dst[at] = state;
  });
}

void linear_recurrence_backward(const OpRun& run) {
  const Tensor &diff_dst = run.in("diff_dst"), &factors = run.in("factors"), &dst = run.in("dst");
  Tensor &diff_factors = run.out("diff_factors"), &diff_src = run.out("diff_src");
  double carried = 0;
  for_each_state(run, dst.shape, true, [&](int64_t at, int64_t before, bool is_first) {
    const double gradient = diff_dst[at] + (is_first ? 0 : carried);
    diff_factors[at] = gradient * (before < 0 ? 0 : dst[before]);
    diff_src[at] = gradient;
    carried = factors[at] * gradient;
  });
}

}  // namespace

Evaluators along_axis_evaluators() {
  return {{OpKind::TopK, top_k},
          {OpKind::CumSum, running<std::plus<>, 0>},
          {OpKind::CumProd, running<std::multiplies<>, 1>},
          {OpKind::LinearRecurrence, linear_recurrence},
          {OpKind::LinearRecurrenceBackward, linear_recurrence_backward}};
}

}  // namespace lamina::reference
