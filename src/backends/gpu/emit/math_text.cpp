#include "backends/gpu/emit/math_text.h"

#include <bit>
#include <cmath>
#include <optional>

#include "interface/number_text.h"
#include "interface/status.h"
#include "kernels/math/functions.h"

namespace lamina::gpu {

using kernel::MapOp;
using kernel::Type;

namespace {

std::string hexadecimal(uint64_t number) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (; number != 0 || text.empty(); number /= 16) text.insert(text.begin(), kDigits[number % 16]);
  return text;
}

// The statements of a function under construction. Every value is a variable: t0, t1, ...
class Statements {
 public:
  void line(const std::string& text) { text_ += std::string(2 * depth_, ' ') + text + "\n"; }
  void open(const std::string& text) {
    line(text);
    ++depth_;
  }
  void close() {
    --depth_;
    line("}");
  }
  std::string new_name() { return join("t", names_++); }
  std::string define(const std::string& type, const std::string& value) {
    const std::string name = new_name();
    line(join("const ", type, " ", name, " = ", value, ";"));
    return name;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  size_t depth_ = 0;
  int names_ = 0;
};

// Values are names of variables or literals.
class TextLanes {
 public:
  using T = std::string;
  using Value = T;
  using Integer = T;
  using Mask = T;
  using Index = T;
  using Wide = TextLanes;

  TextLanes(FunctionText& function, Statements& statements, bool is_double)
      : function_(function), out_(statements), double_(is_double), suffix_(is_double ? "f64" : "f32") {
    function_.needs_f64 |= is_double;
  }

  bool is_double() const { return double_; }
  uint64_t bits_of(double x) const {
    return double_ ? std::bit_cast<uint64_t>(x) : std::bit_cast<uint32_t>(static_cast<float>(x));
  }
  T constant(double x) const {
    if (!std::isfinite(x)) return join("lm_real_", suffix_, "(", integer(bits_of(x)), ")");
    return double_ ? exact_text(x) : exact_text(static_cast<double>(static_cast<float>(x))) + "f";
  }
  T integer(uint64_t x) const {
    return double_ ? join("(lm_u64)0x", hexadecimal(x)) : join("0x", hexadecimal(static_cast<uint32_t>(x)), "u");
  }

  T bits(const T& x) const { return whole(join("lm_bits_", suffix_, "(", x, ")")); }
  T from_bits(const T& x) const { return call("real", x); }
  T to_real(const T& x) const { return real(join("(lm_", suffix_, ")", as_signed(x))); }

  T add(const T& x, const T& y) const { return real(join(x, " + ", y)); }
  T sub(const T& x, const T& y) const { return real(join(x, " - ", y)); }
  T mul(const T& x, const T& y) const { return real(join(x, " * ", y)); }
  T div(const T& x, const T& y) const { return call("divide", join(x, ", ", y)); }
  T neg(const T& x) const { return real(join("-(", x, ")")); }
  T fma(const T& x, const T& y, const T& z) const { return call("fma", join(x, ", ", y, ", ", z)); }
  T abs(const T& x) const { return call("abs", x); }
  T sqrt(const T& x) const { return call("sqrt", x); }
  T copysign(const T& magnitude, const T& sign) const { return call("copysign", join(magnitude, ", ", sign)); }

  T less(const T& x, const T& y) const { return mask(join(x, " < ", y)); }
  T less_equal(const T& x, const T& y) const { return mask(join(x, " <= ", y)); }
  T greater(const T& x, const T& y) const { return mask(join(x, " > ", y)); }
  T greater_equal(const T& x, const T& y) const { return mask(join(x, " >= ", y)); }
  T equal(const T& x, const T& y) const { return mask(join(x, " == ", y)); }
  T is_nan(const T& x) const { return mask(join(x, " != ", x)); }
  T mask_not(const T& m) const { return mask("!" + m); }
  T mask_and(const T& m, const T& n) const { return mask(join(m, " & ", n)); }
  T select(const T& m, const T& x, const T& y) const { return real(join(m, " ? ", x, " : ", y)); }
  T integer_select(const T& m, const T& x, const T& y) const { return whole(join(m, " ? ", x, " : ", y)); }

  T integer_add(const T& x, const T& y) const { return whole(join(x, " + ", y)); }
  T integer_sub(const T& x, const T& y) const { return whole(join(x, " - ", y)); }
  T integer_and(const T& x, const T& y) const { return whole(join(x, " & ", y)); }
  T integer_xor(const T& x, const T& y) const { return whole(join(x, " ^ ", y)); }
  T shift_left(const T& x, int count) const { return whole(join(x, " << ", count)); }
  T shift_right(const T& x, int count) const { return whole(join(x, " >> ", count)); }
  T signed_shift_right(const T& x, int count) const {
    return whole(join("(", unsigned_type(), ")(", as_signed(x), " >> ", count, ")"));
  }
  T integer_is_zero(const T& x) const { return mask(join(x, " == 0")); }
  T signed_greater(const T& x, const T& y) const { return mask(join(as_signed(x), " > ", as_signed(y))); }

  TextLanes wide() const { return {function_, out_, true}; }
  T widen(const T& x) const { return out_.define("lm_f64", "(lm_f64)" + x); }
  T narrow(const T& x) const { return real("(lm_f32)" + x); }

  // No instructions beyond the operations above.
  std::optional<T> scale_by_power(const T&, const T&) const { return {}; }
  std::optional<T> rounded(const T&, kernel::math::Rounding) const { return {}; }

  template <typename Rare>
  T with_rare(const T& is_rare, const T& usual, Rare rare) const {
    const T result = variable(usual);
    out_.open(join("if (", is_rare, ") {"));
    out_.line(join(result, " = ", rare(), ";"));
    out_.close();
    return result;
  }

  template <typename State, typename Body>
  State repeat(int count, State state, Body body) const {
    for (auto& part : state) part.value = variable(part.value);
    const T i = out_.new_name();
    out_.line(join("int ", i, ";"));
    out_.open(join("for (", i, " = 0; ", i, " < ", count, "; ++", i, ") {"));
    const State next = body(i, state);
    for (size_t n = 0; n < next.size(); ++n) out_.line(join(state[n].value, " = ", next[n].value, ";"));
    out_.close();
    return state;
  }

  T table_entry(int count, const T& i, double (*entry)(int)) const {
    std::string entries;
    for (int e = 0; e < count; ++e) entries += join(e == 0 ? "" : ", ", constant(entry(e)));
    const T table = out_.new_name();
    out_.line(join("const lm_", suffix_, " ", table, "[] = {", entries, "};"));
    return real(join(table, "[", i, "]"));
  }

 private:
  const char* unsigned_type() const { return double_ ? "lm_u64" : "lm_u32"; }
  T as_signed(const T& x) const { return join(double_ ? "(lm_s64)" : "(lm_s32)", "(", x, ")"); }
  T real(const T& value) const { return out_.define(join("lm_", suffix_), value); }
  T whole(const T& value) const { return out_.define(unsigned_type(), value); }
  T mask(const T& value) const { return out_.define("int", value); }
  T call(const char* function, const T& arguments) const {
    return real(join("lm_", function, "_", suffix_, "(", arguments, ")"));
  }
  T variable(const T& value) const {
    const T name = out_.new_name();
    out_.line(join("lm_", suffix_, " ", name, " = ", value, ";"));
    return name;
  }

  FunctionText& function_;
  Statements& out_;
  bool double_;
  const char* suffix_;
};

const char* suffix(const kernel::Node& map) { return map.type == Type::f64 ? "f64" : "f32"; }

}  // namespace

bool is_elementary(const kernel::Node& map) { return map.kind == kernel::NodeKind::map && kernel::math::has_template(map.op); }

std::string function_name(const kernel::Node& map) {
  const std::string exponent = map.op == MapOp::power ? "_" + hexadecimal(std::bit_cast<uint64_t>(map.value)) : "";
  return join("lm_", name_of(map.op), exponent, "_", suffix(map));
}

FunctionText function_text(const kernel::Node& map) {
  using Real = kernel::math::Real<TextLanes>;
  static constexpr const char* kParameters[] = {"a", "b", "c"};
  FunctionText function;
  Statements statements;
  const TextLanes lanes(function, statements, map.type == Type::f64);
  std::string parameters;
  std::vector<Real> operands;
  for (int i = 0; i < operand_count(map); ++i) {
    parameters += join(i == 0 ? "" : ", ", "lm_", suffix(map), " ", kParameters[i]);
    operands.push_back({&lanes, kParameters[i]});
  }
  statements.open(join("LM_FN lm_", suffix(map), " ", function_name(map), "(", parameters, ") {"));
  const Real result = kernel::math::function_value<TextLanes>(map.op, map.value, operands);
  statements.line(join("return ", result.value, ";"));
  statements.close();
  function.text = statements.text();
  return function;
}

}  // namespace lamina::gpu
