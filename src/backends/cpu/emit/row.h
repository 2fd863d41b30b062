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
  bool begins_row = false;        // only told where a walk realigns rows
};

// The 64 lanes at `offset`, of which the first `live` exist, in vectors of the machine's width.
std::vector<Lanes> chunk_at(Emission& e, llvm::Value* offset, int live);

// How a value per row lies: one of one row, or a lane for each row of a group or of a batch.
struct Frame {
  int lanes = 1;
  llvm::Value* rows = nullptr;  // i64, how many of them there are, and
  llvm::Value* mask = nullptr;  // <lanes x i1>; both null: all
  ValueList next_group = {};    // per arg: where it begins; empty: not known
};

// `count` positions of a group from `offset` on.
std::vector<Lanes> positions_at(Emission& e, const Frame& group, llvm::Value* offset, int count);

using ElementValues = ValueList;  // per node, at some lanes; null where not known

// A row in flight, or a group or batch of rows: where its tensors are, and the values known once per row.
struct Row {
  Frame frame;
  llvm::Value *number = nullptr, *place = nullptr;  // of all rows; among those of its tile
  const std::vector<bool>* computes = nullptr;      // per node: whether its value per row is computed here; null: all are
  llvm::Value* begins_columns = nullptr;            // i1: the row starts a column block and overwrites its partial sums
  ValueList pointers;                               // per arg, at the row's first element
  ValueList segment;                                // per arg, at the current run of the innermost dim
  llvm::Value* segment_number = nullptr;            // of the current run among the row's; null: 0
  ValueList index_base;           // per node of kind index: the part of outer dims (and of the current segment)
  ValueList live;                 // per node: its values along the row, where they are kept between phases
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
