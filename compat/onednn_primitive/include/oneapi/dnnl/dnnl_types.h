/* The enumerators and argument indices of oneDNN's primitive interface that layer normalization needs, with oneDNN's values.
 */
#ifndef LAMINA_COMPAT_DNNL_TYPES_H
#define LAMINA_COMPAT_DNNL_TYPES_H

#include <stddef.h>
#include <stdint.h>

#define DNNL_API __attribute__((visibility("default")))

/* Fixes the underlying type of enums that callers pass in, so that a value outside the enumerators is well defined in C++ as
 * in C and can be rejected. */
#ifdef __cplusplus
#define DNNL_ANY_INT : int
#else
#define DNNL_ANY_INT
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum DNNL_ANY_INT {
  dnnl_success = 0,
  dnnl_out_of_memory = 1,
  dnnl_invalid_arguments = 2,
  dnnl_unimplemented = 3,
  dnnl_last_impl_reached = 4,
  dnnl_runtime_error = 5,
  dnnl_not_required = 6
} dnnl_status_t;

typedef enum DNNL_ANY_INT { dnnl_any_engine = 0, dnnl_cpu = 1, dnnl_gpu = 2 } dnnl_engine_kind_t;

typedef enum DNNL_ANY_INT {
  dnnl_stream_in_order = 0x1U,
  dnnl_stream_out_of_order = 0x2U,
  dnnl_stream_default_flags = dnnl_stream_in_order
} dnnl_stream_flags_t;

typedef enum DNNL_ANY_INT {
  dnnl_prop_kind_undef = 0,
  dnnl_forward_training = 64,
  dnnl_forward_inference = 96,
  dnnl_forward = dnnl_forward_training,
  dnnl_backward = 128,
  dnnl_backward_data = 160,
  dnnl_backward_weights = 192,
  dnnl_backward_bias = 193
} dnnl_prop_kind_t;

typedef enum DNNL_ANY_INT {
  dnnl_normalization_flags_none = 0x0U,
  dnnl_use_global_stats = 0x1U,
  dnnl_use_scale = 0x2U,
  dnnl_use_shift = 0x4U,
  dnnl_fuse_norm_relu = 0x8U,
  dnnl_fuse_norm_add_relu = 0x10U,
  dnnl_rms_norm = 0x20U
} dnnl_normalization_flags_t;

typedef enum DNNL_ANY_INT {
  dnnl_data_type_undef = 0,
  dnnl_f16 = 1,
  dnnl_bf16 = 2,
  dnnl_f32 = 3,
  dnnl_s32 = 4,
  dnnl_s8 = 5,
  dnnl_u8 = 6,
  dnnl_f64 = 7
} dnnl_data_type_t;

typedef enum DNNL_ANY_INT { dnnl_format_kind_undef = 0, dnnl_format_kind_any, dnnl_blocked } dnnl_format_kind_t;

typedef enum DNNL_ANY_INT { dnnl_scratchpad_mode_library = 0, dnnl_scratchpad_mode_user = 1 } dnnl_scratchpad_mode_t;

typedef int64_t dnnl_dim_t;

#define DNNL_MAX_NDIMS 12
#define DNNL_MEMORY_NONE (NULL)
#define DNNL_MEMORY_ALLOCATE ((void*)(size_t)-1)

#define DNNL_ARG_SRC_0 1
#define DNNL_ARG_SRC DNNL_ARG_SRC_0
#define DNNL_ARG_DST_0 17
#define DNNL_ARG_DST DNNL_ARG_DST_0
#define DNNL_ARG_MEAN 49
#define DNNL_ARG_VARIANCE 50
#define DNNL_ARG_SCALE 51
#define DNNL_ARG_SHIFT 52
#define DNNL_ARG_WORKSPACE 64
#define DNNL_ARG_SCRATCHPAD 80
#define DNNL_ARG_DIFF_SRC_0 129
#define DNNL_ARG_DIFF_SRC DNNL_ARG_DIFF_SRC_0
#define DNNL_ARG_DIFF_DST_0 145
#define DNNL_ARG_DIFF_DST DNNL_ARG_DIFF_DST_0
#define DNNL_ARG_DIFF_SCALE 255
#define DNNL_ARG_DIFF_SHIFT 256
#define DNNL_ARG_ATTR_SCALES 4096

#ifdef __cplusplus
}
#endif

#endif
