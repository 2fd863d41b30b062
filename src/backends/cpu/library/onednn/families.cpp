#include "backends/cpu/library/onednn/families.h"

#include "backends/cpu/library/onednn/post_op_attributes.h"
#include "backends/cpu/library/onednn/primitive_call.h"

namespace lamina::cpu {

std::vector<LibraryOp> onednn_ops() {
  std::vector<LibraryOp> ops = onednn::matmul_ops();
  for (const LibraryOp& op : onednn::convolution_ops()) ops.push_back(op);
  for (LibraryOp& op : ops) {
    op.is_fast_in = onednn::computes_fast_in;
    op.takes_post_op = onednn::post_op_support;
  }
  return ops;
}

}  // namespace lamina::cpu
