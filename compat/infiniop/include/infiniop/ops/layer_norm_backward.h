/* The gradient of layer normalisation over the last dim, from the standardised input and the standard deviation:
 *   x = input_standardization, s = input_std_deviation, g = weight * grad_output
 *   grad_input = (g - mean(g) - x * mean(g * x)) / s, grad_weight = sum(grad_output * x), grad_bias = sum(grad_output)
 *
 * Each descriptor builds a graph, compiles it once and executes it. A descriptor is immutable: many threads may execute it at
 * once. */
#ifndef LAMINA_COMPAT_INFINIOP_LAYER_NORM_BACKWARD_H
#define LAMINA_COMPAT_INFINIOP_LAYER_NORM_BACKWARD_H

#include "../handle.h"
#include "../tensor_descriptor.h"

typedef struct InfiniopLayerNormBackwardDescriptor* infiniopLayerNormBackwardDescriptor_t;

/* Tensors: grad_input, grad_output, input_standardization (..., L), contiguous along L; grad_weight, grad_bias, weight (L);
 * input_std_deviation (...); all of one type, F16, F32 or BF16. If grad_bias_desc is null, grad_bias is not computed.
 *   BAD_PARAM                  a null pointer, or a handle or descriptor that was destroyed
 *   DEVICE_TYPE_NOT_SUPPORTED  the handle is for another device than the CPU
 *   BAD_TENSOR_DTYPE           a type other than these three, or different types
 *   BAD_TENSOR_SHAPE           shapes that contradict one another
 *   BAD_TENSOR_STRIDES         L not contiguous, a negative stride, an output whose elements share memory */
INFINI_API infiniStatus_t infiniopCreateLayerNormBackwardDescriptor(
    infiniopHandle_t handle, infiniopLayerNormBackwardDescriptor_t* desc_ptr, infiniopTensorDescriptor_t grad_input_desc,
    infiniopTensorDescriptor_t grad_weight_desc, infiniopTensorDescriptor_t grad_bias_desc,
    infiniopTensorDescriptor_t grad_output_desc, infiniopTensorDescriptor_t weight_desc,
    infiniopTensorDescriptor_t input_standardization_desc, infiniopTensorDescriptor_t input_std_deviation_desc);

/* BAD_PARAM for null or a destroyed descriptor. */
INFINI_API infiniStatus_t infiniopGetLayerNormBackwardWorkspaceSize(infiniopLayerNormBackwardDescriptor_t desc, size_t* size);

/* BAD_PARAM a null pointer (except grad_bias if grad_bias_desc was null), a destroyed descriptor
 *   INSUFFICIENT_WORKSPACE  workspace_size below the descriptor's workspace size
 *   BAD_TENSOR_DTYPE        an address that is misaligned for the tensors' type
 *   INTERNAL_ERROR          an error in lamina, or out of memory */
INFINI_API infiniStatus_t infiniopLayerNormBackward(infiniopLayerNormBackwardDescriptor_t desc, void* workspace,
                                                    size_t workspace_size, void* grad_input, void* grad_weight, void* grad_bias,
                                                    const void* grad_output, const void* weight,
                                                    const void* input_standardization, const void* input_std_deviation,
                                                    void* stream);

/* Accepts null. BAD_PARAM for a descriptor that was destroyed before. */
INFINI_API infiniopStatus_t infiniopDestroyLayerNormBackwardDescriptor(infiniopLayerNormBackwardDescriptor_t desc);

#endif
