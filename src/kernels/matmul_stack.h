// A MatMul as a stack of plain matrix products. Numpy's rank rules, the transposes and the broadcasts are resolved here for
// every backend.
#pragma once

#include "interface/logical_tensor.h"
#include "kernels/matrix_stack.h"
#include "kernels/plan.h"

namespace lamina::kernel {

// `step` must be a MatMul.
MatmulStack matmul_stack(const LibraryStep& step);

// The matrices of a tensor that is broadcast over that step's dst, as a bias is.
MatrixStack over_dst(const LibraryStep& step, const LogicalTensor& tensor);

// The same products with as few batch dims as the strides allow. Dims of one entry are removed. Neighbouring dims that are
// contiguous to each other in every tensor are merged. A last dim becomes rows if it shares the weights and continues the
// rows of src, bias and dst.
MatmulStack collapsed(MatmulStack stack);

}  // namespace lamina::kernel
