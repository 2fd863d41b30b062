#include "interface/index_checks.h"

#include <algorithm>
#include <utility>

namespace lamina {

void fail_index(const OpPlace& where, const Dims& shape, int64_t position, int64_t value, int64_t extent) {
  Dims place(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; position /= shape[axis]) place[axis] = position % shape[axis];
  const std::string allowed = extent == 0 ? "none, the axis has no entries" : join(-extent, "..", extent - 1);
  throw Error(Status::index_out_of_range, where,
              join("input indices holds ", value, " at position ", describe(place), ", allowed is ", allowed));
}

void check_group_end(const OpPlace& where, int64_t group, int64_t offset, int64_t rows) {
  if (offset >= 0 && offset <= rows) return;
  throw Error(Status::index_out_of_range, where,
              join("input offsets holds ", offset, " at position [", group, "], allowed is 0..", rows));
}

void check_indices(const OpPlace& where, const LogicalTensor& indices, const void* memory, int64_t extent) {
  for_each_index(indices, memory, [&](int64_t position, int64_t index) {
    if (index < -extent || index >= extent) fail_index(where, *indices.shape, position, index, extent);
  });
}

void sort_indices(const OpPlace& where, const LogicalTensor& indices, const void* memory, int64_t extent,
                  const IndexOrder& order, int64_t* sorted) {
  const Dims& shape = *indices.shape;
  const auto is_ignored = [&](int64_t index) { return order.ignored && index == *order.ignored; };
  int64_t* const ends = sorted + 1;  // first the number of elements per index, then where the next one is written
  std::fill_n(sorted, extent + 1, int64_t{0});
  for_each_index(indices, memory, [&](int64_t position, int64_t index) {
    if (is_ignored(index)) return;
    if (index < -extent || index >= extent) fail_index(where, shape, position, index, extent);
    ++ends[index < 0 ? index + extent : index];
  });
  sorted[0] = extent + 1;
  for (int64_t entry = 0, next = sorted[0]; entry < extent; ++entry) next += std::exchange(ends[entry], next);
  for_each_index(indices, memory, [&](int64_t position, int64_t index) {
    if (is_ignored(index)) return;
    int64_t element = 0;
    for (size_t axis = shape.size(); axis-- > 0; position /= shape[axis]) element += position % shape[axis] * order.steps[axis];
    sorted[ends[index < 0 ? index + extent : index]++] = element;
  });
}

}  // namespace lamina
