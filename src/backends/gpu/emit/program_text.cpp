#include "backends/gpu/emit/program_text.h"

#include <algorithm>
#include <map>
#include <vector>

#include "backends/gpu/emit/math_text.h"
#include "interface/status.h"

namespace lamina::gpu {

namespace {

// Rows that are copied ahead (languages/language.h), in languages whose copies are not beside the computation.
constexpr char kPlainCopies[] = R"(
#define LM_COPIED_ROWS(bytes) LM_SHARED char copied[bytes] __attribute__((aligned(16)))
#define LM_COPY_AHEAD(count, to, from) LM_LOAD(count, to, from)
LM_FN void lm_end_copies(void) {}
#define LM_WAIT_FOR_COPIES(pending)
)";

std::string real_arithmetic(bool wide) {
  std::string text =
      wide ? "#define REAL lm_f64\n#define BITS lm_u64\n#define LM(name) name##_f64\n#define K(literal) literal\n"
           : "#define REAL lm_f32\n#define BITS lm_u32\n#define LM(name) name##_f32\n#define K(literal) literal##f\n";
  text += text::kReal;
  for (const char* macro : {"REAL", "BITS", "LM", "K"}) text += join("#undef ", macro, "\n");
  return text;
}

std::string elementary_functions(const kernel::Kernel& kernel) {
  std::map<std::string, kernel::Node> used;
  for (const kernel::Node& n : kernel.nodes)
    if (is_elementary(n)) used.emplace(function_name(n), n);
  std::string text;
  for (const auto& [name, map] : used) text += function_text(map).text;
  return text;
}

bool uses(const kernel::Kernel& kernel, kernel::MapOp op) {
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(),
                     [op](const kernel::Node& n) { return n.kind == kernel::NodeKind::map && n.op == op; });
}

// The integers in the kernel's memory and arithmetic.
std::vector<DataType> integers_of(const kernel::Kernel& kernel) {
  std::vector<DataType> integers;
  const auto add = [&](DataType type) {
    if (is_integer(type) && std::find(integers.begin(), integers.end(), type) == integers.end()) integers.push_back(type);
  };
  for (const kernel::Arg& arg : kernel.args) add(arg.dtype);
  for (const kernel::Node& node : kernel.nodes) {
    add(kernel::data_type_of(node.type));
    if (node.dtype != DataType::undef) add(node.dtype);
  }
  return integers;
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

std::string conversions_prelude(const Language& language, bool wide) {
  const std::string arithmetic = wide ? real_arithmetic(false) + real_arithmetic(true) : "";
  return language_prelude(language, wide, false, true) + arithmetic + small_float_text(wide) + "\n";
}

std::string program_prelude(const kernel::Kernel& kernel, const Schedule& schedule, const Language& language, bool wide,
                            bool aligned, bool disjoint) {
  std::string text = language_prelude(language, wide, aligned, disjoint);
  text += real_arithmetic(false);
  if (wide) text += real_arithmetic(true);
  text += elementary_functions(kernel);
  text += small_float_text(wide);
  text += integer_text(wide, integers_of(kernel));
  if (uses(kernel, kernel::MapOp::philox_word)) text += philox_text();
  text += join(text::kTeams, "\n");
  if (schedule.cluster) text += language.clusters;
  if (schedule.copies_ahead) text += *language.copies_ahead != '\0' ? language.copies_ahead : kPlainCopies;
  return text;
}

}  // namespace lamina::gpu
