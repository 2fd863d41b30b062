// Every pattern that passes search for. The order of a list is the precedence: a pattern is searched in the whole graph
// before the next one, so larger patterns precede those that they contain.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "passes/core/pattern.h"

namespace lamina::pattern {

// The op that replaces a match. Inputs are given by the names of its ports.
struct RaisedOp {
  OpKind kind;
  Attributes attributes;                                   // those with default values may be absent
  std::vector<std::pair<std::string, ValueIndex>> inputs;  // kNoValue: the match has no such value and cannot be raised
  // Output ports other than dst that the op can have, and the names of the terms that compute their values.
  std::vector<std::pair<std::string, std::string>> statistics = {};
};

// An op as a formula of small ops: the pattern, and the op that replaces it.
struct Decomposition {
  Pattern pattern;
  RaisedOp (*raise)(const Match& match);
};

Decomposition layer_norm_with_affine();
Decomposition layer_norm();
Decomposition rms_norm_with_gamma();
Decomposition rms_norm();
Decomposition softmax();
Decomposition log_softmax();
Decomposition gelu();
Decomposition swish();
Decomposition dequantize();

const std::vector<Decomposition>& decompositions();

}  // namespace lamina::pattern
