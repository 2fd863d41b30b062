// Ops that convert a value to a wider type (Dequantize, a TypeCast), and are better computed by the group that reads the
// result:
//
//   Quantize ── Dequantize │ Add     ==>     Quantize │ Dequantize ── Add
//
// │ is the border of two groups, where the value is in memory: with one byte for an element instead of four.
#pragma once

#include <vector>

#include "passes/fusion/grow_group.h"

namespace lamina {

// Per op: whether it converts a value of its group to a wider type, and all readers of the result are in one other group.
std::vector<bool> widening_ops_for_other_groups(const FusionState& state);

// Of the ops that do not join their producers (FusionState::computed_by_readers), those that are in a group with a reader.
std::vector<bool> with_readers(const FusionState& state);

}  // namespace lamina
