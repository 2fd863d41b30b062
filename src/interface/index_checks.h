// Indices in memory, for Gather, ScatterAdd and GroupedMatMul: checks them, and sorts by them. Independent of schemas.
#pragma once

#include <cstdint>
#include <optional>

#include "interface/element.h"
#include "interface/logical_tensor.h"
#include "interface/status.h"

namespace lamina {

// Throws Error(index_out_of_range): element `position` (in row-major order) of the indices, whose shape is `shape`, has the
// illegal value `value`. The sentence gives the values allowed for an axis of `extent`.
[[noreturn]] void fail_index(const OpPlace& place, const Dims& shape, int64_t position, int64_t value, int64_t extent);

// Calls visit(position, index) for each element of `indices` (s32 or s64, in `memory`), in row-major order.
template <typename Visit>
void for_each_index(const LogicalTensor& indices, const void* memory, const Visit& visit) {
  const Dims& shape = *indices.shape;
  const int64_t count = indices.element_count();
  const bool dense = is_dense(indices);
  for (int64_t position = 0; position < count; ++position) {
    int64_t offset = dense ? position : 0, rest = position;
    for (size_t d = dense ? 0 : shape.size(); d-- > 0; rest /= shape[d]) offset += rest % shape[d] * indices.strides[d];
    visit(position, indices.dtype == DataType::s64 ? load_element<int64_t>(memory, offset)
                                                   : int64_t{load_element<int32_t>(memory, offset)});
  }
}

// Fails as above for the first element of `indices` (s32 or s64, in `memory`) that is outside -extent..extent - 1.
void check_indices(const OpPlace& place, const LogicalTensor& indices, const void* memory, int64_t extent);

// Throws Error(index_out_of_range) unless the offset where a group of a GroupedMatMul ends is one of its `rows`, or their
// number. `place`: of input offsets.
void check_group_end(const OpPlace& place, int64_t group, int64_t offset, int64_t rows);

// What to sort by index: elements of a tensor that has `steps` elements along each axis of the indices, from one index to the
// next. Those with the index `ignored` are left out.
struct IndexOrder {
  Dims steps;
  std::optional<int64_t> ignored;
};

// Checks as above, then sorts: sorted[e] to sorted[e + 1] - 1 are the places in `sorted` where the positions of the elements
// with index e are, in the order of the indices.
void sort_indices(const OpPlace& place, const LogicalTensor& indices, const void* memory, int64_t extent,
                  const IndexOrder& order, int64_t* sorted);
// The number of elements of `sorted`.
inline int64_t sorted_size(const LogicalTensor& indices, int64_t extent) { return extent + 1 + indices.element_count(); }

}  // namespace lamina
