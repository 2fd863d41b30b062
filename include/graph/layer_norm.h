/* lamina, C interface of layer normalisation by descriptor: create, query the workspace, execute, destroy.
 *
 *   forward     dst = scale * (src - mean) / sqrt(variance + epsilon) + shift
 *   backward    the gradients diff_src, diff_scale, diff_shift, from src, diff_dst, the statistics and scale
 *
 * lamina_layer_norm_create builds a graph of ops and compiles it once for the given shapes and strides; the object can then
 * be executed any number of times. The results are bitwise identical to those of the graph interface (graph/lamina.h). The
 * object is immutable: many threads may execute it at once, each with its own outputs and workspace. Statuses and
 * lamina_last_error() are those of graph/lamina.h.
 * */
#ifndef LAMINA_LAYER_NORM_H
#define LAMINA_LAYER_NORM_H

#include "graph/lamina.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lamina_layer_norm* lamina_layer_norm_t;
typedef const struct lamina_layer_norm* const_lamina_layer_norm_t;

typedef enum LAMINA_ANY_INT { lamina_layer_norm_forward = 0, lamina_layer_norm_backward = 1 } lamina_layer_norm_pass_t;

typedef enum LAMINA_ANY_INT {
  lamina_layer_norm_use_stats = 0x1, /* mean and variance are inputs; else they are computed from src */
  lamina_layer_norm_use_scale = 0x2,
  lamina_layer_norm_use_shift = 0x4,
  lamina_layer_norm_src_is_normalized = 0x8,  /* backward: src is already (x - mean) / std; mean must not be given */
  lamina_layer_norm_stats_are_constant = 0x10 /* backward: diff_src = rstd * scale * diff_dst, for statistics that do not
                                                 depend on src */
} lamina_layer_norm_flags_t;

/* What is computed. Forward may write `stats` when it computes them; backward may write diff_scale with use_scale and
 * diff_shift with use_shift. Outputs that are not requested cost nothing. */
typedef enum LAMINA_ANY_INT {
  lamina_layer_norm_output_all = 0, /* all outputs that the flags allow; for forward, without the statistics */
  lamina_layer_norm_output_dst = 0x1,
  lamina_layer_norm_output_stats = 0x2,
  lamina_layer_norm_output_diff_src = 0x4,
  lamina_layer_norm_output_diff_scale = 0x8,
  lamina_layer_norm_output_diff_shift = 0x10
} lamina_layer_norm_outputs_t;

/* What the argument `variance` contains. Kinds other than variance are allowed only in the backward pass with use_stats. */
typedef enum LAMINA_ANY_INT {
  lamina_layer_norm_stats_variance = 0, /* biased */
  lamina_layer_norm_stats_rstd = 1,     /* 1 / sqrt(variance + epsilon) */
  lamina_layer_norm_stats_std = 2       /* sqrt(variance + epsilon) */
} lamina_layer_norm_stats_kind_t;

/* The tensors, as indices into the arrays `tensors` and `memory`. */
typedef enum LAMINA_ANY_INT {
  lamina_layer_norm_src = 0,
  lamina_layer_norm_dst = 1,        /* forward */
  lamina_layer_norm_diff_dst = 2,   /* backward */
  lamina_layer_norm_diff_src = 3,   /* backward */
  lamina_layer_norm_mean = 4,       /* axes of src before begin_norm_axis; extents of 1 may follow */
  lamina_layer_norm_variance = 5,   /* same shape as mean */
  lamina_layer_norm_scale = 6,      /* the normalised axes, or flat with their product */
  lamina_layer_norm_shift = 7,      /* same shape as scale; the backward pass accepts it and does not read it */
  lamina_layer_norm_diff_scale = 8, /* same shape as scale */
  lamina_layer_norm_diff_shift = 9, /* same shape as scale */
  lamina_layer_norm_src_scale = 10, /* forward, src s8 or u8: one f32, read at execution; the real value is src * src_scale */
  lamina_layer_norm_dst_scale = 11, /* forward, dst s8 or u8: one f32, read at execution; dst is result / dst_scale */
  lamina_layer_norm_arg_count = 12
} lamina_layer_norm_arg_t;

/* src, and dst or diff_dst and diff_src, are required. The statistics and the tensors over the normalised axes may be null:
 * they are then dense, of type f64 if the data are f64 and f32 otherwise. src_scale and dst_scale apply when they are given.
 * Any strides are allowed; ids and properties of the logical tensors are ignored.
 *   forward     src, dst: f32, bf16, f16, f64, s8, u8, each its own; rounding to s8 and u8 is to nearest even, saturating
 *   backward    src, diff_dst, diff_src: f32, bf16, f16, f64, each its own
 *   the others  f32, bf16, f16, f64, each its own
 * New arguments are appended, so versions of this header differ only in the size of the descriptor. Arguments that an older
 * header lacks count as not given; arguments of a newer header that this library does not know must not be given. */
typedef struct {
  size_t struct_size; /* sizeof(lamina_layer_norm_desc_t) in the code that created the descriptor */
  lamina_layer_norm_pass_t pass;
  uint32_t flags;   /* of lamina_layer_norm_flags_t, or-ed */
  uint32_t outputs; /* of lamina_layer_norm_outputs_t, or-ed */
  lamina_layer_norm_stats_kind_t stats_kind;
  float epsilon;           /* added to the variance; finite and above 0 */
  int64_t begin_norm_axis; /* the axes from here to the last are normalised; negative counts from the end */
  const lamina_graph_logical_tensor_t* tensors[lamina_layer_norm_arg_count];
} lamina_layer_norm_desc_t;

/* Initialises `desc` for this pass: scale and shift, the last axis, epsilon 1e-5; for backward, statistics as inputs; no
 * tensors. `struct_size` is the caller's sizeof(lamina_layer_norm_desc_t). Errors: a size that no version of the descriptor
 * has. */
LAMINA_API lamina_status_t lamina_layer_norm_desc_init_sized(lamina_layer_norm_desc_t* desc, size_t struct_size,
                                                             lamina_layer_norm_pass_t pass);
/* The same, with the descriptor size of the caller's header. */
static inline lamina_status_t lamina_layer_norm_desc_init(lamina_layer_norm_desc_t* desc, lamina_layer_norm_pass_t pass) {
  return lamina_layer_norm_desc_init_sized(desc, sizeof *desc, pass);
}

/* Builds and compiles for the CPU; all memory is host memory. Errors: lamina_invalid_arguments for flags, outputs and tensors
 * that contradict one another, or a struct_size that was not set; lamina_invalid_shape and lamina_invalid_data_type for
 * tensors that do not match; lamina_unimplemented with the reason, for example for an engine of another device. */
LAMINA_API lamina_status_t lamina_layer_norm_create(lamina_layer_norm_t* layer_norm, const lamina_layer_norm_desc_t* desc,
                                                    const_lamina_engine_t engine);
/* Accepts null. Errors: lamina_invalid_arguments for an object that was destroyed before. */
LAMINA_API lamina_status_t lamina_layer_norm_destroy(lamina_layer_norm_t layer_norm);

/* The workspace size in bytes that execute needs; 0 when it needs none. */
LAMINA_API lamina_status_t lamina_layer_norm_get_workspace_size(const_lamina_layer_norm_t layer_norm, size_t* size);
/* The tensor of an argument with its final shape and strides; the empty logical tensor for an unused argument. */
LAMINA_API lamina_status_t lamina_layer_norm_query(const_lamina_layer_norm_t layer_norm, lamina_layer_norm_arg_t arg,
                                                   lamina_graph_logical_tensor_t* tensor);
/* Writes 1 when `output` may share the memory of `input`. */
LAMINA_API lamina_status_t lamina_layer_norm_may_share(const_lamina_layer_norm_t layer_norm, lamina_layer_norm_arg_t input,
                                                       lamina_layer_norm_arg_t output, uint8_t* may_share);

/* `memory` has lamina_layer_norm_arg_count entries; entries of unused arguments are ignored, and inputs are only read.
 * `workspace` may have any alignment. If it is null, lamina uses memory that it keeps, and ignores workspace_size. execute
 * allocates nothing if a workspace is given. Errors: lamina_invalid_arguments for null memory of a tensor that has elements,
 * a stream of another device, a workspace that is too small, an output that shares memory with another argument (except all
 * of an input that it may share), an object that was destroyed. */
LAMINA_API lamina_status_t lamina_layer_norm_execute(const_lamina_layer_norm_t layer_norm, lamina_stream_t stream,
                                                     void* const* memory, void* workspace, size_t workspace_size);

#ifdef __cplusplus
}
#endif

#endif
