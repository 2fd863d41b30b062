// The lanes and the row that walks pass to their body.
#pragma once

#include <vector>

#include "backends/cpu/emit/emission.h"

namespace lamina::cpu {

// The elements of the innermost dim in one vector; across rows, one position of all rows of the group.
struct Lanes {
  int width = 1;                  // 1: scalar types
  llvm::Value* offset = nullptr;  // i64, position of lane 0 along the innermost dim
  llvm::Value* mask = nullptr;    // <width x i1>; null: every lane is live
  size_t number = 0;              // index of the vector, or of the position, in its chunk
  bool begins_row = false;        // set only by walks that realign rows
};

// The 64 lanes at `offset`, the first `live` of which exist, in vectors of the machine's width.
std::vector<Lanes> chunk_at(Emission& e, llvm::Value* offset, int live);

// The form of a row value: one value of one row, or one lane per row of a group or of a batch.
struct Frame {
  int lanes = 1;
  llvm::Value* rows = nullptr;  // i64, the number of rows; null: all
  llvm::Value* mask = nullptr;  // <lanes x i1>, which lanes have a row; null: all
  ValueList group_ahead = {};   // per arg: the start of the group to prefetch; empty: unknown
};

// `count` positions of a group, starting at `offset`.
std::vector<Lanes> positions_at(Emission& e, const Frame& group, llvm::Value* offset, int count);

using ElementValues = ValueList;  // per node, at some lanes; null if unknown

// A row, a group or a batch of rows during emission: the addresses of its tensors, and its row values.
struct Row {
  Frame frame;
  llvm::Value *number = nullptr, *place = nullptr;  // among all rows; among those of its tile
  const std::vector<bool>* computes = nullptr;      // per node: whether its row value is computed here; null: all are
  // i1: the row starts a column block and overwrites the block's partial sums
  llvm::Value* begins_columns = nullptr;
  ValueList pointers;                     // per arg, at the row's first element
  ValueList segment;                      // per arg, at the current run of the innermost dim
  llvm::Value* segment_number = nullptr;  // of the current run within the row; null: 0
  ValueList index_base;                   // per node of kind index: the part of the outer dims (and of the current segment)
  ValueList live;                         // per node: the buffer of its values along the row, if they are live between phases
  ValueList values;                       // per node; null if it is not a row value or not known yet
  ValueList mean_high, mean_low;          // per moments node: the mean as a sum of two floats (low null in f64)
  ValueList shifts;                       // per moments node: the shift of its differences, if known before the walk

  llvm::Value*& value(kernel::NodeIndex i) { return values[static_cast<size_t>(i)]; }
  llvm::Value* value(kernel::NodeIndex i) const { return values[static_cast<size_t>(i)]; }
};

// Visits the values that outlive a phase, in a fixed order: visit(slot, value).
template <typename AnyRow, typename Visit>
void for_each_row_value(AnyRow& row, const Visit& visit) {
  size_t slot = 0;
  for (auto* values : {&row.values, &row.mean_high, &row.mean_low}) {
    for (auto& value : *values) visit(slot++, value);
  }
}
inline size_t row_value_count(const kernel::Kernel& kernel) { return 3 * kernel.nodes.size(); }

}  // namespace lamina::cpu
