// Ops that only move values. The strides of the args implement the movement. GenIndex computes each element's position along
// an axis. ScatterAdd is the gradient of Gather.
#include "interface/indices.h"
#include "kernels/op_lowering.h"

namespace lamina::kernel {

std::vector<Lowering> layout_lowerings() {
  using O = OpLowering;
  const auto copy = [](O& op) { op.out(0, op.in_as_is(0)); };
  return {{OpKind::Reorder, copy},
          {OpKind::StaticReshape, copy},
          {OpKind::StaticTranspose, copy},
          {OpKind::Slice, copy},
          {OpKind::Expand, copy},
          {OpKind::Gather, [](O& op) { op.out(0, op.in_entries(0, gathered_axis(op.view()).axis, 1)); }},
          {OpKind::ScatterAdd,
           [](O& op) {
             const bool ignores = op.has_attribute("ignore_index");
             op.out(0, op.sum_by_index(0, 1, scattered_axis(op.view()),
                                       ignores ? std::optional(op.attribute<int64_t>("ignore_index")) : std::nullopt));
           }},
          {OpKind::GenIndex,
           [](O& op) { op.out(0, op.k.cast(op.index_along(static_cast<int>(op.attribute<int64_t>("axis"))), Type::s32)); }},
          {OpKind::End, [](O&) {}}};
}

}  // namespace lamina::kernel
