/* lamina with the caller's CUDA objects. Tensors of an engine made here hold device pointers as their data handle (host scalars
 * a host pointer). The driver and NVRTC are opened at run time: linking lamina needs no CUDA. */
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

/* A device pointer to `size` bytes; null when there is none. */
typedef void* (*lamina_graph_cuda_allocate_f)(size_t size, size_t alignment, CUdevice device, CUcontext context);
typedef void (*lamina_graph_cuda_deallocate_f)(void* memory, CUdevice device, CUcontext context);

/* `context` null: the device's primary context. A context that is given must outlive everything made from the engine. */
LAMINA_API lamina_status_t lamina_cuda_interop_engine_create(lamina_engine_t* engine, CUdevice device, CUcontext context);
/* Work is put into `cuda_stream`, of the engine's context; the caller keeps it alive. Null: the legacy default stream. */
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
