/* Shape, strides in elements and type of a tensor. */
#ifndef LAMINA_COMPAT_INFINIOP_TENSOR_DESCRIPTOR_H
#define LAMINA_COMPAT_INFINIOP_TENSOR_DESCRIPTOR_H

#include "../infinicore.h"

typedef struct InfiniopTensorDescriptor* infiniopTensorDescriptor_t;

/* If `strides` is null, the tensor is dense row-major. The operator's descriptor checks whether the operator supports it. */
INFINI_API infiniStatus_t infiniopCreateTensorDescriptor(infiniopTensorDescriptor_t* desc_ptr, size_t ndim, const size_t* shape,
                                                         const ptrdiff_t* strides, infiniDtype_t dtype);
INFINI_API infiniStatus_t infiniopDestroyTensorDescriptor(infiniopTensorDescriptor_t desc);

#endif
