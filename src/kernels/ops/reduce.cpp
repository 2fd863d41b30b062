// Reductions over axes: one value per row. BiasAddBackward sums over every axis except the channel. A sum may also be one over
// the rows of its group.
#include "kernels/op_lowering.h"

namespace lamina::kernel {

std::vector<Lowering> reduce_lowerings() {
  using O = OpLowering;
  return {
      {OpKind::ReduceL1, [](O& op) { op.out(0, op.k.reduce(Reduction::sum, abs(op.in(0)))); }},
      {OpKind::ReduceL2,
       [](O& op) {
         const Value x = op.in(0);
         op.out(0, sqrt(op.k.reduce(Reduction::sum, x * x)));
       }},
      {OpKind::ReduceMax, [](O& op) { op.out(0, op.k.reduce(Reduction::maximum, op.in(0))); }},
      {OpKind::ReduceMean, [](O& op) { op.out(0, op.k.reduce(Reduction::sum, op.in(0)) / op.row_size()); }},
      {OpKind::ReduceMin, [](O& op) { op.out(0, op.k.reduce(Reduction::minimum, op.in(0))); }},
      {OpKind::ReduceProd, [](O& op) { op.out(0, op.k.reduce(Reduction::product, op.in(0))); }},
      {OpKind::ReduceSum,
       [](O& op) {
         if (op.is_column(0)) return op.out_column("dst", op.in(0));
         op.out(0, op.k.reduce(Reduction::sum, op.in(0)));
       }},
      {OpKind::BiasAddBackward, [](O& op) { op.out(0, op.k.reduce(Reduction::sum, op.in(0))); }},
  };
}

}  // namespace lamina::kernel
