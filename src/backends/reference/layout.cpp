// Ops that move values: reshape, transpose, reorder, concat, slice, expand; and GenIndex, which computes positions.
#include <algorithm>

#include "backends/reference/op_run.h"
#include "interface/op_schema.h"
#include "interface/shape_rules.h"

namespace lamina::reference {
namespace {

// Calls move(src, dst) for the values and, if the tensors have them, for the integers.
template <typename Move>
void move_all(const Tensor& src, Tensor& dst, const Move& move) {
  move(src.values, dst.values);
  if (!is_long_integer(src.dtype)) return;
  dst.integers.resize(dst.values.size());
  move(src.integers, dst.integers);
}

// Elements keep their row-major order. The graph has already resolved 0 and -1 in attribute shape.
void copy(const OpRun& run) {
  move_all(run.in(0), run.out(0), [](const auto& from, auto& to) { to = from; });
}

void bit_cast(const OpRun& run) {
  const auto dense = [](const Tensor& tensor) {
    LogicalTensor description;
    description.dtype = tensor.dtype;
    description.shape = tensor.shape;
    description.layout = LayoutType::strided;
    description.strides = dense_strides(tensor.shape);
    return description;
  };
  const LogicalTensor from = dense(run.in(0)), to = dense(run.out(0));
  std::vector<std::byte> memory(static_cast<size_t>(from.byte_size()));
  store(run.in(0), from, memory.data());
  run.out(0) = load(to, memory.data());
}

// Copies the elements of src from `first` on, `strides` apart, in the order of dst.
void pick(const Tensor& src, Tensor& dst, const Dims& strides, int64_t first) {
  move_all(src, dst, [&](const auto& from, auto& to) {
    for_each_offset_parallel<2>(dst.shape, {dense_strides(dst.shape), strides}, [&](const auto& at) {
      to[static_cast<size_t>(at[0])] = from[static_cast<size_t>(first + at[1])];
    });
  });
}

// Dim i of dst is dim order[i] of src. An empty order reverses the dims.
void transpose(const OpRun& run) {
  const Tensor& src = run.in(0);
  const auto& order = run.attribute<std::vector<int64_t>>("order");
  const Dims dense = dense_strides(src.shape);
  const size_t rank = src.shape.size();
  Dims strides(rank);
  for (size_t dim = 0; dim < rank; ++dim)
    strides[dim] = order.empty() ? dense[rank - 1 - dim] : dense[static_cast<size_t>(wrap_axis(order[dim], src.rank()))];
  pick(src, run.out(0), strides, 0);
}

// dst[i] = src[start + i * step] per axis.
void slice(const OpRun& run) {
  const Tensor& src = run.in(0);
  Dims strides = dense_strides(src.shape);
  const std::vector<AxisSlice> slices = slices_of(run.view(), src.shape);
  int64_t first = 0;
  for (size_t axis = 0; axis < slices.size(); ++axis) {
    first += slices[axis].start * strides[axis];
    strides[axis] *= slices[axis].step;
  }
  pick(src, run.out(0), strides, first);
}

// The last dims of dst are those of src. Dims of src with extent 1 are repeated.
void expand(const OpRun& run) {
  const Tensor& src = run.in(0);
  Tensor& dst = run.out(0);
  const Dims dense = dense_strides(src.shape);
  Dims strides(dst.shape.size(), 0);
  const size_t added = dst.shape.size() - src.shape.size();
  for (size_t dim = 0; dim < src.shape.size(); ++dim)
    if (src.shape[dim] != 1) strides[added + dim] = dense[dim];
  pick(src, dst, strides, 0);
}

void concat(const OpRun& run) {
  Tensor& dst = run.out(0);
  const auto axis = static_cast<size_t>(wrap_axis(run.attribute<int64_t>("axis"), dst.rank()));
  const int64_t outer = count_of(dst.shape, 0, axis);
  const int64_t dst_chunk = count_of(dst.shape, axis, dst.shape.size());
  int64_t begin = 0;
  for (size_t port = 0; port < run.input_count(); ++port) {
    const Tensor& src = run.in(port);
    const int64_t chunk = count_of(src.shape, axis, src.shape.size());
    move_all(src, dst, [&](const auto& from, auto& to) {
      parallel_for(outer, chunk, [&](int64_t block) {
        std::copy_n(from.begin() + block * chunk, chunk, to.begin() + block * dst_chunk + begin);
      });
    });
    begin += chunk;
  }
}

void gen_index(const OpRun& run) {
  Tensor& dst = run.out(0);
  const auto axis = static_cast<size_t>(wrap_axis(run.attribute<int64_t>("axis"), dst.rank()));
  const int64_t inner = count_of(dst.shape, axis + 1, dst.shape.size());
  parallel_elements(dst.size(), [&](int64_t i) { dst[i] = static_cast<double>(i / inner % dst.shape[axis]); });
}

}  // namespace

Evaluators layout_evaluators() {
  return {
      {OpKind::BitCast, bit_cast}, {OpKind::Reorder, copy}, {OpKind::StaticReshape, copy}, {OpKind::StaticTranspose, transpose},
      {OpKind::Concat, concat},    {OpKind::Slice, slice},  {OpKind::Expand, expand},      {OpKind::GenIndex, gen_index}};
}

}  // namespace lamina::reference
