// The values with which the templates of this folder compute. A template is written once, over a class of lanes `L`, which says
// what a number is and how one operation on it is done:
//   HostLanes (math/host_lanes.h)               a float or double of this process: the interpreter
//   FloatLanes (backends/cpu/vector/lanes.h)    an LLVM value, scalar or vector: the CPU back end emits IR
//   TextLanes (backends/gpu/emit/math_text.cpp) a variable of a C function: CUDA, HIP and OpenCL
// Every operation rounds once, fused multiply-adds are written as such, and division and square root are exact. So the three
// have the same bits.
//
// L has the types Value (a number), Integer (an integer of the same size), Mask (a condition per lane), Index (the counter of
// `repeat`) and Wide (the lanes for double), and one member function per operation below.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lamina::kernel::math {

enum class Rounding { half_even, down, toward_zero };

struct IntegerForm {
  int bits;
  bool is_signed;
};

template <typename L>
struct Mask {
  const L* lanes;
  typename L::Mask value;

  friend Mask operator!(const Mask& m) { return {m.lanes, m.lanes->mask_not(m.value)}; }
  friend Mask operator&(const Mask& m, const Mask& n) { return {m.lanes, m.lanes->mask_and(m.value, n.value)}; }
};

// The bits of a number, or an integer of the same size. Arithmetic wraps around.
template <typename L>
struct Bits {
  const L* lanes;
  typename L::Integer value;

  Bits like(uint64_t number) const { return {lanes, lanes->integer(number)}; }

  friend Bits operator+(const Bits& a, const Bits& b) { return {a.lanes, a.lanes->integer_add(a.value, b.value)}; }
  friend Bits operator-(const Bits& a, const Bits& b) { return {a.lanes, a.lanes->integer_sub(a.value, b.value)}; }
  friend Bits operator&(const Bits& a, const Bits& b) { return {a.lanes, a.lanes->integer_and(a.value, b.value)}; }
  friend Bits operator|(const Bits& a, const Bits& b) { return {a.lanes, a.lanes->integer_or(a.value, b.value)}; }
  friend Bits operator^(const Bits& a, const Bits& b) { return {a.lanes, a.lanes->integer_xor(a.value, b.value)}; }
  friend Bits operator+(const Bits& a, uint64_t b) { return a + a.like(b); }
  friend Bits operator-(const Bits& a, uint64_t b) { return a - a.like(b); }
  friend Bits operator-(uint64_t a, const Bits& b) { return b.like(a) - b; }
  friend Bits operator&(const Bits& a, uint64_t b) { return a & a.like(b); }
  friend Bits operator|(const Bits& a, uint64_t b) { return a | a.like(b); }
  friend Bits operator<<(const Bits& a, int count) { return {a.lanes, a.lanes->shift_left(a.value, count)}; }
  friend Bits operator>>(const Bits& a, int count) { return {a.lanes, a.lanes->shift_right(a.value, count)}; }
  // Copies the sign bit.
  friend Bits signed_shift_right(const Bits& a, int count) { return {a.lanes, a.lanes->signed_shift_right(a.value, count)}; }
  friend Mask<L> is_zero(const Bits& a) { return {a.lanes, a.lanes->integer_is_zero(a.value)}; }
  // Of unsigned integers.
  friend Mask<L> operator<(const Bits& a, uint64_t b) { return {a.lanes, a.lanes->integer_less(a.value, a.lanes->integer(b))}; }
  friend Mask<L> operator>(const Bits& a, uint64_t b) { return {a.lanes, a.lanes->integer_less(a.lanes->integer(b), a.value)}; }
  friend Mask<L> signed_greater(const Bits& a, uint64_t b) {
    return {a.lanes, a.lanes->signed_greater(a.value, a.lanes->integer(b))};
  }
  friend Bits select(const Mask<L>& m, const Bits& a, const Bits& b) {
    return {m.lanes, m.lanes->integer_select(m.value, a.value, b.value)};
  }
  // The low 32 bits times the factor, in integers of 64 bits.
  friend Bits word_product(const Bits& a, uint32_t factor) { return {a.lanes, a.lanes->word_product(a.value, factor)}; }
  // A scalar in every lane of `like`. A value of as many lanes does not change.
  friend Bits broadcast(const Bits& a, const Bits& like) { return {like.lanes, like.lanes->broadcast(a.value)}; }
};

template <typename L>
struct Real {
  const L* lanes;
  typename L::Value value;

  Real like(double number) const { return {lanes, lanes->constant(number)}; }
  bool is_double() const { return lanes->is_double(); }
  // A number that differs between the two formats.
  double pick(double for_float, double for_double) const { return is_double() ? for_double : for_float; }
  int mantissa_bits() const { return is_double() ? 52 : 23; }
  int bias() const { return is_double() ? 1023 : 127; }
  uint64_t sign_bit() const { return is_double() ? uint64_t{1} << 63 : uint64_t{1} << 31; }

#define LAMINA_REAL_OPERATOR(Result, sign, method)                                                                   \
  friend Result operator sign(const Real& a, const Real& b) { return {a.lanes, a.lanes->method(a.value, b.value)}; } \
  friend Result operator sign(const Real& a, double b) { return a sign a.like(b); }                                  \
  friend Result operator sign(double a, const Real& b) { return b.like(a) sign b; }
  LAMINA_REAL_OPERATOR(Real, +, add)
  LAMINA_REAL_OPERATOR(Real, -, sub)
  LAMINA_REAL_OPERATOR(Real, *, mul)
  LAMINA_REAL_OPERATOR(Real, /, div)
  // False if an operand is NaN.
  LAMINA_REAL_OPERATOR(Mask<L>, <, less)
  LAMINA_REAL_OPERATOR(Mask<L>, <=, less_equal)
  LAMINA_REAL_OPERATOR(Mask<L>, >, greater)
  LAMINA_REAL_OPERATOR(Mask<L>, >=, greater_equal)
  LAMINA_REAL_OPERATOR(Mask<L>, ==, equal)
#undef LAMINA_REAL_OPERATOR
  friend Real operator-(const Real& a) { return {a.lanes, a.lanes->neg(a.value)}; }

  friend Mask<L> is_nan(const Real& a) { return {a.lanes, a.lanes->is_nan(a.value)}; }
  friend Real abs(const Real& a) { return {a.lanes, a.lanes->abs(a.value)}; }
  friend Real sqrt(const Real& a) { return {a.lanes, a.lanes->sqrt(a.value)}; }
  friend Real copysign(const Real& magnitude, const Real& sign) {
    return {sign.lanes, sign.lanes->copysign(magnitude.value, sign.value)};
  }
  // a b + c, rounded once.
  friend Real fma(const Real& a, const Real& b, const Real& c) { return {a.lanes, a.lanes->fma(a.value, b.value, c.value)}; }
  friend Real fma(const Real& a, double b, const Real& c) { return fma(a, a.like(b), c); }
  friend Real fma(const Real& a, double b, double c) { return fma(a, a.like(b), a.like(c)); }
  friend Real fma(const Real& a, const Real& b, double c) { return fma(a, b, a.like(c)); }
  friend Real select(const Mask<L>& m, const Real& a, const Real& b) {
    return {m.lanes, m.lanes->select(m.value, a.value, b.value)};
  }
  friend Real select(const Mask<L>& m, double a, const Real& b) { return select(m, b.like(a), b); }
  friend Real select(const Mask<L>& m, const Real& a, double b) { return select(m, a, a.like(b)); }

  friend Bits<L> bits(const Real& a) { return {a.lanes, a.lanes->bits(a.value)}; }
  // The bits of a constant in this format.
  uint64_t bits_of(double number) const { return lanes->bits_of(number); }

  // Clamps. NaN passes through unchanged; some machines have a max or min instruction with this behaviour.
  friend Real at_least(const Real& x, double low) { return select(x < low, low, x); }
  friend Real at_most(const Real& x, double high) { return select(x > high, high, x); }
};

template <typename L>
Real<L> from_bits(const Bits<L>& a) {
  return {a.lanes, a.lanes->from_bits(a.value)};
}
// A signed integer as a floating-point number.
template <typename L>
Real<L> to_real(const Bits<L>& a) {
  return {a.lanes, a.lanes->to_real(a.value)};
}

// rare() in lanes with `is_rare`, `usual` in others. The code of rare() runs only if there is such a lane.
template <typename L, typename Rare>
Real<L> with_rare(const Mask<L>& is_rare, const Real<L>& usual, Rare rare) {
  return {usual.lanes, usual.lanes->with_rare(is_rare.value, usual.value, [&] { return rare().value; })};
}

// state = body(i, state) for i from 0 to count - 1. In C text, this is a loop.
template <template <typename> typename Number, typename L, size_t N, typename Body>
std::array<Number<L>, N> repeat(int count, const std::array<Number<L>, N>& start, Body body) {
  return start[0].lanes->repeat(count, start, body);
}

// entry(i) of a table of constants with `count` entries.
template <typename L>
Real<L> table_entry(const Real<L>& like, int count, const typename L::Index& i, double (*entry)(int)) {
  return {like.lanes, like.lanes->table_entry(count, i, entry)};
}

// f(x as double, whether the result is rounded to float), in the format of x.
template <typename L, typename F>
Real<L> in_double(const Real<L>& x, F f) {
  if (x.is_double()) return f(x, false);
  const typename L::Wide wide = x.lanes->wide();
  return {x.lanes, x.lanes->narrow(f(Real<typename L::Wide>{&wide, x.lanes->widen(x.value)}, true).value)};
}

// c[0] + x (c[1] + x (c[2] + ...)), with one fma per step.
template <typename L, size_t N>
Real<L> horner(const double (&c)[N], const Real<L>& x) {
  Real<L> total = x.like(c[N - 1]);
  for (size_t i = N - 1; i-- > 0;) total = fma(total, x, c[i]);
  return total;
}
template <typename L, size_t N, size_t M>
Real<L> horner(const double (&for_float)[N], const double (&for_double)[M], const Real<L>& x) {
  return x.is_double() ? horner(for_double, x) : horner(for_float, x);
}

// c[first] + x (c[first + 1] + ...) as a tree over x, x^2, x^4, ...: it has a few more multiplications and a much shorter
// dependence chain than horner.
template <typename L, size_t N>
Real<L> estrin(const double (&c)[N], size_t first, const Real<L>& x) {
  std::vector<Real<L>> terms;
  for (size_t i = first; i < N; ++i) terms.push_back(x.like(c[i]));
  for (Real<L> power = x; terms.size() > 1; power = power * power) {
    for (size_t i = 0; i < terms.size(); i += 2)
      terms[i / 2] = i + 1 < terms.size() ? fma(terms[i + 1], power, terms[i]) : terms[i];
    terms.resize((terms.size() + 1) / 2, x);
  }
  return terms.front();
}

}  // namespace lamina::kernel::math
