// Gather and ScatterAdd: an axis of a table, whose entries are named by a tensor of indices in its place.
#pragma once

#include <cstdint>

#include "interface/op_schema.h"

namespace lamina {

// Where the indices stand: table [before, extent, behind], the other tensor [before, indices, behind].
struct IndexedAxis {
  size_t axis = 0;     // in both
  size_t indices = 0;  // how many axes the indices have
};

// Of Gather, by its src and indices; fails through `view` where there is no such axis. Ranks are known.
IndexedAxis gathered_axis(const OpView& view);
// Of ScatterAdd, likewise.
IndexedAxis scattered_axis(const OpView& view);

// Element `position`, in row-major order, of indices of that shape is `value`: throws Error(invalid_arguments) that says so,
// and what is allowed for an axis of that extent.
[[noreturn]] void fail_index(const Op& op, const Dims& shape, int64_t position, int64_t value, int64_t extent);

}  // namespace lamina
