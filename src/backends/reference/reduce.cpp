// Reductions over axes, given by the attribute or, if it is empty, by the second input. The result over no elements is the
// neutral element: 0 for sums, 1 for the product, -inf and inf for maximum and minimum. The mean of no elements is NaN.
#include <cmath>
#include <limits>

#include "backends/reference/op_run.h"
#include "interface/op_schema.h"
#include "interface/status.h"

namespace lamina::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<bool> reduced_dims(const OpRun& run, const Tensor& src) {
  std::vector<int64_t> axes = run.attribute<std::vector<int64_t>>("axes");
  if (const Tensor* given = run.in_or_null("axes"))
    for (const double axis : given->values) axes.push_back(static_cast<int64_t>(axis));
  std::vector<bool> reduced(src.shape.size(), false);
  for (const int64_t axis : axes) {
    const int dim = wrap_axis(axis, src.rank());
    if (dim < 0 || dim >= src.rank())
      throw Error(Status::invalid_shape,
                  join(describe(run.op()), ": input axes holds ", axis, ", allowed is ", -src.rank(), "..", src.rank() - 1));
    reduced[static_cast<size_t>(dim)] = true;
  }
  return reduced;
}

// Some of the dims of src, with their strides.
struct SomeDims {
  Dims extents, strides;
};

SomeDims some_dims(const Tensor& src, const std::vector<bool>& reduced, bool which) {
  const Dims dense = dense_strides(src.shape);
  SomeDims dims;
  for (size_t dim = 0; dim < reduced.size(); ++dim) {
    if (reduced[dim] != which) continue;
    dims.extents.push_back(src.shape[dim]);
    dims.strides.push_back(dense[dim]);
  }
  return dims;
}

// dst = step(dst, element) over all elements, starting with `neutral`. Returns the number of elements per result.
template <typename Step>
double accumulate(const OpRun& run, double neutral, Step step) {
  const Tensor& src = run.in("src");
  const std::vector<bool> reduced = reduced_dims(run, src);
  const SomeDims kept = some_dims(src, reduced, false), summed = some_dims(src, reduced, true);
  Tensor& dst = run.out("dst");
  for_each_offset_parallel<2>(kept.extents, {dense_strides(kept.extents), kept.strides}, [&](const auto& at) {
    long double result = neutral;  // a double would add errors that f64 results do not have
    for_each_offset<1>(summed.extents, {summed.strides},
                       [&](const auto& inner) { result = step(result, src[at[1] + inner[0]]); });
    dst[at[0]] = static_cast<double>(result);
  });
  return static_cast<double>(count_of(summed.extents, 0, summed.extents.size()));
}

void reduce_sum(const OpRun& run) {
  accumulate(run, 0, [](long double total, double x) { return total + x; });
}

void reduce_mean(const OpRun& run) {
  const double count = accumulate(run, 0, [](long double total, double x) { return total + x; });
  for (double& value : run.result("dst").values) value /= count;
}

void reduce_l1(const OpRun& run) {
  accumulate(run, 0, [](long double total, double x) { return total + std::fabs(x); });
}

void reduce_l2(const OpRun& run) {
  accumulate(run, 0, [](long double total, double x) { return total + x * x; });
  for (double& value : run.result("dst").values) value = std::sqrt(value);
}

// The product of the factors above 1 alone, or of those below 1 alone, may be the value on the way in f32, where factors are
// multiplied in another order: if one of both is out of range, an infinity may meet a zero.
void mark_out_of_range(const OpRun& run) {
  constexpr double kMost = std::numeric_limits<float>::max_exponent - 1, kLeast = std::numeric_limits<float>::min_exponent - 1;
  Tensor& dst = run.result("dst");
  const auto extreme_log = [&](auto keeps) {
    accumulate(run, 0, [=](long double total, double x) {
      const double log = std::log2(std::fabs(x));
      return std::isfinite(log) && keeps(log) ? total + log : total;
    });
    return dst.values;
  };
  const std::vector<double> result = dst.values, above = extreme_log([](double log) { return log > 0; }),
                            below = extreme_log([](double log) { return log < 0; });
  dst.values = result;
  dst.out_of_range.resize(result.size());
  for (size_t i = 0; i < result.size(); ++i) dst.out_of_range[i] = above[i] >= kMost || below[i] <= kLeast;
}

void reduce_prod(const OpRun& run) {
  accumulate(run, 1, [](long double total, double x) { return total * x; });
  if (run.in("src").dtype != DataType::f64) mark_out_of_range(run);
}

// A NaN operand is returned.
void reduce_max(const OpRun& run) {
  accumulate(run, -kInfinity,
             [](long double best, double x) { return x > best || std::isnan(x) ? x : static_cast<double>(best); });
}

void reduce_min(const OpRun& run) {
  accumulate(run, kInfinity,
             [](long double best, double x) { return x < best || std::isnan(x) ? x : static_cast<double>(best); });
}

}  // namespace

Evaluators reduce_evaluators() {
  return {{OpKind::ReduceL1, reduce_l1},     {OpKind::ReduceL2, reduce_l2},   {OpKind::ReduceMax, reduce_max},
          {OpKind::ReduceMean, reduce_mean}, {OpKind::ReduceMin, reduce_min}, {OpKind::ReduceProd, reduce_prod},
          {OpKind::ReduceSum, reduce_sum}};
}

}  // namespace lamina::reference
