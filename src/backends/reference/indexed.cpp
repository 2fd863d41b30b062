// Gather and its gradient.
#include "backends/reference/op_run.h"
#include "interface/indices.h"

namespace lamina::reference {
namespace {

int64_t index_at(const Tensor& indices, int64_t i) { return static_cast<int64_t>(integer_at(indices, i)); }

// Returns a non-negative index. Fails if the entry is out of range.
int64_t entry_at(const OpRun& run, const Tensor& indices, int64_t i, int64_t extent) {
  const int64_t index = index_at(indices, i);
  if (index < -extent || index >= extent) fail_index(run.op(), indices.shape, i, index, extent);
  return index < 0 ? index + extent : index;
}

template <typename Values>
void gather_values(const std::vector<int64_t>& entries, int64_t outer, int64_t extent, int64_t inner, const Values& from,
                   Values& to) {
  const auto count = static_cast<int64_t>(entries.size());
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < count; ++i)
      for (int64_t k = 0; k < inner; ++k)
        to[static_cast<size_t>((o * count + i) * inner + k)] =
            from[static_cast<size_t>((o * extent + entries[static_cast<size_t>(i)]) * inner + k)];
}

void gather(const OpRun& run) {
  const Tensor &src = run.in("src"), &indices = run.in("indices");
  Tensor& dst = run.out("dst");
  const size_t axis = gathered_axis(run.view()).axis;
  const int64_t extent = src.shape[axis], outer = count_of(src.shape, 0, axis);
  const int64_t inner = count_of(src.shape, axis + 1, src.shape.size());
  std::vector<int64_t> entries;
  for (int64_t i = 0; i < indices.size(); ++i) entries.push_back(entry_at(run, indices, i, extent));
  gather_values(entries, outer, extent, inner, src.values, dst.values);
  if (!is_long_integer(src.dtype)) return;
  dst.integers.resize(dst.values.size());
  gather_values(entries, outer, extent, inner, src.integers, dst.integers);
}

void scatter_add(const OpRun& run) {
  const Tensor &src = run.in("src"), &indices = run.in("indices");
  Tensor& dst = run.out("dst");
  const size_t axis = scattered_axis(run.view()).axis;
  const int64_t extent = dst.shape[axis], outer = count_of(dst.shape, 0, axis);
  const int64_t inner = count_of(dst.shape, axis + 1, dst.shape.size());
  const bool ignores = run.op().has_attribute("ignore_index");
  for (int64_t i = 0; i < indices.size(); ++i) {
    if (ignores && index_at(indices, i) == run.attribute<int64_t>("ignore_index")) continue;
    const int64_t entry = entry_at(run, indices, i, extent);
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t k = 0; k < inner; ++k) dst[(o * extent + entry) * inner + k] += src[(o * indices.size() + i) * inner + k];
  }
}

}  // namespace

Evaluators indexed_evaluators() { return {{OpKind::Gather, gather}, {OpKind::ScatterAdd, scatter_add}}; }

}  // namespace lamina::reference
