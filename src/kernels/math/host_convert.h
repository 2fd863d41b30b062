// Conversions and random words on numbers of this process, for the interpreter.
#pragma once

#include "kernels/math/convert.h"
#include "kernels/math/host_lanes.h"
#include "kernels/math/philox.h"

namespace lamina::kernel::math {

template <typename T>
uint32_t host_small_float(T x, DataType type) {
  constexpr HostLanes<float> lanes;
  if constexpr (sizeof(T) == sizeof(float)) {
    return small_float_from(Real<HostLanes<float>>{&lanes, x}, type).value;
  } else {
    constexpr HostLanes<double> wide;
    return small_float_from(to_odd(lanes, Real<HostLanes<double>>{&wide, x}), type).value;
  }
}

inline float host_from_small_float(uint32_t raw, DataType type) {
  constexpr HostLanes<float> lanes;
  return from_small_float(Bits<HostLanes<float>>{&lanes, raw}, type).value;
}

// The lowest `width` bits are the integer.
template <typename T>
int64_t host_integer(T x, int width, bool is_signed) {
  constexpr HostLanes<T> lanes;
  const Real<HostLanes<T>> number{&lanes, x};
  if (!fits_mantissa(number, width)) return wide_integer(number, width, is_signed);
  return static_cast<int64_t>(narrow_integer(number, width, is_signed).value);
}

inline double host_odd_from_integer(int64_t x, bool is_signed) {
  constexpr HostLanes<double> lanes;
  return odd_from_integer(Bits<HostLanes<double>>{&lanes, static_cast<uint64_t>(x)}, is_signed).value;
}

inline int64_t host_philox_word(int64_t index, int64_t seed, int64_t offset) {
  constexpr HostLanes<double> lanes;
  const auto number = [&](int64_t x) { return Bits<HostLanes<double>>{&lanes, static_cast<uint64_t>(x)}; };
  const auto words = philox_words(philox_start(number(index) & ~uint64_t{3}, number(seed), number(offset)));
  return static_cast<int64_t>(philox_word_of(words, number(index)).value);
}

}  // namespace lamina::kernel::math
