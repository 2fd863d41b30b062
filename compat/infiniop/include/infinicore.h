/* Statuses, devices and data types of the infini interfaces, with their values. */
#ifndef LAMINA_COMPAT_INFINICORE_H
#define LAMINA_COMPAT_INFINICORE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define INFINI_API extern "C" __attribute__((visibility("default")))
#else
#define INFINI_API __attribute__((visibility("default")))
#endif

/* Fixes the underlying type of enums that callers pass in, so that a value outside the enumerators is well defined in C++ as
 * in C and can be rejected. */
#ifdef __cplusplus
#define INFINI_ANY_INT : int
#else
#define INFINI_ANY_INT
#endif

/* After any other status than INFINI_STATUS_SUCCESS, lamina_last_error() returns a sentence. */
typedef enum INFINI_ANY_INT {
  INFINI_STATUS_SUCCESS = 0,
  INFINI_STATUS_INTERNAL_ERROR = 1,
  INFINI_STATUS_NOT_IMPLEMENTED = 2,
  INFINI_STATUS_BAD_PARAM = 3,
  INFINI_STATUS_NULL_POINTER = 4,
  INFINI_STATUS_DEVICE_TYPE_NOT_SUPPORTED = 5,
  INFINI_STATUS_DEVICE_NOT_FOUND = 6,
  INFINI_STATUS_DEVICE_NOT_INITIALIZED = 7,
  INFINI_STATUS_DEVICE_ARCHITECTURE_NOT_SUPPORTED = 8,
  INFINI_STATUS_BAD_TENSOR_DTYPE = 10,
  INFINI_STATUS_BAD_TENSOR_SHAPE = 11,
  INFINI_STATUS_BAD_TENSOR_STRIDES = 12,
  INFINI_STATUS_INSUFFICIENT_WORKSPACE = 13
} infiniStatus_t;
typedef infiniStatus_t infiniopStatus_t; /* the documentation uses both spellings */

typedef enum INFINI_ANY_INT {
  INFINI_DEVICE_CPU = 0,
  INFINI_DEVICE_NVIDIA = 1,
  INFINI_DEVICE_CAMBRICON = 2,
  INFINI_DEVICE_ASCEND = 3,
  INFINI_DEVICE_METAX = 4,
  INFINI_DEVICE_MOORE = 5,
  INFINI_DEVICE_ILUVATAR = 6,
  INFINI_DEVICE_KUNLUN = 7,
  INFINI_DEVICE_HYGON = 8,
  INFINI_DEVICE_TYPE_COUNT
} infiniDevice_t;

typedef enum INFINI_ANY_INT {
  INFINI_DTYPE_INVALID = 0,
  INFINI_DTYPE_BYTE = 1,
  INFINI_DTYPE_BOOL = 2,
  INFINI_DTYPE_I8 = 3,
  INFINI_DTYPE_I16 = 4,
  INFINI_DTYPE_I32 = 5,
  INFINI_DTYPE_I64 = 6,
  INFINI_DTYPE_U8 = 7,
  INFINI_DTYPE_U16 = 8,
  INFINI_DTYPE_U32 = 9,
  INFINI_DTYPE_U64 = 10,
  INFINI_DTYPE_F8 = 11,
  INFINI_DTYPE_F16 = 12,
  INFINI_DTYPE_F32 = 13,
  INFINI_DTYPE_F64 = 14,
  INFINI_DTYPE_C16 = 15,
  INFINI_DTYPE_C32 = 16,
  INFINI_DTYPE_C64 = 17,
  INFINI_DTYPE_C128 = 18,
  INFINI_DTYPE_BF16 = 19
} infiniDtype_t;

#endif
