// Conversions. TypeCast rounds its result even if the value stays inside a kernel, where other values stay f32.
//   Quantize:    dst = saturate(round(src / scale + zero point))
//   Dequantize:  dst = (src - zero point) * scale
// Scales and zero points are attributes, or operands of the dynamic ops. The loop nest says along which dims they vary.
#include "kernels/op_lowering.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "interface/small_float.h"

namespace lamina::kernel {

namespace {

struct Parameters {
  Value scale, zero_point;  // zero_point is absent when every entry is 0
};

// Parameters from attributes: constants if there is one for the tensor, tables along `axis` if there is one per channel.
Parameters attribute_parameters(OpLowering& op) {
  const auto& scales = op.attribute<std::vector<float>>("scales");
  std::vector<float> zps(scales.size(), 0.0F);
  bool any = false;
  if (op.has_attribute("zps")) {
    const auto& given = op.attribute<std::vector<int64_t>>("zps");
    for (size_t i = 0; i < given.size() && i < zps.size(); ++i) {
      zps[i] = static_cast<float>(given[i]);
      any |= given[i] != 0;
    }
  }
  if (op.attribute<std::string>("qtype") == "per_tensor") {
    const auto constant = [&](float value) { return op.k.constant(static_cast<double>(value), op.float_type()); };
    return {constant(scales[0]), any ? constant(zps[0]) : Value{}};
  }
  const int axis = static_cast<int>(op.attribute<int64_t>("axis"));
  return {op.table("scales", scales, axis), any ? op.table("zps", zps, axis) : Value{}};
}

Parameters quantization_parameters(OpLowering& op) {
  if (op.has_attribute("scales")) return attribute_parameters(op);
  return {op.in("scales"), op.has("zps") ? op.in("zps") : Value{}};
}

// 1 / divisor as a sum of two numbers, as divide_by_row_value computes them.
struct Inverse {
  double high = 0, low = 0;
};
template <typename T>
Inverse inverse_of(T divisor) {
  const auto missing = [&](T inverse) { return std::fma(-inverse, divisor, T{1}); };
  constexpr T kLargest = std::numeric_limits<T>::max(), kBelowOne = 1 - std::numeric_limits<T>::epsilon() / 2;
  T high = std::clamp(1 / divisor, -kLargest, kLargest);
  if (missing(high) < 0) high *= kBelowOne;
  const T rest = missing(high), low = rest > 0 ? rest / divisor : high * T{0x1p-60};
  return {double{high}, double{low != 0 ? low : std::copysign(std::numeric_limits<T>::denorm_min(), high)}};
}

// Of a divisor that is known, and neither subnormal nor infinite.
std::optional<Inverse> known_inverse(const Node& divisor) {
  if (divisor.kind != NodeKind::constant) return std::nullopt;
  if (divisor.type == Type::f64) return std::isnormal(divisor.value) ? std::optional(inverse_of(divisor.value)) : std::nullopt;
  const auto value = static_cast<float>(divisor.value);
  return std::isnormal(value) ? std::optional(inverse_of(value)) : std::nullopt;
}

// x / divisor for a divisor that is constant within the row. Its inverse is computed once, as the sum of two floats. The
// result is the correctly rounded quotient, unless the quotient is within 2^-22 units of the midpoint between two floats
// (Brisebarre, Muller and Raina, Accelerating correctly rounded floating-point division when the divisor is known in advance,
// 2004); the error is one unit more for divisors beyond 2^100. Both parts have the same sign, and neither is 0 or infinite,
// so that an infinite x stays infinite and 0 stays 0. The second part is subnormal, which makes every product slow, only for
// divisors beyond 2^66.
// The inverse of a subnormal divisor may be infinite: x and the divisor are multiplied by 2^64 first, which is exact. An x that
// becomes infinite has a quotient beyond 2^127.
Value divide_by_row_value(Value x, Value divisor) {
  Builder& k = *x.builder;
  if (const auto inverse = known_inverse(k.node(divisor)))
    return fma(x, k.constant(inverse->high, divisor.type()), x * k.constant(inverse->low, divisor.type()));
  const bool wide = divisor.type() == Type::f64;
  const double smallest_normal = wide ? std::numeric_limits<double>::min() : double{std::numeric_limits<float>::min()};
  const double largest = wide ? std::numeric_limits<double>::max() : double{std::numeric_limits<float>::max()};
  const double smallest = wide ? std::numeric_limits<double>::denorm_min() : double{std::numeric_limits<float>::denorm_min()};
  const double below_one = 1 - (wide ? 0x1p-53 : 0x1p-24);
  const auto number = [&](double value) { return k.constant(value, divisor.type()); };
  const Value factor = k.select(less(abs(divisor), smallest_normal), number(0x1p64), number(1));
  x = x * factor;
  divisor = divisor * factor;
  const auto missing = [&](Value inverse) { return fma(-inverse, divisor, number(1)); };
  Value high = min(max(1.0 / divisor, -largest), largest);
  high = k.select(less(missing(high), 0), high * below_one, high);
  const Value rest = missing(high);
  const Value low = k.select(greater(rest, 0), rest / divisor, high * 0x1p-60);
  const Value least = k.select(less(high, 0), number(-smallest), number(smallest));
  return fma(x, high, x * k.select(greater(abs(low), 0), low, least));
}

// A subnormal scale has no finite inverse in f32.
bool has_scale_without_inverse(const OpLowering& op) {
  if (!op.has_attribute("scales")) return false;
  const auto& scales = op.attribute<std::vector<float>>("scales");
  return std::any_of(scales.begin(), scales.end(), [](float scale) { return !std::isfinite(1 / scale); });
}

// The inverse of a scale that is a power of two, by which products are exact.
std::optional<double> exact_inverse(const OpLowering& op) {
  if (!op.has_attribute("scales") || op.attribute<std::string>("qtype") != "per_tensor") return std::nullopt;
  const float scale = op.attribute<std::vector<float>>("scales")[0];
  int exponent = 0;
  if (!std::isnormal(scale) || std::abs(std::frexp(scale, &exponent)) != 0.5F || !std::isnormal(1 / scale)) return std::nullopt;
  return double{1 / scale};
}

Value divide_by_scale(OpLowering& op, Value scale) {
  const Value src = op.in(0);
  if (const auto inverse = exact_inverse(op)) return *inverse == 1 ? src : src * op.k.constant(*inverse, op.float_type());
  const bool divides = op.k.node(scale).per_element || has_scale_without_inverse(op);
  return divides ? src / scale : divide_by_row_value(src, scale);
}

void quantize(OpLowering& op) {
  const Parameters q = quantization_parameters(op);
  Value scaled = divide_by_scale(op, q.scale);
  if (q.zero_point) scaled = scaled + q.zero_point;
  op.out(0, op.k.round_to(scaled, op.output_tensor(0).dtype));
}

void dequantize(OpLowering& op) {
  const Parameters q = quantization_parameters(op);
  const Value src = op.in(0);
  op.out(0, (q.zero_point ? src - q.zero_point : src) * q.scale);
}

// Rounds towards 0.
Value cut_off(Value x) {
  Builder& k = *x.builder;
  const Value whole = k.map(MapOp::floor, abs(x));
  return k.select(less(x, 0), -whole, whole);
}

bool is_narrow(DataType dtype) { return is_floating(dtype) && bits_of(dtype) < 32; }

// Rounds once, to the nearest number of a type of 16 bits or fewer. f32 is enough for integers where the range of the type ends
// before 2^24, the first integer next to one that f32 cannot represent. Else f32 would round a first time, and f64 is used.
Value rounded(Value src, DataType to) {
  Builder& k = *src.builder;
  if (src.type() == Type::boolean) return src;
  if (is_real(src.type())) return k.round_to(src, to);
  if (small_float(to).bias < 24) return k.round_to(k.cast(src, Type::f32), to);
  return k.round_to(bits_of(data_type_of(src.type())) == 64 ? k.cast_to_odd(src) : k.cast(src, Type::f64), to);
}

// An integer of a byte from a value of another type. A reader in the same kernel sees what a store keeps of it.
Value as_byte(Value src, DataType from, DataType to) {
  Builder& k = *src.builder;
  if (src.type() == Type::boolean) return src;
  if (is_integer(from)) return wrapped_to_byte(k.cast(src, is_byte_integer(from) ? src.type() : Type::s32), to);
  return k.round_to(cut_off(src), to);
}

// The user asked for the rounding of a cast, so its readers in the same kernel see the rounded value.
void type_cast(OpLowering& op) {
  const DataType from = op.input_tensor(0).dtype, dtype = op.output_tensor(0).dtype;
  Value src = op.in_as_is(0);
  if (is_byte_integer(dtype)) return op.out(0, as_byte(src, from, dtype));
  const Type to = compute_type(dtype);
  if (is_byte_integer(from) && is_integer(to)) src = op.k.cast(src, Type::s32);  // from there it wraps around
  if (is_narrow(dtype)) return op.out(0, rounded(src, dtype));
  op.out(0, is_real(src.type()) && is_integer(to) ? cut_off(src) : src);
}

}  // namespace

std::vector<Lowering> quantize_lowerings() {
  return {{OpKind::Quantize, quantize},
          {OpKind::Dequantize, dequantize},
          {OpKind::DynamicQuantize, quantize},
          {OpKind::DynamicDequantize, dequantize},
          {OpKind::TypeCast, type_cast}};
}

}  // namespace lamina::kernel
