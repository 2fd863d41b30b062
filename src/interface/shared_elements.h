// Whether two elements may share memory: two elements of one tensor, by its strides, or one element of each of two tensors.
// Comparing byte ranges is not enough: the columns of two tensors may alternate in one buffer. Both questions reduce to
// whether a linear equation has a solution within bounds. A search answers exactly; if it exceeds its step limit, the answer
// is "may".
#pragma once

#include "interface/logical_tensor.h"

namespace lamina {

// The tensor has a known shape and strides of 0 or more; without strides it is dense.
bool elements_may_overlap(const LogicalTensor& tensor);

// The tensors have known shapes and strides of 0 or more; the pointers are the addresses of their first elements. Allocates
// nothing.
bool tensors_may_overlap(const LogicalTensor& a, const void* memory_a, const LogicalTensor& b, const void* memory_b);

}  // namespace lamina
