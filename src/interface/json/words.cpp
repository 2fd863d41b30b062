#include "interface/json/words.h"

namespace lamina::json {

const char* word_of(LayoutType layout) { return name_of(layout); }

const char* word_of(PropertyType property) { return name_of(property); }

const char* word_of(EngineKind kind) {
  switch (kind) {
    case EngineKind::any: return "any";
    case EngineKind::gpu: return "gpu";
    case EngineKind::cpu: break;
  }
  return "cpu";
}

const char* word_of(FpMathMode mode) {
  switch (mode) {
    case FpMathMode::bf16: return "bf16";
    case FpMathMode::f16: return "f16";
    case FpMathMode::any: return "any";
    case FpMathMode::tf32: return "tf32";
    case FpMathMode::strict: break;
  }
  return "strict";
}

}  // namespace lamina::json
