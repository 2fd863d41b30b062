#include "kernels/interpret_values.h"

#include <array>
#include <cmath>

#include "interface/element.h"
#include "interface/small_float.h"
#include "interface/status.h"
#include "kernels/builder.h"
#include "kernels/math/host_convert.h"

namespace lamina::kernel {

namespace {

// Four-bit elements, two per byte. The element with the even index is in the low half.
int read_nibble(const void* data, int64_t index) { return load_element<uint8_t>(data, index / 2) >> index % 2 * 4 & 15; }
void write_nibble(void* data, int64_t index, uint8_t value) {
  const int64_t shift = index % 2 * 4;
  const int kept = load_element<uint8_t>(data, index / 2) & (0xf0 >> shift);
  store_element(data, index / 2, static_cast<uint8_t>(kept | value << shift));
}

Scalar real_scalar(double value) { return {value, 0}; }
Scalar integer_scalar(int64_t value) { return {0, value}; }

template <typename Real>
void store_real(DataType dtype, void* data, int64_t index, Real value) {
  switch (dtype) {
    case DataType::f64: return store_element(data, index, static_cast<double>(value));
    case DataType::f32: return store_element(data, index, static_cast<float>(value));
#define LAMINA_STORE(name, Bits, ...) \
  case DataType::name: return store_element(data, index, static_cast<Bits>(math::host_small_float(value, dtype)));
      LAMINA_SMALL_FLOATS(LAMINA_STORE)
#undef LAMINA_STORE
    case DataType::boolean: return store_element(data, index, static_cast<uint8_t>(value != 0));
    default: break;
  }
  const int64_t integer = math::host_integer(value, bits_of(dtype), lamina::is_signed_integer(dtype));
  if (bits_of(dtype) < 8) return write_nibble(data, index, static_cast<uint8_t>(integer & 15));
  visit_integer_type(dtype, [&](auto of_type) { store_element(data, index, static_cast<decltype(of_type)>(integer)); });
}

// Of an integer of the type or a boolean.
template <typename Real>
Real real_of_integer(int64_t integer, Type type) {
  return is_signed_integer(type) ? static_cast<Real>(integer) : static_cast<Real>(static_cast<uint64_t>(integer));
}

template <typename Real>
Real round_trip(DataType dtype, Real value) {
  uint64_t memory = 0;
  store_real(dtype, &memory, 0, value);
  const Scalar back = load_scalar(dtype, &memory, 0);
  const Type type = compute_type(dtype);
  return is_real(type) ? static_cast<Real>(back.real) : real_of_integer<Real>(back.integer, type);
}

// As an integer of the type, in 64 bits.
int64_t wrapped_to(Type type, uint64_t bits) {
  return visit_integer_type(data_type_of(type),
                            [bits](auto of_type) { return static_cast<int64_t>(static_cast<decltype(of_type)>(bits)); });
}

Scalar cast_scalar(Scalar value, Type from, Type to) {
  const bool from_real = is_real(from);
  if (to == Type::f32)
    return real_scalar(
        static_cast<double>(from_real ? static_cast<float>(value.real) : real_of_integer<float>(value.integer, from)));
  if (to == Type::f64) return real_scalar(from_real ? value.real : real_of_integer<double>(value.integer, from));
  if (to == Type::boolean) return integer_scalar(from_real ? value.real != 0 : value.integer != 0);
  if (!from_real) return integer_scalar(wrapped_to(to, static_cast<uint64_t>(value.integer)));
  const int bits = bits_of(data_type_of(to));
  const int64_t integer = from == Type::f32 ? math::host_integer(static_cast<float>(value.real), bits, is_signed_integer(to))
                                            : math::host_integer(value.real, bits, is_signed_integer(to));
  return integer_scalar(wrapped_to(to, static_cast<uint64_t>(integer)));
}

int64_t wrapped(MapOp op, Type type, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  const uint64_t result = op == MapOp::add ? x + y : op == MapOp::subtract ? x - y : op == MapOp::multiply ? x * y : 0 - x;
  return wrapped_to(type, result);
}

int64_t quotient(Type type, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (!is_signed_integer(type)) return static_cast<int64_t>(static_cast<uint64_t>(a) / static_cast<uint64_t>(b));
  return b == -1 ? wrapped_to(type, 0 - static_cast<uint64_t>(a)) : a / b;
}

int64_t shifted(MapOp op, Type type, int64_t a, int64_t b) {
  const int width = bits_of(data_type_of(type));
  const bool is_inside = static_cast<uint64_t>(b) < static_cast<uint64_t>(width);
  if (op == MapOp::shift_left) return is_inside ? wrapped_to(type, static_cast<uint64_t>(a) << b) : 0;
  if (is_signed_integer(type)) return a >> (is_inside ? b : width - 1);
  return is_inside ? static_cast<int64_t>(static_cast<uint64_t>(a) >> b) : 0;
}

template <typename T>
bool compare(MapOp op, T a, T b) {
  switch (op) {
    case MapOp::equal: return a == b;
    case MapOp::less: return a < b;
    case MapOp::less_equal: return a <= b;
    case MapOp::greater: return a > b;
    default: return a >= b;
  }
}

bool compare_integers(MapOp op, Type type, int64_t a, int64_t b) {
  return is_signed_integer(type) ? compare(op, a, b) : compare(op, static_cast<uint64_t>(a), static_cast<uint64_t>(b));
}

template <typename Real>
Real elementary(const Node& node, std::span<const Scalar> operands) {
  std::array<Real, 3> values{};
  for (size_t i = 0; i < operands.size(); ++i) values[i] = static_cast<Real>(operands[i].real);
  return math::host_function<Real>(node.op, node.value, std::span(values).first(operands.size()));
}

template <typename Real>
Scalar map_real(const Node& node, std::span<const Scalar> operands) {
  const auto at = [&](size_t k) { return static_cast<Real>(operands[k].real); };
  const auto scalar = [](Real value) { return real_scalar(static_cast<double>(value)); };
  switch (node.op) {
    case MapOp::add: return scalar(at(0) + at(1));
    case MapOp::subtract: return scalar(at(0) - at(1));
    case MapOp::multiply: return scalar(at(0) * at(1));
    case MapOp::divide: return scalar(at(0) / at(1));
    case MapOp::maximum: return scalar(maximum(at(0), at(1)));
    case MapOp::minimum: return scalar(minimum(at(0), at(1)));
    case MapOp::fma: return scalar(std::fma(at(0), at(1), at(2)));
    case MapOp::negate: return scalar(-at(0));
    case MapOp::absolute: return scalar(std::fabs(at(0)));
    case MapOp::square_root: return scalar(std::sqrt(at(0)));
    case MapOp::round_to: return scalar(round_trip(node.dtype, at(0)));
    case MapOp::equal:
    case MapOp::less:
    case MapOp::less_equal:
    case MapOp::greater:
    case MapOp::greater_equal: return integer_scalar(compare(node.op, at(0), at(1)));
    default: return scalar(elementary<Real>(node, operands));
  }
}

Scalar map_integer(const Node& node, Type type, std::span<const Scalar> operands) {
  const int64_t a = operands[0].integer;
  const int64_t b = operands.size() > 1 ? operands[1].integer : 0;
  switch (node.op) {
    case MapOp::add:
    case MapOp::subtract:
    case MapOp::multiply:
    case MapOp::negate: return integer_scalar(wrapped(node.op, type, a, b));
    case MapOp::divide: return integer_scalar(quotient(type, a, b));
    case MapOp::bit_and: return integer_scalar(a & b);
    case MapOp::bit_or: return integer_scalar(a | b);
    case MapOp::bit_xor: return integer_scalar(a ^ b);
    case MapOp::shift_left:
    case MapOp::shift_right: return integer_scalar(shifted(node.op, type, a, b));
    case MapOp::maximum: return integer_scalar(compare_integers(MapOp::greater, type, a, b) ? a : b);
    case MapOp::minimum: return integer_scalar(compare_integers(MapOp::less, type, a, b) ? a : b);
    case MapOp::equal:
    case MapOp::less:
    case MapOp::less_equal:
    case MapOp::greater:
    case MapOp::greater_equal: return integer_scalar(compare_integers(node.op, type, a, b));
    case MapOp::logical_and: return integer_scalar(a & b);
    case MapOp::logical_not: return integer_scalar(a == 0);
    case MapOp::philox_word: return integer_scalar(math::host_philox_word(a, b, operands[2].integer));
    default: throw Error(Status::runtime_error, join("bug in lamina: ", name_of(node.op), " of integers"));
  }
}

}  // namespace

Scalar load_scalar(DataType dtype, const void* data, int64_t index) {
  switch (dtype) {
    case DataType::f64: return real_scalar(load_element<double>(data, index));
    case DataType::f32: return real_scalar(static_cast<double>(load_element<float>(data, index)));
#define LAMINA_LOAD(name, Bits, ...) \
  case DataType::name:               \
    return real_scalar(static_cast<double>(math::host_from_small_float(load_element<Bits>(data, index), dtype)));
      LAMINA_SMALL_FLOATS(LAMINA_LOAD)
#undef LAMINA_LOAD
    case DataType::s4: return real_scalar((read_nibble(data, index) ^ 8) - 8);
    case DataType::u4: return real_scalar(read_nibble(data, index));
    case DataType::boolean: return integer_scalar(load_element<uint8_t>(data, index) != 0);
    default: break;
  }
  const auto integer = visit_integer_type(
      dtype, [&](auto of_type) { return static_cast<int64_t>(load_element<decltype(of_type)>(data, index)); });
  return is_real(compute_type(dtype)) ? real_scalar(static_cast<double>(integer)) : integer_scalar(integer);
}

void store_scalar(DataType dtype, Type type, void* data, int64_t index, Scalar value) {
  switch (type) {
    case Type::f32: return store_real(dtype, data, index, static_cast<float>(value.real));
    case Type::f64: return store_real(dtype, data, index, value.real);
    case Type::boolean: return store_element(data, index, static_cast<uint8_t>(value.integer));
    default: break;
  }
  visit_integer_type(dtype, [&](auto of_type) { store_element(data, index, static_cast<decltype(of_type)>(value.integer)); });
}

Scalar constant_scalar(const Node& node) {
  if (node.type == Type::f32) return real_scalar(static_cast<double>(static_cast<float>(node.value)));
  if (node.type == Type::f64) return real_scalar(node.value);
  return integer_scalar(static_cast<int64_t>(node.value));
}

Scalar map_scalar(const Node& node, Type operand_type, std::span<const Scalar> operands) {
  if (node.op == MapOp::select) return operands[0].integer != 0 ? operands[1] : operands[2];
  if (node.op == MapOp::cast) return cast_scalar(operands[0], operand_type, node.type);
  if (node.op == MapOp::cast_to_odd)
    return real_scalar(math::host_odd_from_integer(operands[0].integer, is_signed_integer(operand_type)));
  if (operand_type == Type::f32) return map_real<float>(node, operands);
  return operand_type == Type::f64 ? map_real<double>(node, operands) : map_integer(node, operand_type, operands);
}

}  // namespace lamina::kernel
