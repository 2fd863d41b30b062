#include "backends/cpu/library/along_axis/along_axis_ops.h"

#include "backends/cpu/library/library_ops.h"

namespace lamina::cpu {

std::vector<LibraryOp> along_axis_ops() {
  return {{.kind = OpKind::TopK, .compile = compile_top_k},
          {.kind = OpKind::CumSum, .compile = compile_cum_sum},
          {.kind = OpKind::CumProd, .compile = compile_cum_prod},
          {.kind = OpKind::LinearRecurrence, .compile = compile_recurrence},
          {.kind = OpKind::LinearRecurrenceBackward, .compile = compile_recurrence}};
}

}  // namespace lamina::cpu
