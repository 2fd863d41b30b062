// Ops that move values: reshape, transpose, reorder, concat; GenIndex, which makes positions; End, which does nothing.
#include "backends/reference/op_run.h"
#include "interface/op_schema.h"

namespace lamina::reference {
namespace {

// Elements keep their row-major order; the graph has resolved 0 and -1 of attribute shape already.
void copy(const OpRun& run) { run.out(0).values = run.in(0).values; }

// Dim i of dst is dim order[i] of src; an empty order reverses the dims.
void transpose(const OpRun& run) {
  const Tensor& src = run.in(0);
  const auto& order = run.attribute<std::vector<int64_t>>("order");
  const Dims dense = dense_strides(src.shape);
  const size_t rank = src.shape.size();
  Dims strides(rank);
  for (size_t dim = 0; dim < rank; ++dim)
    strides[dim] = order.empty() ? dense[rank - 1 - dim] : dense[static_cast<size_t>(wrap_axis(order[dim], src.rank()))];
  Tensor& dst = run.out(0);
  int64_t i = 0;
  for_each_offset<1>(dst.shape, {strides}, [&](const auto& at) { dst[i++] = src[at[0]]; });
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
    for (int64_t block = 0; block < outer; ++block)
      for (int64_t i = 0; i < chunk; ++i) dst[block * dst_chunk + begin + i] = src[block * chunk + i];
    begin += chunk;
  }
}

void gen_index(const OpRun& run) {
  Tensor& dst = run.out(0);
  const auto axis = static_cast<size_t>(wrap_axis(run.attribute<int64_t>("axis"), dst.rank()));
  const int64_t inner = count_of(dst.shape, axis + 1, dst.shape.size());
  for (int64_t i = 0; i < dst.size(); ++i) dst[i] = static_cast<double>(i / inner % dst.shape[axis]);
}

void end(const OpRun&) {}

}  // namespace

Evaluators layout_evaluators() {
  return {{OpKind::Reorder, copy},  {OpKind::StaticReshape, copy}, {OpKind::StaticTranspose, transpose},
          {OpKind::Concat, concat}, {OpKind::GenIndex, gen_index}, {OpKind::End, end}};
}

}  // namespace lamina::reference
