#include "backends/gpu/emit/math_text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "backends/gpu/emit/c_types.h"
#include "interface/number_text.h"
#include "interface/status.h"
#include "kernels/math/convert.h"
#include "kernels/math/functions.h"
#include "kernels/math/philox.h"

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
  T integer_or(const T& x, const T& y) const { return whole(join(x, " | ", y)); }
  T integer_xor(const T& x, const T& y) const { return whole(join(x, " ^ ", y)); }
  T shift_left(const T& x, int count) const { return whole(join(x, " << ", count)); }
  T shift_right(const T& x, int count) const { return whole(join(x, " >> ", count)); }
  T signed_shift_right(const T& x, int count) const {
    return whole(join("(", unsigned_type(), ")(", as_signed(x), " >> ", count, ")"));
  }
  T integer_is_zero(const T& x) const { return mask(join(x, " == 0")); }
  T integer_less(const T& x, const T& y) const { return mask(join(x, " < ", y)); }
  T signed_greater(const T& x, const T& y) const { return mask(join(as_signed(x), " > ", as_signed(y))); }

  T word_product(const T& x, uint32_t factor) const {
    return whole(join("(lm_u64)(lm_u32)(", x, ") * 0x", hexadecimal(factor), "u"));
  }
  T broadcast(const T& x) const { return x; }
  // A whole number as an integer of this form, or an end of its range.
  T to_integer(const T& inside, kernel::math::IntegerForm form, const T& is_above, const T& is_below) const {
    const std::string type = join(form.is_signed ? "lm_s" : "lm_u", form.bits), all = join("~(lm_u", form.bits, ")0");
    const std::string largest = form.is_signed ? join("(", type, ")(", all, " >> 1)") : all;
    const std::string smallest = form.is_signed ? join("-", largest, " - 1") : join("(", type, ")0");
    return out_.define(type, join(is_above, " ? ", largest, " : ", is_below, " ? ", smallest, " : (", type, ")", inside));
  }

  TextLanes wide() const { return {function_, out_, true}; }
  T widen(const T& x) const { return out_.define("lm_f64", "(lm_f64)" + x); }
  T narrow(const T& x) const { return real("(lm_f32)" + x); }

  // No instructions beyond the operations above.
  std::optional<T> scale_by_power(const T&, const T&) const { return {}; }
  std::optional<T> rounded(const T&, kernel::math::Rounding) const { return {}; }

  template <typename Rare>
  T with_rare(const T& is_rare, const T& usual, Rare rare) const {
    const T result = variable(kernel::math::Real<TextLanes>{this, usual});
    out_.open(join("if (", is_rare, ") {"));
    out_.line(join(result, " = ", rare(), ";"));
    out_.close();
    return result;
  }

  template <typename State, typename Body>
  State repeat(int count, State state, Body body) const {
    for (auto& part : state) part.value = variable(part);
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
  T variable(const kernel::math::Real<TextLanes>& x) const { return variable(join("lm_", suffix_), x.value); }
  T variable(const kernel::math::Bits<TextLanes>& x) const { return variable(unsigned_type(), x.value); }
  T variable(const std::string& type, const T& value) const {
    const T name = out_.new_name();
    out_.line(join(type, " ", name, " = ", value, ";"));
    return name;
  }

  FunctionText& function_;
  Statements& out_;
  bool double_;
  const char* suffix_;
};

// The text of RESULT NAME(PARAMETERS) { return (RESULT)body(lanes); }
template <typename Body>
std::string c_function(const std::string& result, const std::string& name, const std::string& parameters, bool is_double,
                       Body body) {
  FunctionText function;
  Statements statements;
  const TextLanes lanes(function, statements, is_double);
  statements.open(join("LM_FN ", result, " ", name, "(", parameters, ") {"));
  const std::string value = body(lanes);
  statements.line(join("return (", result, ")", value, ";"));
  statements.close();
  return statements.text();
}

// A language may define the function with an instruction of the device, and a macro with its name.
std::string unless_defined(const std::string& name, const std::string& text) {
  return join("#ifndef ", name, "\n", text, "#endif\n");
}

using Real = kernel::math::Real<TextLanes>;
using Bits = kernel::math::Bits<TextLanes>;

const char* suffix(const kernel::Node& map) { return map.type == Type::f64 ? "f64" : "f32"; }

}  // namespace

bool is_elementary(const kernel::Node& map) { return map.kind == kernel::NodeKind::map && kernel::math::has_template(map.op); }

std::string function_name(const kernel::Node& map) {
  const std::string exponent = map.op == MapOp::power ? "_" + hexadecimal(std::bit_cast<uint64_t>(map.value)) : "";
  return join("lm_", name_of(map.op), exponent, "_", suffix(map));
}

FunctionText function_text(const kernel::Node& map) {
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

std::string small_float_text(bool wide) {
  std::string text;
  if (wide)
    text += c_function("lm_f32", "lm_odd_f32_from_f64", "lm_f64 x", false, [](const TextLanes& lanes) {
      const TextLanes of_double = lanes.wide();
      return to_odd(lanes, Real{&of_double, "x"}).value;
    });
  const auto add = [&](DataType type, int bits) {
    const std::string name(name_of(type)), stored = join("lm_u", bits), from = join("lm_", name, "_from_f32"),
                                           to = join("lm_f32_from_", name);
    text += unless_defined(from, c_function(stored, from, "lm_f32 x", false, [&](const TextLanes& lanes) {
                             return small_float_from(Real{&lanes, "x"}, type).value;
                           }));
    text += unless_defined(to, c_function("lm_f32", to, stored + " x", false, [&](const TextLanes& lanes) {
                             return from_small_float(Bits{&lanes, "(lm_u32)x"}, type).value;
                           }));
    if (wide)
      text += join("LM_FN ", stored, " lm_", name, "_from_f64(lm_f64 x) { return ", from, "(lm_odd_f32_from_f64(x)); }\n");
  };
#define LAMINA_ADD(name, Stored, ...) add(DataType::name, 8 * sizeof(Stored));
  LAMINA_SMALL_FLOATS(LAMINA_ADD)
#undef LAMINA_ADD
  return text;
}

std::string integer_text(bool wide, const std::vector<DataType>& integers) {
  std::string text;
  for (const bool is_double : {false, true}) {
    if (is_double && !wide) break;
    const std::string real = is_double ? "f64" : "f32", parameter = join("lm_", real, " x");
    for (const DataType type : integers) {
      const int width = bits_of(type);
      const bool is_signed = is_signed_integer(type);
      text += c_function(storage_type(type), join("lm_", name_of(type), "_from_", real), parameter, is_double,
                         [&](const TextLanes& lanes) -> std::string {
                           const Real x{&lanes, "x"};
                           if (!fits_mantissa(x, width)) return wide_integer(x, width, is_signed);
                           const std::string bits = narrow_integer(x, width, is_signed).value;
                           // A nibble is in the low half of a byte.
                           return join("(lm_u", std::max(width, 8), ")", bits, width == 4 ? " & 15" : "");
                         });
    }
  }
  for (const DataType type : integers) {
    if (!wide || bits_of(type) != 64) continue;
    text += c_function(
        "lm_f64", join("lm_odd_f64_from_", name_of(type)), join(storage_type(type), " x"), true,
        [&](const TextLanes& lanes) { return odd_from_integer(Bits{&lanes, "(lm_u64)x"}, is_signed_integer(type)).value; });
  }
  return text;
}

std::string philox_text() {
  return c_function("lm_s64", "lm_philox_word", "lm_s64 index, lm_s64 key, lm_s64 counter", true, [](const TextLanes& lanes) {
    const auto number = [&](const char* name) { return Bits{&lanes, join("(lm_u64)", name)}; };
    const Bits index = number("index");
    return philox_word_of(philox_words(philox_start(index & ~uint64_t{3}, number("key"), number("counter"))), index).value;
  });
}

}  // namespace lamina::gpu
