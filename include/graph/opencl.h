/* Interoperability with the caller's OpenCL objects. The data handle of a tensor of these engines is a cl_mem; that of a host
 * scalar is a host pointer. lamina opens the ICD loader at run time: linking it needs no OpenCL. */
#ifndef LAMINA_GRAPH_OPENCL_H
#define LAMINA_GRAPH_OPENCL_H

#include "graph/lamina.h"

/* The types of CL/cl.h, which may be included before or after. */
typedef struct _cl_device_id* cl_device_id;
typedef struct _cl_context* cl_context;
typedef struct _cl_command_queue* cl_command_queue;
typedef struct _cl_event* cl_event;

#ifdef __cplusplus
extern "C" {
#endif

/* Returns a cl_mem of at least `size` bytes, or null if the allocation fails. lamina passes a null event to the deallocation
 * function: the memory is then idle. */
typedef void* (*lamina_graph_ocl_allocate_f)(size_t size, size_t alignment, cl_device_id device, cl_context context);
typedef void (*lamina_graph_ocl_deallocate_f)(void* memory, cl_device_id device, cl_context context, cl_event event);

/* The context is retained as long as an object created from the engine exists. */
LAMINA_API lamina_status_t lamina_ocl_interop_engine_create(lamina_engine_t* engine, cl_device_id device, cl_context context);
/* Work is submitted to `queue`, which must be in order and belong to the engine's context; the caller keeps it alive. */
LAMINA_API lamina_status_t lamina_ocl_interop_stream_create(lamina_stream_t* stream, const_lamina_engine_t engine,
                                                            cl_command_queue queue);
LAMINA_API lamina_status_t lamina_graph_ocl_interop_allocator_create(lamina_graph_allocator_t* allocator,
                                                                     lamina_graph_ocl_allocate_f ocl_malloc,
                                                                     lamina_graph_ocl_deallocate_f ocl_free);
LAMINA_API lamina_status_t lamina_graph_ocl_interop_make_engine_with_allocator(lamina_engine_t* engine, cl_device_id device,
                                                                               cl_context context,
                                                                               const_lamina_graph_allocator_t allocator);

#ifdef __cplusplus
}
#endif
#endif
