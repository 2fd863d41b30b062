// The spellings of enumerators in dumps, shared by the reader and the writer.
#pragma once

#include "interface/graph.h"

namespace lamina::json {

inline constexpr LayoutType kLayouts[] = {LayoutType::undef, LayoutType::any, LayoutType::strided, LayoutType::opaque};
inline constexpr PropertyType kProperties[] = {PropertyType::undef, PropertyType::variable, PropertyType::constant,
                                               PropertyType::host_scalar};
inline constexpr EngineKind kEngines[] = {EngineKind::cpu, EngineKind::gpu, EngineKind::any};
inline constexpr FpMathMode kFpMathModes[] = {FpMathMode::strict, FpMathMode::bf16, FpMathMode::f16, FpMathMode::any,
                                              FpMathMode::tf32};

const char* word_of(LayoutType layout);
const char* word_of(PropertyType property);
const char* word_of(EngineKind kind);
const char* word_of(FpMathMode mode);

}  // namespace lamina::json
