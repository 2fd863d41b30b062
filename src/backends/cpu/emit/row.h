// What walks hand to what they walk for: the lanes at hand and the row in flight.
#pragma once

#include <vector>

#include "backends/cpu/emit/emission.h"

namespace lamina::cpu {

// One vector's worth of elements of the innermost dim; across rows, one position of all rows of the group.
struct Lanes {
  int width = 1;                  // 1: scalar types
  llvm::Value* offset = nullptr;  // i64, position of lane 0 along the innermost dim
  llvm::Value* mask = nullptr;    // <width x i1>; null: every lane is live
  size_t number = 0;              // of the vector, or the position, in its chunk
};

using ElementValues = ValueList;  // per node, at some lanes; null where not known

// A row in flight: where its tensors are, and the values known once per row.
struct Row {
  llvm::Value *number = nullptr, *place = nullptr;  // of all rows; among those of its tile
  ValueList pointers;                               // per arg, at the row's first element
  ValueList segment;                                // per arg, at the current run of the innermost dim
  ValueList index_base;           // per node of kind index: the part of outer dims (and of the current segment)
  ValueList kept;                 // per node: its values along the row, where they are kept between phases
  ValueList values;               // per node; null where not per row or not known yet
  ValueList mean_high, mean_low;  // per moments node: the mean as a sum of two floats (low null in f64)
  ValueList shifts;               // per moments node: what its differences are taken from, if known before the walk

  llvm::Value*& value(kernel::NodeIndex i) { return values[static_cast<size_t>(i)]; }
  llvm::Value* value(kernel::NodeIndex i) const { return values[static_cast<size_t>(i)]; }
};

// What outlives a phase, in a fixed order: visit(slot, value).
template <typename AnyRow, typename Visit>
void for_each_row_value(AnyRow& row, const Visit& visit) {
  size_t slot = 0;
  for (auto* values : {&row.values, &row.mean_high, &row.mean_low}) {
    for (auto& value : *values) visit(slot++, value);
  }
}
inline size_t row_value_count(const kernel::Kernel& kernel) { return 3 * kernel.nodes.size(); }

}  // namespace lamina::cpu
