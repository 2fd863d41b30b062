// Every pattern that passes look for. The order of a list is the precedence: a pattern is looked for in the whole graph before
// the next one is, so larger patterns stand before those that they hold.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "passes/pattern.h"

namespace lamina::pattern {

// The op that stands for what a pattern matched, by the names of its ports.
struct RaisedOp {
  OpKind kind;
  Attributes attributes;                                   // defaults may be left out
  std::vector<std::pair<std::string, ValueIndex>> inputs;  // kNoValue: the match has no such value, it cannot be raised
  // Output ports beside dst that the op can have, and the names of the terms that make their values.
  std::vector<std::pair<std::string, std::string>> statistics = {};
};

// An op written out in small ops: what it looks like, and what it is.
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

const std::vector<Decomposition>& decompositions();

}  // namespace lamina::pattern
