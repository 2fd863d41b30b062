/* A handle identifies the device that descriptors are created for. */
#ifndef LAMINA_COMPAT_INFINIOP_HANDLE_H
#define LAMINA_COMPAT_INFINIOP_HANDLE_H

#include "../infinicore.h"

typedef struct InfiniopHandle* infiniopHandle_t;

/* Creates a handle for the thread's device (infinirtSetDevice). DEVICE_NOT_FOUND for a CPU other than 0. */
INFINI_API infiniStatus_t infiniopCreateHandle(infiniopHandle_t* handle_ptr);
INFINI_API infiniStatus_t infiniopDestroyHandle(infiniopHandle_t handle);

#endif
