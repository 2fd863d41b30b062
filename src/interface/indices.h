// Gather and ScatterAdd: the axis of the table that is indexed, and the axes of the indices, which replace it in the other
// tensor. GroupedMatMul: the offsets of its groups.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interface/index_checks.h"
#include "interface/op_schema.h"

namespace lamina {

// The position of the axes: the table is [before, extent, after], the other tensor [before, indices, after].
struct IndexedAxis {
  size_t axis = 0;     // the same in both tensors
  size_t indices = 0;  // the number of axes of the indices
};

// For Gather, from its src and indices; fails through `view` if there is no such axis. The ranks are known.
IndexedAxis gathered_axis(const OpView& view);
// The same for ScatterAdd.
IndexedAxis scattered_axis(const OpView& view);

// The port that their errors name.
inline OpPlace place_of_indices(const Op& op) { return place_of(op, "input indices"); }

// Throws Error(index_out_of_range): element `position` (in row-major order) of the indices, whose shape is `shape`, has the
// illegal value `value`. The sentence gives the values allowed for an axis of `extent`.
[[noreturn]] inline void fail_index(const Op& op, const Dims& shape, int64_t position, int64_t value, int64_t extent) {
  fail_index(place_of_indices(op), shape, position, value, extent);
}

// As the functions of index_checks.h.
inline void check_group_end(const Op& op, int64_t group, int64_t offset, int64_t rows) {
  if (offset < 0 || offset > rows) check_group_end(place_of(op, "input offsets"), group, offset, rows);
}
inline void check_indices(const Op& op, const LogicalTensor& indices, const void* memory, int64_t extent) {
  check_indices(place_of_indices(op), indices, memory, extent);
}
inline void sort_indices(const Op& op, const LogicalTensor& indices, const void* memory, int64_t extent,
                         const IndexOrder& order, int64_t* sorted) {
  sort_indices(place_of_indices(op), indices, memory, extent, order, sorted);
}

}  // namespace lamina
