#include "backends/gpu/emit/values.h"

#include "backends/gpu/emit/c_types.h"
#include "backends/gpu/emit/math_text.h"

namespace lamina::gpu {

using kernel::MapOp;
using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;
using kernel::Type;

namespace {

std::string call(const char* function, Type type, const std::string& a) {
  return join("lm_", function, "_", suffix_of(type), "(", a, ")");
}
std::string call(const char* function, Type type, const std::string& a, const std::string& b) {
  return join("lm_", function, "_", suffix_of(type), "(", a, ", ", b, ")");
}

// Integers wrap around.
std::string wrapping(Type type, const std::string& a, const char* sign, const std::string& b) {
  const char* bits = bits_of(data_type_of(type)) == 64 ? "lm_u64" : "lm_u32";
  return join("(", c_type(type), ")((", bits, ")", a, " ", sign, " (", bits, ")", b, ")");
}

// Cut off; 0 where b is 0. The overflow of a division by -1 wraps around.
std::string integer_quotient(Type type, const std::string& a, const std::string& b) {
  const std::string by_minus_one = is_signed_integer(type) ? join(b, " == -1 ? ", wrapping(type, "0", "-", a), " : ") : "";
  return join("(", c_type(type), ")(", b, " == 0 ? 0 : ", by_minus_one, a, " / ", b, ")");
}

// A shift by the width or more moves all bits out.
std::string shifted(MapOp op, Type type, const std::string& a, const std::string& b) {
  const int width = bits_of(data_type_of(type));
  const std::string is_inside = join("(lm_u", width, ")", b, " < ", width);
  if (op == MapOp::shift_left) return join("(", c_type(type), ")(", is_inside, " ? ", wrapping(type, a, "<<", b), " : 0)");
  if (is_signed_integer(type)) return join("(", c_type(type), ")(", a, " >> (", is_inside, " ? ", b, " : ", width - 1, "))");
  return join("(", c_type(type), ")(", is_inside, " ? ", a, " >> ", b, " : 0)");
}

}  // namespace

std::string Values::load_at(int a, const std::string& offset) const {
  const DataType dtype = arg(a).dtype;
  if (!e_.shares_bytes(a)) return from_storage(dtype, join("p", a, "[", offset, "]"));
  const std::string index = join("f", a, " + ", offset);
  return join("lm_f32_from_", lamina::name_of(dtype), "(p", a, "[(", index, ") / 2], ", index, ")");
}

// x - mean, with the mean as hi + lo. With a scale, the result is rounded once at the end.
std::string Values::centered(const Node& n) {
  const std::string mean = join("mean", n.operands[1]);
  const std::string difference = join("(", operand(n, 0), " - ", mean, ".hi)");
  if (n.operands[2] < 0) return join(difference, " - ", mean, ".lo");
  return join("lm_fma_", suffix_of(n.type), "(", difference, ", ", operand(n, 2), ", -(", mean, ".lo * ", operand(n, 2), "))");
}

std::string Values::offset(int a) const {
  const Dims& strides = arg(a).strides;
  if (kernel_.extents.size() != e_.outer + 1) return e_.place_sum(strides, e_.outer, kernel_.extents.size(), "x");
  return strides.back() == 1 ? "at" : strides.back() == 0 ? "0" : join("at * ", strides.back());
}

std::string Values::first_value(NodeIndex load) const { return load_at(node(load).arg, "0"); }

// The chunks of an arg in a side of the memory for copied rows follow those of the args before it.
std::string Values::copied_chunk(int a) const {
  int64_t before = 0, bytes = 0;
  for (const int other : e_.copied_ahead) {
    if (other == a) before = bytes;
    bytes += bytes_of(arg(other).dtype, int64_t{schedule_.group_size()} * e_.elements());
  }
  return join("(LM_LOCAL ", storage_type(arg(a).dtype), "*)(copied + side * ", bytes, " + ", before, ") + (k * ",
              schedule_.group_size(), " + thread) * ", schedule_.vector);
}

std::string Values::load_entry(const Node& n, const std::string& offset) const {
  const std::string start = join(operand(n, 0), " * (lm_s64)", arg(n.arg).entry_stride);
  const std::string value = load_at(n.arg, offset.empty() ? start : join(start, " + ", offset));
  return n.operands[1] < 0 ? value : join("(", operand(n, 1), " ? ", value, " : ", constant(n.value, n.type), ")");
}

std::string Values::sum_entries(NodeIndex i, const std::string& offset) const {
  const Node& n = node(i);
  return join("sum", i, "(p", n.arg, " + ", offset, ", p", n.order, ", ", operand(n, 0), ", ", operand(n, 1), ")");
}

// The value of an index node. `inside`: the part of the chunk and the element.
std::string Values::index_at(const Node& n, const std::string& inside) const {
  std::string sum = inside;
  for (size_t d = 0; d < e_.outer; ++d) {
    if (n.coefficients[d] != 0) sum += join(" + (lm_s64)x", d, " * ", n.coefficients[d]);
  }
  return sum;
}

void Values::emit_row_values(int phase) {
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& n = kernel_.nodes[i];
    if (n.per_element || n.phase > phase || e_.known[i]) continue;
    const auto declare = [&](const std::string& value) {
      out_.line("const ", c_type(n.type), " n", i, " = ", value, ";");
      e_.known[i] = true;
    };
    switch (n.kind) {
      case NodeKind::load: declare(e_.is_taken_ahead[i] ? join("taken", i) : load_at(n.arg, "0")); break;
      case NodeKind::load_entry: declare(load_entry(n, "")); break;
      case NodeKind::sum_entries: declare(sum_entries(static_cast<NodeIndex>(i), "0")); break;
      case NodeKind::constant: declare(constant(n.value, n.type)); break;
      case NodeKind::index: declare(index_at(n, "0")); break;
      case NodeKind::center: declare(centered(n)); break;
      case NodeKind::map: declare(map_value(n)); break;
      case NodeKind::store:
        if (!e_.stores_rows) break;
        out_.line("if (",
                  schedule_.flat       ? "at == 0"
                  : schedule_.split    ? "t == 0 && live && begin == 0"
                  : schedule_.together ? "t == 0 && live && rank == 0"
                                       : "t == 0 && live",
                  ") p", n.arg, "[0] = ", to_storage(arg(n.arg).dtype, n.type, operand(n, 0)), ";");
        e_.known[i] = true;
        break;
      default: break;  // reductions, and nodes that read moments, are set at the end of their walk
    }
  }
}

std::string Values::element_value(NodeIndex i, bool first_element) const {
  const Node& n = node(i);
  switch (n.kind) {
    case NodeKind::load: {
      const int64_t stride = arg(n.arg).strides.back();
      if (first_element) return e_.is_taken_ahead[static_cast<size_t>(i)] ? join("taken", i) : load_at(n.arg, "0");
      if (e_.is_vector_access(n.arg)) return from_storage(arg(n.arg).dtype, join("r", i, "[v]"));
      if (stride == 0 && !e_.shares_bytes(n.arg)) return from_storage(arg(n.arg).dtype, join("r", i));
      return load_at(n.arg, join(offset(n.arg), " + v * (lm_ix)", stride));
    }
    case NodeKind::load_entry: {
      if (first_element) return load_entry(n, "");
      return load_entry(n, join(offset(n.arg), " + v * (lm_ix)", arg(n.arg).strides.back()));
    }
    case NodeKind::sum_entries:
      return sum_entries(i, first_element ? "0" : join(offset(n.arg), " + v * (lm_ix)", arg(n.arg).strides.back()));
    case NodeKind::index: {
      if (first_element) return index_at(n, "0");
      const std::string chunk =
          kernel_.extents.size() == e_.outer + 1
              ? join("at * (lm_s64)", n.coefficients.back())
              : join("(lm_s64)(", e_.place_sum(n.coefficients, e_.outer, kernel_.extents.size(), "(lm_s64)x"), ")");
      return index_at(n, join(chunk, " + v * (lm_s64)", n.coefficients.back()));
    }
    case NodeKind::center: return centered(n);
    default: return map_value(n);
  }
}

std::string Values::map_value(const Node& n) const {
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
    case MapOp::divide: return real ? call("divide", type, a, b) : integer_quotient(type, a, b);
    case MapOp::maximum: return real ? call("maximum", type, a, b) : join("(", a, " > ", b, " ? ", a, " : ", b, ")");
    case MapOp::minimum: return real ? call("minimum", type, a, b) : join("(", a, " < ", b, " ? ", a, " : ", b, ")");
    case MapOp::bit_and: return join("(", c_type(type), ")(", a, " & ", b, ")");
    case MapOp::bit_or: return join("(", c_type(type), ")(", a, " | ", b, ")");
    case MapOp::bit_xor: return join("(", c_type(type), ")(", a, " ^ ", b, ")");
    case MapOp::shift_left:
    case MapOp::shift_right: return shifted(n.op, type, a, b);
    case MapOp::negate: return real ? call("negate", type, a) : wrapping(type, "0", "-", a);
    case MapOp::absolute: return call("abs", type, a);
    case MapOp::square_root: return call("sqrt", type, a);
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
    case MapOp::cast_to_odd: return join("lm_odd_f64_from_", suffix_of(type), "(", a, ")");
    case MapOp::round_to: {
      const std::string stored = to_storage(n.dtype, n.type, a);
      return join("(", c_type(n.type), ")", from_storage(n.dtype, stored));
    }
    case MapOp::philox_word: return join("lm_philox_word(", a, ", ", b, ", ", operand(n, 2), ")");
    default: return join(function_name(n), "(", a, b.empty() ? "" : ", ", b, ")");
  }
}

}  // namespace lamina::gpu
