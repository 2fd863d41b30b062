/* lamina, C interface of layer normalisation by descriptor: create, query the workspace, execute, destroy.
 *
 *   forward     dst = scale * (src - mean) / sqrt(variance + epsilon) + shift
 *   backward    diff_src, diff_scale, diff_shift of it, from src, diff_dst, the statistics and scale
 *
 * A descriptor builds a graph of ops, compiles it once for the shapes and strides given, and runs it as often as wanted: what
 * it computes is what the graph interface (graph/lamina.h) computes, bit for bit. It is immutable once made: many threads may
 * execute one at once, each with its own outputs and workspace. Statuses and lamina_last_error() are those of graph/lamina.h.
 */
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
  lamina_layer_norm_src_is_normalized = 0x8,  /* backward: src is (x - mean) / std already, and no mean is given */
  lamina_layer_norm_stats_are_constant = 0x10 /* backward: diff_src = rstd * scale * diff_dst, for statistics that do not
                                                 depend on src */
} lamina_layer_norm_flags_t;

/* What is computed. Forward may write `stats` when they are computed; backward diff_scale with use_scale, diff_shift with
 * use_shift. What nobody asked for costs nothing. */
typedef enum LAMINA_ANY_INT {
  lamina_layer_norm_output_all = 0, /* all that the flags allow, the forward pass without its statistics */
  lamina_layer_norm_output_dst = 0x1,
  lamina_layer_norm_output_stats = 0x2,
  lamina_layer_norm_output_diff_src = 0x4,
  lamina_layer_norm_output_diff_scale = 0x8,
  lamina_layer_norm_output_diff_shift = 0x10
} lamina_layer_norm_outputs_t;

/* What the argument `variance` holds; other than variance in the backward pass with use_stats only. */
typedef enum LAMINA_ANY_INT {
  lamina_layer_norm_stats_variance = 0, /* biased */
  lamina_layer_norm_stats_rstd = 1,     /* 1 / sqrt(variance + epsilon) */
  lamina_layer_norm_stats_std = 2       /* sqrt(variance + epsilon) */
} lamina_layer_norm_stats_kind_t;

/* The tensors, as positions in the arrays `tensors` and `memory`. */
typedef enum LAMINA_ANY_INT {
  lamina_layer_norm_src = 0,
  lamina_layer_norm_dst = 1,        /* forward */
  lamina_layer_norm_diff_dst = 2,   /* backward */
  lamina_layer_norm_diff_src = 3,   /* backward */
  lamina_layer_norm_mean = 4,       /* axes of src before begin_norm_axis; extents of 1 may follow */
  lamina_layer_norm_variance = 5,   /* as mean */
  lamina_layer_norm_scale = 6,      /* the normalised axes, or flat with their product */
  lamina_layer_norm_shift = 7,      /* as scale; the backward pass takes it and needs it for nothing */
  lamina_layer_norm_diff_scale = 8, /* as scale */
  lamina_layer_norm_diff_shift = 9, /* as scale */
  lamina_layer_norm_src_scale = 10, /* forward, src s8 or u8: one f32, read at execution; src stands for src * src_scale */
  lamina_layer_norm_dst_scale = 11, /* forward, dst s8 or u8: one f32, read at execution; dst holds result / dst_scale */
  lamina_layer_norm_arg_count = 12
} lamina_layer_norm_arg_t;

/* src, and dst or diff_dst and diff_src, are needed; the statistics and what belongs to the normalised axes may be null: they
 * are dense then, f64 where the data are f64 and f32 elsewhere. src_scale and dst_scale are used when they are given. Any
 * strides; ids and properties of the logical tensors mean nothing here.
 *   forward     src, dst: f32, bf16, f16, f64, s8, u8, each its own; rounding to s8 and u8 is to nearest even, saturating
 *   backward    src, diff_dst, diff_src: f32, bf16, f16, f64, each its own
 *   the others  f32, bf16, f16, f64, each its own
 * Arguments are added behind the last one, so versions of this header differ in the size of the descriptor alone. What an older
 * header does not have is as if it were not given; what a newer one has and this library does not know may not be given. */
typedef struct {
  size_t struct_size; /* sizeof(lamina_layer_norm_desc_t) where the descriptor was made */
  lamina_layer_norm_pass_t pass;
  uint32_t flags;   /* of lamina_layer_norm_flags_t, joined by | */
  uint32_t outputs; /* of lamina_layer_norm_outputs_t, joined by | */
  lamina_layer_norm_stats_kind_t stats_kind;
  float epsilon;           /* added to the variance; finite and above 0 */
  int64_t begin_norm_axis; /* the axes from here to the last are normalised; negative counts from the end */
  const lamina_graph_logical_tensor_t* tensors[lamina_layer_norm_arg_count];
} lamina_layer_norm_desc_t;

/* `desc` for this pass: scale and shift, the last axis, epsilon 1e-5; backward with given statistics. No tensors. `struct_size`
 * is the caller's sizeof(lamina_layer_norm_desc_t). Errors: a size that no version of the descriptor has. */
LAMINA_API lamina_status_t lamina_layer_norm_desc_init_sized(lamina_layer_norm_desc_t* desc, size_t struct_size,
                                                             lamina_layer_norm_pass_t pass);
/* The same, compiled into the caller. */
static inline lamina_status_t lamina_layer_norm_desc_init(lamina_layer_norm_desc_t* desc, lamina_layer_norm_pass_t pass) {
  return lamina_layer_norm_desc_init_sized(desc, sizeof *desc, pass);
}

/* Builds and compiles for the CPU, where all memory is the host's. Errors: lamina_invalid_arguments for flags, outputs and
 * tensors that do not go together, or a struct_size that was not set, lamina_invalid_shape and lamina_invalid_data_type for
 * tensors that do not fit, lamina_unimplemented with the reason, as for an engine of another device. */
LAMINA_API lamina_status_t lamina_layer_norm_create(lamina_layer_norm_t* layer_norm, const lamina_layer_norm_desc_t* desc,
                                                    const_lamina_engine_t engine);
/* Accepts null. Errors: lamina_invalid_arguments for one that was destroyed before. */
LAMINA_API lamina_status_t lamina_layer_norm_destroy(lamina_layer_norm_t layer_norm);

/* Bytes that execute needs of its caller, 0 when it needs none. */
LAMINA_API lamina_status_t lamina_layer_norm_get_workspace_size(const_lamina_layer_norm_t layer_norm, size_t* size);
/* The tensor of an argument with its final shape and strides; of an argument that is not used, the empty logical tensor. */
LAMINA_API lamina_status_t lamina_layer_norm_query(const_lamina_layer_norm_t layer_norm, lamina_layer_norm_arg_t arg,
                                                   lamina_graph_logical_tensor_t* tensor);
/* 1 when `output` may be given the memory of `input`. */
LAMINA_API lamina_status_t lamina_layer_norm_may_share(const_lamina_layer_norm_t layer_norm, lamina_layer_norm_arg_t input,
                                                       lamina_layer_norm_arg_t output, uint8_t* may_share);

/* `memory` has lamina_layer_norm_arg_count entries; those of arguments that are not used are not looked at, inputs are only
 * read. `workspace` may have any alignment; null stands for memory that lamina keeps for itself, whatever its size. Allocates
 * nothing when a workspace is given. Errors: lamina_invalid_arguments for null memory of a tensor that has elements, a
 * stream of another device, a workspace that is too small, an output that shares memory with another argument, but
 * for all of an input that it may share, an object that was destroyed. */
LAMINA_API lamina_status_t lamina_layer_norm_execute(const_lamina_layer_norm_t layer_norm, lamina_stream_t stream,
                                                     void* const* memory, void* workspace, size_t workspace_size);

#ifdef __cplusplus
}
#endif

#endif
