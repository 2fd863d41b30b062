/* Interoperability with the caller's CUDA objects. The data handle of a tensor of these engines is a device pointer; that of
 * a host scalar is a host pointer. lamina opens the driver and NVRTC at run time: linking it needs no CUDA. */
#ifndef LAMINA_GRAPH_CUDA_H
#define LAMINA_GRAPH_CUDA_H

#include "graph/lamina.h"

/* The types of cuda.h, which may be included before or after. */
typedef int CUdevice;
typedef struct CUctx_st* CUcontext;
typedef struct CUstream_st* CUstream;

#ifdef __cplusplus
extern "C" {
#endif

/* Returns a device pointer to `size` bytes, or null if the allocation fails. */
typedef void* (*lamina_graph_cuda_allocate_f)(size_t size, size_t alignment, CUdevice device, CUcontext context);
typedef void (*lamina_graph_cuda_deallocate_f)(void* memory, CUdevice device, CUcontext context);

/* `context` null: the device's primary context. A context that the caller passes must outlive all objects created from the
 * engine. */
LAMINA_API lamina_status_t lamina_cuda_interop_engine_create(lamina_engine_t* engine, CUdevice device, CUcontext context);
/* Work is submitted to `cuda_stream`, which must belong to the engine's context and which the caller keeps alive. Null: the
 * legacy default stream. */
LAMINA_API lamina_status_t lamina_cuda_interop_stream_create(lamina_stream_t* stream, const_lamina_engine_t engine,
                                                             CUstream cuda_stream);
LAMINA_API lamina_status_t lamina_graph_cuda_interop_allocator_create(lamina_graph_allocator_t* allocator,
                                                                      lamina_graph_cuda_allocate_f cuda_malloc,
                                                                      lamina_graph_cuda_deallocate_f cuda_free);
LAMINA_API lamina_status_t lamina_graph_cuda_interop_make_engine_with_allocator(lamina_engine_t* engine, CUdevice device,
                                                                                CUcontext context,
                                                                                const_lamina_graph_allocator_t allocator);

#ifdef __cplusplus
}
#endif
#endif
