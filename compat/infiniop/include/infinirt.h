/* The calling thread's device, and streams. On the CPU, work has finished when a call returns, for any stream. */
#ifndef LAMINA_COMPAT_INFINIRT_H
#define LAMINA_COMPAT_INFINIRT_H

#include "infinicore.h"

typedef void* infinirtStream_t;

/* The device of the handles that this thread creates from now on; initially CPU 0. Any device is accepted here; operators
 * that cannot run on it fail later. BAD_PARAM for a kind that does not exist or a negative id. */
INFINI_API infiniStatus_t infinirtSetDevice(infiniDevice_t device, int device_id);
INFINI_API infiniStatus_t infinirtGetDevice(infiniDevice_t* device, int* device_id);

/* BAD_PARAM for null or a destroyed stream. */
INFINI_API infiniStatus_t infinirtStreamCreate(infinirtStream_t* stream);
INFINI_API infiniStatus_t infinirtStreamSynchronize(infinirtStream_t stream);
INFINI_API infiniStatus_t infinirtStreamDestroy(infinirtStream_t stream);

#endif
