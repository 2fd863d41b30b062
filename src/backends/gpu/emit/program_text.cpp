#include "backends/gpu/emit/program_text.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "interface/number_text.h"
#include "interface/status.h"
#include "kernels/dialect/trigonometry.h"
#include "kernels/ops/power.h"
#include "kernels/polynomials.h"

namespace lamina::gpu {

namespace {

std::string literal(double value, const char* suffix) { return exact_text(value) + suffix; }

// The function lm_exp_tail_f32(x) or a similar one: Horner's scheme with one fma per step.
std::string polynomial(const char* name, std::span<const double> c, bool wide) {
  const char* type = wide ? "f64" : "f32";
  const char* suffix = wide ? "" : "f";
  std::string text = join("LM_FN lm_", type, " lm_", name, "_", type, "(lm_", type, " x) {\n  lm_", type,
                          " y = ", literal(c.back(), suffix), ";\n");
  for (size_t i = c.size() - 1; i-- > 0;) text += join("  y = lm_fma_", type, "(y, x, ", literal(c[i], suffix), ");\n");
  return text + "  return y;\n}\n";
}

// As in dialect/host.h: joins neighbouring terms in pairs until one is left.
std::string cdf_root() {
  const std::span<const double> c = kernel::kFloatPolynomials.cdf_root;
  std::vector<std::string> terms;
  for (size_t i = 1; i < c.size(); ++i) terms.push_back(literal(c[i], "f"));
  std::string text = "LM_FN lm_f32 lm_cdf_root_f32(lm_f32 x) {\n", power = "x";
  for (int level = 1; terms.size() > 1; ++level) {
    for (size_t i = 0; i < terms.size(); i += 2) {
      if (i + 1 == terms.size()) {
        terms[i / 2] = terms[i];
        continue;
      }
      const std::string name = join("t", level, "_", i / 2);
      text += join("  const lm_f32 ", name, " = lm_fma_f32(", terms[i + 1], ", ", power, ", ", terms[i], ");\n");
      terms[i / 2] = name;
    }
    terms.resize((terms.size() + 1) / 2);
    if (terms.size() > 1) text += join("  const lm_f32 p", level, " = ", power, " * ", power, ";\n");
    power = join("p", level);
  }
  return text + join("  return lm_fma_f32(x, ", terms[0], ", ", literal(c[0], "f"), ");\n}\n");
}

template <typename Polynomials>
std::string polynomials(const Polynomials& of, bool wide) {
  return polynomial("exp_tail", of.exp_tail, wide) + polynomial("log_tail", of.log_tail, wide) +
         polynomial("erf_tail", of.erf_tail, wide) + polynomial("mills_top", of.mills_top, wide) +
         polynomial("mills_rest", of.mills_rest, wide);
}

std::string real_functions(bool wide) {
  std::string text =
      wide ? polynomials(kernel::kDoublePolynomials, true) : polynomials(kernel::kFloatPolynomials, false) + cdf_root();
  text += wide ? "#define REAL lm_f64\n#define BITS lm_u64\n#define SBITS lm_s64\n#define LM(name) name##_f64\n#define "
                 "K(literal) literal\n"
                 "#define PICK(a, b) b\n#define MANTISSA 52\n#define BIAS 1023\n#define SINGLE 0\n"
               : "#define REAL lm_f32\n#define BITS lm_u32\n#define SBITS lm_s32\n#define LM(name) name##_f32\n#define "
                 "K(literal) literal##f\n"
                 "#define PICK(a, b) a##f\n#define MANTISSA 23\n#define BIAS 127\n#define SINGLE 1\n";
  text += text::kReal;
  for (const char* macro : {"REAL", "BITS", "SBITS", "LM", "K", "PICK", "MANTISSA", "BIAS", "SINGLE"})
    text += join("#undef ", macro, "\n");
  return text;
}

std::string trigonometry() {
  const auto& c = kernel::kTrigonometry;
  std::string digits;
  for (const uint32_t group : kernel::kTwoOverPi) digits += join(digits.empty() ? "" : ", ", group);
  return polynomial("short_sin_tail", c.short_sin_tail, true) + polynomial("short_cos_tail", c.short_cos_tail, true) +
         polynomial("sin_tail", c.sin_tail, true) + polynomial("cos_tail", c.cos_tail, true) +
         join("LM_FN lm_f64 lm_two_over_pi_f64(int group) {\n  const lm_u32 groups[] = {", digits,
              "};\n  return (lm_f64)groups[group];\n}\n") +
         text::kTrigonometry;
}

bool uses(const kernel::Kernel& kernel, kernel::MapOp op) {
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(),
                     [op](const kernel::Node& n) { return n.kind == kernel::NodeKind::map && n.op == op; });
}

// The words of a language as macros.
std::string words(const Language& language) {
  std::string text;
  const auto define = [&](const std::string& macro, const std::string& as) { text += join("#define ", macro, " ", as, "\n"); };
  define("LM_FN", language.function);
  define("LM_KERNEL(size, resident)", language.kernel);
  define("LM_GLOBAL", language.global);
  define("LM_LOCAL", language.shared);
  define("LM_SHARED", language.shared_variable);
  define("LM_RESTRICT", language.restrict_word);
  define("LM_S8", language.s8);
  define("LM_S64", language.s64);
  define("LM_GROUP", join("((lm_s64)", language.group, ")"));
  define("LM_THREAD", join("((int)", language.thread, ")"));
  define("LM_BARRIER", language.barrier);
  if (*language.shuffle != '\0') define("LM_SHUFFLE", language.shuffle);
  for (const auto& [functions, suffix] : {std::pair(language.f32, "F32"), std::pair(language.f64, "F64")}) {
    define(join("LM_FMA_", suffix), functions.fma);
    define(join("LM_DIVIDE_", suffix), functions.divide);
    define(join("LM_SQRT_", suffix), functions.square_root);
    define(join("LM_FLOOR_", suffix), functions.floor);
    define(join("LM_BITS_", suffix), functions.bits);
    define(join("LM_REAL_", suffix), functions.real);
  }
  return text;
}

std::string language_prelude(const Language& language, bool wide, bool aligned, bool disjoint) {
  return join("#define LM_F64 ", wide ? 1 : 0, "\n#define LM_ALIGNED ", aligned ? 1 : 0, "\n#define LM_DISJOINT ",
              disjoint ? 1 : 0, "\n", language.start, words(language), text::kPrelude, language.conversions);
}

}  // namespace

std::string conversions_prelude(const Language& language) {
  return language_prelude(language, false, false, true) + text::kConvert + "\n";
}

bool needs_general_power(double exponent) { return kernel::power_form(exponent) == kernel::PowerForm::general; }

std::string program_prelude(const kernel::Kernel& kernel, const Language& language, bool aligned, bool disjoint) {
  const bool wide = needs_f64(kernel);
  std::string text = language_prelude(language, wide, aligned, disjoint);
  text += real_functions(false);
  if (wide) text += real_functions(true);
  text += text::kConvert;
  if (wide) text += text::kConvertF64;
  if (uses(kernel, kernel::MapOp::philox_word)) text += text::kPhilox;
  if (wide && uses(kernel, kernel::MapOp::power)) text += text::kPower;
  if (uses(kernel, kernel::MapOp::sin) || uses(kernel, kernel::MapOp::cos)) text += trigonometry();
  return text + text::kTeams + "\n";
}

}  // namespace lamina::gpu
