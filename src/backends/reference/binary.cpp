// Ops of two or three tensors with NumPy broadcasting, and the bias ops.
#include <algorithm>
#include <cmath>
#include <functional>

#include "backends/reference/op_run.h"

namespace lamina::reference {
namespace {

// dst[i] = formula(a[i], b[i]), both broadcast to dst.
template <typename Formula>
void map(const OpRun& run, Formula formula) {
  const Tensor& a = run.in(0);
  const Tensor& b = run.in(1);
  Tensor& dst = run.out(0);
  const Dims from_a = broadcast_strides(a.shape, dst.shape), from_b = broadcast_strides(b.shape, dst.shape);
  for_each_offset_parallel<3>(dst.shape, {dense_strides(dst.shape), from_a, from_b},
                              [&](const auto& at) { dst[at[0]] = formula(a[at[1]], b[at[2]]); });
}

template <double (*Formula)(double, double)>
void map_by(const OpRun& run) {
  map(run, Formula);
}

// Whether both operands and the result are integers of one type, which is computed in integers: double cannot represent all
// of 64 bits, and integers wrap around.
bool are_integers(const OpRun& run) {
  return is_integer(run.in(0).dtype) && run.in(0).dtype == run.in(1).dtype && run.in(0).dtype == run.out(0).dtype;
}

// The same of integers, given as their bits, for formulas that depend on the type.
template <uint64_t (*Formula)(DataType, uint64_t, uint64_t)>
void map_integers(const OpRun& run) {
  const Tensor &a = run.in(0), &b = run.in(1);
  Tensor& dst = run.out(0);
  prepare_integers(dst);
  const Dims from_a = broadcast_strides(a.shape, dst.shape), from_b = broadcast_strides(b.shape, dst.shape);
  for_each_offset_parallel<3>(dst.shape, {dense_strides(dst.shape), from_a, from_b}, [&](const auto& at) {
    set_integer(dst, at[0], Formula(a.dtype, integer_at(a, at[1]), integer_at(b, at[2])));
  });
}

template <double (*Formula)(double, double), uint64_t (*OfIntegers)(DataType, uint64_t, uint64_t)>
void arithmetic(const OpRun& run) {
  if (are_integers(run))
    map_integers<OfIntegers>(run);
  else
    map(run, Formula);
}

// Whether Compare holds for two long integers of this type, given as their bits.
template <typename Compare>
bool compare_long(DataType dtype, uint64_t a, uint64_t b) {
  return is_signed_integer(dtype) ? Compare()(static_cast<int64_t>(a), static_cast<int64_t>(b)) : Compare()(a, b);
}

template <typename Compare>
void compare(const OpRun& run) {
  const Tensor &a = run.in(0), &b = run.in(1);
  if (!is_long_integer(a.dtype)) return map(run, [](double x, double y) { return Compare()(x, y) ? 1.0 : 0.0; });
  Tensor& dst = run.out(0);
  const Dims from_a = broadcast_strides(a.shape, dst.shape), from_b = broadcast_strides(b.shape, dst.shape);
  for_each_offset_parallel<3>(dst.shape, {dense_strides(dst.shape), from_a, from_b}, [&](const auto& at) {
    dst[at[0]] = compare_long<Compare>(a.dtype, integer_at(a, at[1]), integer_at(b, at[2])) ? 1 : 0;
  });
}

// The first of two values where Compare holds, else the second.
template <double (*Formula)(double, double), typename Compare>
void one_of_both(const OpRun& run) {
  const Tensor &a = run.in(0), &b = run.in(1);
  if (!is_long_integer(a.dtype)) return map(run, Formula);
  Tensor& dst = run.out(0);
  prepare_integers(dst);
  const Dims from_a = broadcast_strides(a.shape, dst.shape), from_b = broadcast_strides(b.shape, dst.shape);
  for_each_offset_parallel<3>(dst.shape, {dense_strides(dst.shape), from_a, from_b}, [&](const auto& at) {
    const uint64_t x = integer_at(a, at[1]), y = integer_at(b, at[2]);
    set_integer(dst, at[0], compare_long<Compare>(a.dtype, x, y) ? x : y);
  });
}

uint64_t integer_sum(DataType, uint64_t a, uint64_t b) { return a + b; }
uint64_t integer_difference(DataType, uint64_t a, uint64_t b) { return a - b; }
uint64_t integer_product(DataType, uint64_t a, uint64_t b) { return a * b; }
uint64_t shared_bits(DataType, uint64_t a, uint64_t b) { return a & b; }
uint64_t all_bits(DataType, uint64_t a, uint64_t b) { return a | b; }
uint64_t differing_bits(DataType, uint64_t a, uint64_t b) { return a ^ b; }

// Without the fraction. The one overflow wraps around.
uint64_t integer_quotient(DataType dtype, uint64_t a, uint64_t b) {
  if (b == 0) return 0;
  if (!is_signed_integer(dtype)) return a / b;
  if (b == ~uint64_t{0}) return 0 - a;
  return static_cast<uint64_t>(static_cast<int64_t>(a) / static_cast<int64_t>(b));
}

uint64_t shifted_left(DataType dtype, uint64_t a, uint64_t count) {
  return count < static_cast<uint64_t>(bits_of(dtype)) ? a << count : 0;
}

uint64_t shifted_right(DataType dtype, uint64_t a, uint64_t count) {
  const uint64_t moved = std::min<uint64_t>(count, 63);
  if (is_signed_integer(dtype)) return static_cast<uint64_t>(static_cast<int64_t>(a) >> moved);
  return count < static_cast<uint64_t>(bits_of(dtype)) ? a >> count : 0;
}
double logical_and(double a, double b) { return a != 0 && b != 0 ? 1 : 0; }
double logical_or(double a, double b) { return a != 0 || b != 0 ? 1 : 0; }

void logical_not(const OpRun& run) {
  const Tensor& src = run.in("src");
  Tensor& dst = run.out("dst");
  parallel_elements(src.size(), [&](int64_t i) { dst[i] = src[i] != 0 ? 0 : 1; });
}

double sum(double a, double b) { return a + b; }
double difference(double a, double b) { return a - b; }
double product(double a, double b) { return a * b; }
double quotient(double a, double b) { return a / b; }
// A NaN operand is returned.
double maximum(double a, double b) { return a > b || std::isnan(a) ? a : b; }
double minimum(double a, double b) { return a < b || std::isnan(a) ? a : b; }
double angle(double y, double x) { return std::atan2(y, x); }
double remainder_of(double a, double b) { return std::fmod(a, b); }
double squared_difference(double a, double b) { return (a - b) * (a - b); }

void select(const OpRun& run) {
  const Tensor& cond = run.in("cond");
  const Tensor& yes = run.in("src_0");
  const Tensor& no = run.in("src_1");
  Tensor& dst = run.out("dst");
  const Dims from_cond = broadcast_strides(cond.shape, dst.shape);
  const Dims from_yes = broadcast_strides(yes.shape, dst.shape), from_no = broadcast_strides(no.shape, dst.shape);
  prepare_integers(dst);
  for_each_offset_parallel<4>(dst.shape, {dense_strides(dst.shape), from_cond, from_yes, from_no}, [&](const auto& at) {
    const bool first = cond[at[1]] != 0;
    if (is_long_integer(dst.dtype))
      set_integer(dst, at[0], first ? integer_at(yes, at[2]) : integer_at(no, at[3]));
    else
      dst[at[0]] = first ? yes[at[2]] : no[at[3]];
  });
}

void bias_add(const OpRun& run) {
  const Tensor& src = run.in("src");
  const Tensor& bias = run.in("bias");
  const size_t dim = channel_dim(run, src.rank());
  const int64_t inner = count_of(src.shape, dim + 1, src.shape.size());
  Tensor& dst = run.out("dst");
  parallel_elements(src.size(), [&](int64_t i) { dst[i] = src[i] + bias[i / inner % src.shape[dim]]; });
}

void bias_add_backward(const OpRun& run) {
  const Tensor& diff_dst = run.in("diff_dst");
  const size_t dim = channel_dim(run, diff_dst.rank());
  const int64_t inner = count_of(diff_dst.shape, dim + 1, diff_dst.shape.size());
  Tensor& diff_bias = run.out("diff_bias");
  for (int64_t i = 0; i < diff_dst.size(); ++i) diff_bias[i / inner % diff_dst.shape[dim]] += diff_dst[i];
}

}  // namespace

Evaluators binary_evaluators() {
  return {{OpKind::Add, arithmetic<sum, integer_sum>},
          {OpKind::Subtract, arithmetic<difference, integer_difference>},
          {OpKind::Multiply, arithmetic<product, integer_product>},
          {OpKind::Divide, arithmetic<quotient, integer_quotient>},
          {OpKind::Maximum, one_of_both<maximum, std::greater<>>},
          {OpKind::Minimum, one_of_both<minimum, std::less<>>},
          {OpKind::Atan2, map_by<angle>},
          {OpKind::Fmod, map_by<remainder_of>},
          {OpKind::SquaredDifference, map_by<squared_difference>},
          {OpKind::Equal, compare<std::equal_to<>>},
          {OpKind::NotEqual, compare<std::not_equal_to<>>},
          {OpKind::Less, compare<std::less<>>},
          {OpKind::LessEqual, compare<std::less_equal<>>},
          {OpKind::Greater, compare<std::greater<>>},
          {OpKind::GreaterEqual, compare<std::greater_equal<>>},
          {OpKind::BitwiseAnd, map_integers<shared_bits>},
          {OpKind::BitwiseOr, map_integers<all_bits>},
          {OpKind::BitwiseXor, map_integers<differing_bits>},
          {OpKind::ShiftLeft, map_integers<shifted_left>},
          {OpKind::ShiftRight, map_integers<shifted_right>},
          {OpKind::LogicalAnd, map_by<logical_and>},
          {OpKind::LogicalOr, map_by<logical_or>},
          {OpKind::LogicalNot, logical_not},
          {OpKind::Select, select},
          {OpKind::BiasAdd, bias_add},
          {OpKind::BiasAddBackward, bias_add_backward}};
}

}  // namespace lamina::reference
