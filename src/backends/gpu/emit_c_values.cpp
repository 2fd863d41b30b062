// One value per node, as expressions of the dialect.
#include <cmath>

#include "backends/gpu/source_emitter.h"
#include "interface/number_text.h"
#include "kernels/builder.h"
#include "kernels/ops/power.h"

namespace lamina::gpu {

using kernel::MapOp;
using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;
using kernel::Type;

const char* suffix_of(Type type) {
  static constexpr const char* names[] = {"f32", "f64", "s32", "s64", "boolean"};
  return names[static_cast<size_t>(type)];
}

const char* c_type(Type type) {
  static constexpr const char* names[] = {"lm_f32", "lm_f64", "lm_s32", "lm_s64", "int"};
  return names[static_cast<size_t>(type)];
}

const char* storage_type(DataType dtype) {
  switch (kind_of(dtype)) {
    case TypeKind::real: return bits_of(dtype) == 64 ? "lm_f64" : "lm_f32";
    case TypeKind::signed_integer:
      if (bits_of(dtype) >= 32) return bits_of(dtype) == 64 ? "lm_s64" : "lm_s32";
      return bits_of(dtype) == 8 ? "lm_s8" : "lm_u8";  // a pair of four-bit elements
    case TypeKind::small_float:
    case TypeKind::unsigned_integer:
    case TypeKind::boolean: return bits_of(dtype) == 16 ? "lm_u16" : "lm_u8";
    case TypeKind::none: break;
  }
  throw Error(Status::invalid_data_type, join("gpu backend: elements of type ", name_of(dtype), " cannot be stored"));
}

namespace {

bool is_real(Type type) { return type == Type::f32 || type == Type::f64; }
bool is_small_float(DataType dtype) { return kind_of(dtype) == TypeKind::small_float; }

std::string call(const char* function, Type type, const std::string& a) {
  return join("lm_", function, "_", suffix_of(type), "(", a, ")");
}
std::string call(const char* function, Type type, const std::string& a, const std::string& b) {
  return join("lm_", function, "_", suffix_of(type), "(", a, ", ", b, ")");
}

// Integers wrap around.
std::string wrapping(Type type, const std::string& a, const char* sign, const std::string& b) {
  const char* bits = type == Type::s64 ? "lm_u64" : "lm_u32";
  return join("(", c_type(type), ")((", bits, ")", a, " ", sign, " (", bits, ")", b, ")");
}

}  // namespace

std::string SourceEmitter::constant(double value, Type type) const {
  if (!is_real(type)) return join("(", c_type(type), ")", static_cast<int64_t>(value));
  const char* suffix = suffix_of(type);
  const double rounded = type == Type::f32 ? static_cast<double>(static_cast<float>(value)) : value;
  if (std::isnan(rounded)) return join("lm_nan_", suffix);
  if (std::isinf(rounded)) return join(rounded < 0 ? "-" : "", "lm_infinity_", suffix);
  return exact_text(rounded) + (type == Type::f32 ? "f" : "");
}

std::string SourceEmitter::constant(const Node& n) const { return constant(n.value, n.type); }

std::string SourceEmitter::from_storage(DataType dtype, const std::string& raw) const {
  if (dtype == DataType::boolean) return join("(", raw, " != 0)");
  if (is_small_float(dtype)) return join("lm_f32_from_", lamina::name_of(dtype), "(", raw, ")");
  return is_byte_integer(dtype) ? join("(lm_f32)", raw) : raw;
}

std::string SourceEmitter::load_at(int a, const std::string& offset) const {
  const DataType dtype = arg(a).dtype;
  if (!shares_bytes(a)) return from_storage(dtype, join("p", a, "[", offset, "]"));
  const std::string index = join("f", a, " + ", offset);
  return join("lm_f32_from_", lamina::name_of(dtype), "(p", a, "[(", index, ") / 2], ", index, ")");
}

std::string SourceEmitter::to_storage(DataType dtype, Type type, const std::string& value) const {
  if (!is_real(type)) return join("(", storage_type(dtype), ")(", value, ")");
  if (dtype == DataType::f32 || dtype == DataType::f64) return join("(", storage_type(dtype), ")(", value, ")");
  if (dtype == DataType::boolean) return join("(lm_u8)(", value, " != 0)");
  return join("lm_", lamina::name_of(dtype), "_from_", suffix_of(type), "(", value, ")");
}

std::string SourceEmitter::cast_value(Type from, Type to, const std::string& value) const {
  if (to == Type::boolean) return join("(", value, " != 0)");
  if (is_real(from) && !is_real(to)) return join("lm_", suffix_of(to), "_from_", suffix_of(from), "(", value, ")");
  return join("(", c_type(to), ")(", value, ")");
}

// x - mean, with the mean as hi + lo. With a scale, the result is rounded once at the end.
std::string SourceEmitter::centered(const Node& n) const {
  const std::string mean = join("mean", n.operands[1]);
  const std::string difference = join("(", operand(n, 0), " - ", mean, ".hi)");
  if (n.operands[2] < 0) return join(difference, " - ", mean, ".lo");
  return join("lm_fma_", suffix_of(n.type), "(", difference, ", ", operand(n, 2), ", -(", mean, ".lo * ", operand(n, 2), "))");
}

std::string SourceEmitter::place_sum(const Dims& steps, size_t first, size_t last, const char* prefix) const {
  std::string sum;
  for (size_t d = first; d < last; ++d) {
    if (steps[d] != 0) sum += join(sum.empty() ? "" : " + ", prefix, d, " * ", steps[d]);
  }
  return sum.empty() ? "0" : sum;
}

std::string SourceEmitter::offset(int a) const {
  const Dims& strides = arg(a).strides;
  if (kernel_.extents.size() != outer_ + 1) return place_sum(strides, outer_, kernel_.extents.size(), "x");
  return strides.back() == 1 ? "at" : strides.back() == 0 ? "0" : join("at * ", strides.back());
}

std::string SourceEmitter::entry_offset(const Node& n) const {
  return join(operand(n, 0), " * (lm_s64)", arg(n.arg).entry_stride);
}

// The value of an index node. `inside`: the part of the chunk and the element.
std::string SourceEmitter::index_at(const Node& n, const std::string& inside) const {
  std::string sum = inside;
  for (size_t d = 0; d < outer_; ++d) {
    if (n.coefficients[d] != 0) sum += join(" + (lm_s64)x", d, " * ", n.coefficients[d]);
  }
  return sum;
}

void SourceEmitter::emit_row_values(int phase) {
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& n = kernel_.nodes[i];
    if (n.per_element || n.phase > phase || known_[i]) continue;
    const auto declare = [&](const std::string& value) {
      out_.line("const ", c_type(n.type), " n", i, " = ", value, ";");
      known_[i] = true;
    };
    switch (n.kind) {
      case NodeKind::load: declare(load_at(n.arg, "0")); break;
      case NodeKind::load_entry: declare(load_at(n.arg, entry_offset(n))); break;
      case NodeKind::constant: declare(constant(n)); break;
      case NodeKind::index: declare(index_at(n, "0")); break;
      case NodeKind::center: declare(centered(n)); break;
      case NodeKind::map: declare(map_value(n)); break;
      case NodeKind::store:
        if (!stores_rows_) break;
        out_.line("if (",
                  schedule_.flat    ? "at == 0"
                  : schedule_.split ? "t == 0 && live && begin == 0"
                                    : "t == 0 && live",
                  ") p", n.arg, "[0] = ", to_storage(arg(n.arg).dtype, n.type, operand(n, 0)), ";");
        known_[i] = true;
        break;
      default: break;  // reductions, and nodes that read moments, are set at the end of their walk
    }
  }
}

std::string SourceEmitter::element_value(NodeIndex i, bool first_element) const {
  const Node& n = node(i);
  switch (n.kind) {
    case NodeKind::load: {
      const int64_t stride = arg(n.arg).strides.back();
      if (first_element) return load_at(n.arg, "0");
      if (is_vector_access(n.arg)) return from_storage(arg(n.arg).dtype, join("r", i, "[v]"));
      if (stride == 0 && !shares_bytes(n.arg)) return from_storage(arg(n.arg).dtype, join("r", i));
      return load_at(n.arg, join(offset(n.arg), " + v * (lm_ix)", stride));
    }
    case NodeKind::load_entry: {
      if (first_element) return load_at(n.arg, entry_offset(n));
      const int64_t stride = arg(n.arg).strides.back();
      return load_at(n.arg, join(entry_offset(n), " + ", offset(n.arg), " + v * (lm_ix)", stride));
    }
    case NodeKind::index: {
      if (first_element) return index_at(n, "0");
      const std::string chunk =
          kernel_.extents.size() == outer_ + 1
              ? join("at * (lm_s64)", n.coefficients.back())
              : join("(lm_s64)(", place_sum(n.coefficients, outer_, kernel_.extents.size(), "(lm_s64)x"), ")");
      return index_at(n, join(chunk, " + v * (lm_s64)", n.coefficients.back()));
    }
    case NodeKind::center: return centered(n);
    default: return map_value(n);
  }
}

std::string SourceEmitter::power_value(const Node& n, const std::string& x) const {
  const std::string one = constant(1, n.type);
  switch (kernel::power_form(n.value)) {
    case kernel::PowerForm::not_a_number: return join("(", x, " == ", one, " ? ", one, " : lm_nan_", suffix_of(n.type), ")");
    case kernel::PowerForm::one: return one;
    case kernel::PowerForm::identity: return x;
    case kernel::PowerForm::square: return join(x, " * ", x);
    case kernel::PowerForm::cube: return join("(", x, " * ", x, ") * ", x);
    case kernel::PowerForm::reciprocal: return join("lm_divide_", suffix_of(n.type), "(", one, ", ", x, ")");
    case kernel::PowerForm::root: return call("pow_half", n.type, x);
    case kernel::PowerForm::reciprocal_root: return call("divide", n.type, one, call("pow_half", n.type, x));
    case kernel::PowerForm::general: break;
  }
  return join("(", c_type(n.type), ")lm_pow_f64((lm_f64)", x, ", ", constant(n.value, Type::f64), ", ",
              n.type == Type::f64 ? 1 : 0, ")");
}

std::string SourceEmitter::map_value(const Node& n) const {
  const std::string a = operand(n, 0);
  const std::string b = n.operands[1] >= 0 ? operand(n, 1) : "";
  const Type type = node(n.operands[0]).type;
  const bool real = is_real(type);
  const auto infix = [&](const char* sign) { return real ? join(a, " ", sign, " ", b) : wrapping(type, a, sign, b); };
  const auto compare = [&](const char* sign) { return join("(", a, " ", sign, " ", b, ")"); };
  switch (n.op) {
    case MapOp::add: return infix("+");
    case MapOp::subtract: return infix("-");
    case MapOp::multiply: return infix("*");
    case MapOp::divide: return call("divide", type, a, b);
    case MapOp::maximum: return real ? call("maximum", type, a, b) : join("(", a, " > ", b, " ? ", a, " : ", b, ")");
    case MapOp::minimum: return real ? call("minimum", type, a, b) : join("(", a, " < ", b, " ? ", a, " : ", b, ")");
    case MapOp::negate: return real ? call("negate", type, a) : wrapping(type, "0", "-", a);
    case MapOp::absolute: return call("abs", type, a);
    case MapOp::square_root: return call("sqrt", type, a);
    case MapOp::power: return power_value(n, a);
    case MapOp::fma: return join("lm_fma_", suffix_of(type), "(", a, ", ", b, ", ", operand(n, 2), ")");
    case MapOp::equal: return compare("==");
    case MapOp::less: return compare("<");
    case MapOp::less_equal: return compare("<=");
    case MapOp::greater: return compare(">");
    case MapOp::greater_equal: return compare(">=");
    case MapOp::logical_and: return join("(", a, " & ", b, ")");
    case MapOp::logical_not: return join("(", a, " == 0)");
    case MapOp::select: return join("(", a, " ? ", b, " : ", operand(n, 2), ")");
    case MapOp::cast: return cast_value(type, n.type, a);
    case MapOp::cast_to_odd: return join("lm_odd_f64_from_s64(", a, ")");
    case MapOp::round_to: {
      const std::string stored = to_storage(n.dtype, n.type, a);
      return join("(", c_type(n.type), ")", from_storage(n.dtype, stored));
    }
    case MapOp::philox_word: return join("lm_philox_word(", a, ", ", b, ", ", operand(n, 2), ")");
    default: return call(name_of(n.op), type, a);  // exp, expm1, log, ...: the dialect uses the IR's names
  }
}

}  // namespace lamina::gpu
