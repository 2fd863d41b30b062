// A float or double of this process as lanes: the interpreter's arithmetic.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>

#include "kernels/math/functions.h"
#include "kernels/math/lanes.h"

namespace lamina::kernel::math {

template <typename T>
struct HostLanes {
  using Value = T;
  using Integer = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  using Signed = std::make_signed_t<Integer>;
  using Mask = bool;
  using Index = int;
  using Wide = HostLanes<double>;

  static constexpr bool is_double() { return sizeof(T) == 8; }
  static T constant(double x) { return static_cast<T>(x); }
  static Integer integer(uint64_t x) { return static_cast<Integer>(x); }
  static uint64_t bits_of(double x) { return bits(constant(x)); }
  static Integer bits(T x) { return std::bit_cast<Integer>(x); }
  static T from_bits(Integer x) { return std::bit_cast<T>(x); }
  static T to_real(Integer x) { return static_cast<T>(static_cast<Signed>(x)); }

  static T add(T a, T b) { return a + b; }
  static T sub(T a, T b) { return a - b; }
  static T mul(T a, T b) { return a * b; }
  static T div(T a, T b) { return a / b; }
  static T neg(T a) { return -a; }
  static T fma(T a, T b, T c) { return std::fma(a, b, c); }
  static T abs(T a) { return std::fabs(a); }
  static T sqrt(T a) { return std::sqrt(a); }
  static T copysign(T magnitude, T sign) { return std::copysign(magnitude, sign); }

  static bool less(T a, T b) { return a < b; }
  static bool less_equal(T a, T b) { return a <= b; }
  static bool greater(T a, T b) { return a > b; }
  static bool greater_equal(T a, T b) { return a >= b; }
  static bool equal(T a, T b) { return a == b; }
  static bool is_nan(T a) { return std::isnan(a); }
  static bool mask_not(bool a) { return !a; }
  static bool mask_and(bool a, bool b) { return a && b; }
  static T select(bool m, T a, T b) { return m ? a : b; }
  static Integer integer_select(bool m, Integer a, Integer b) { return m ? a : b; }

  static Integer integer_add(Integer a, Integer b) { return a + b; }
  static Integer integer_sub(Integer a, Integer b) { return a - b; }
  static Integer integer_and(Integer a, Integer b) { return a & b; }
  static Integer integer_or(Integer a, Integer b) { return a | b; }
  static Integer integer_xor(Integer a, Integer b) { return a ^ b; }
  static Integer shift_left(Integer a, int count) { return a << count; }
  static Integer shift_right(Integer a, int count) { return a >> count; }
  static Integer signed_shift_right(Integer a, int count) { return static_cast<Integer>(static_cast<Signed>(a) >> count); }
  static bool integer_is_zero(Integer a) { return a == 0; }
  static bool integer_less(Integer a, Integer b) { return a < b; }
  static bool signed_greater(Integer a, Integer b) { return static_cast<Signed>(a) > static_cast<Signed>(b); }

  static Integer word_product(Integer a, uint32_t factor) { return static_cast<uint32_t>(a) * uint64_t{factor}; }
  static Integer broadcast(Integer a) { return a; }
  // A whole number as an integer of this form, or an end of its range. An unsigned one of 64 bits is returned as its bits.
  static int64_t to_integer(T inside, IntegerForm form, bool is_above, bool is_below) {
    const uint64_t all = std::numeric_limits<uint64_t>::max() >> (64 - form.bits);
    const auto largest = static_cast<int64_t>(form.is_signed ? all >> 1 : all);
    if (is_above) return largest;
    if (is_below) return form.is_signed ? -largest - 1 : 0;
    return form.is_signed ? static_cast<int64_t>(inside) : static_cast<int64_t>(static_cast<uint64_t>(inside));
  }

  static HostLanes<double> wide() { return {}; }
  static double widen(T x) { return static_cast<double>(x); }
  static T narrow(double x) { return static_cast<T>(x); }

  // No instructions beyond the operations above.
  static std::optional<T> scale_by_power(T, T) { return {}; }
  static std::optional<T> rounded(T, Rounding) { return {}; }

  template <typename Rare>
  static T with_rare(bool is_rare, T usual, Rare rare) {
    return is_rare ? rare() : usual;
  }
  template <typename State, typename Body>
  static State repeat(int count, State state, Body body) {
    for (int i = 0; i < count; ++i) state = body(i, state);
    return state;
  }
  static T table_entry(int, int i, double (*entry)(int)) { return constant(entry(i)); }
};

// The value of an elementary function of the kernel IR.
template <typename T>
T host_function(MapOp op, double parameter, std::span<const T> operands) {
  constexpr HostLanes<T> lanes;
  std::array<Real<HostLanes<T>>, 3> values;
  for (size_t i = 0; i < operands.size(); ++i) values[i] = {&lanes, operands[i]};
  return function_value<HostLanes<T>>(op, parameter, std::span(values).first(operands.size())).value;
}

}  // namespace lamina::kernel::math
