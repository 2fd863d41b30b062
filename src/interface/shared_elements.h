// Whether two elements may be in the same memory: two of one tensor, by its strides, or one of each of two tensors. A byte
// range does not answer this: the columns of two tensors may alternate in one buffer. Both questions ask whether a linear
// equation has a solution within bounds. A search answers it exactly; one that takes too long answers "may".
#pragma once

#include "interface/logical_tensor.h"

namespace lamina {

// Of a tensor of known shape with strides of 0 or more; without strides it is dense.
bool elements_may_overlap(const LogicalTensor& tensor);

// Of tensors of known shape with strides of 0 or more, and where their first elements are. Allocates nothing.
bool tensors_may_overlap(const LogicalTensor& a, const void* memory_a, const LogicalTensor& b, const void* memory_b);

}  // namespace lamina
