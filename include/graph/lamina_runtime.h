/* liblamina_runtime: loads models that `lamina export` wrote, and runs them. It needs no compiler. docs/export.md describes
 * both.
 *
 * Functions return a status; lamina_runtime_last_error() gives the sentence for this thread. A failed function has no effect.
 * Many threads may run one model at the same time. */
#ifndef GRAPH_LAMINA_RUNTIME_H
#define GRAPH_LAMINA_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#define LAMINA_RUNTIME_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Values are those of lamina_status_t. */
typedef enum {
  lamina_runtime_success = 0,
  lamina_runtime_out_of_memory = 1,
  lamina_runtime_invalid_arguments = 2, /* also a file that is damaged, or of another version */
  lamina_runtime_unimplemented = 3,     /* no program of the file is for this machine */
  lamina_runtime_runtime_error = 5,
  lamina_runtime_index_out_of_range = 512 /* an index in the data of an input */
} lamina_runtime_status_t;

/* Values are those of lamina_data_type_t. */
typedef enum {
  lamina_runtime_undef = 0,
#define LAMINA_DATA_TYPE(name, value, bits, kind, npy) lamina_runtime_##name = value,
#include "graph/data_types.def"
} lamina_runtime_data_type_t;

/* The sentence of this thread's last failure; "" if there was none. Valid until the thread's next call. */
LAMINA_RUNTIME_API const char* lamina_runtime_last_error(void);
/* "0.1.0" */
LAMINA_RUNTIME_API const char* lamina_runtime_version(void);

typedef struct lamina_model* lamina_model_t;
typedef const struct lamina_model* const_lamina_model_t;

typedef struct {
  size_t size;        /* sizeof(lamina_model_options_t) */
  int verify_weights; /* not 0: compares the digest of the weights, which reads all of them */
} lamina_model_options_t;

/* Maps the file, verifies the digest of the program for this machine, and selects the best one. The file must not be changed
 * while the model exists; replacing it by another (rename) is safe. `options` may be null. */
LAMINA_RUNTIME_API lamina_runtime_status_t lamina_model_load(lamina_model_t* model, const char* path,
                                                             const lamina_model_options_t* options);
/* The same for a file in memory, aligned to 64 bytes, which must outlive the model and not change. */
LAMINA_RUNTIME_API lamina_runtime_status_t lamina_model_load_memory(lamina_model_t* model, const void* file, size_t size,
                                                                    const lamina_model_options_t* options);
/* Null is allowed. No run may use the model any more. */
LAMINA_RUNTIME_API void lamina_model_destroy(lamina_model_t model);

/* A tensor: its description and, in a run, its memory. Strides are in elements; null means dense, in row-major order. The name
 * is ignored in a run. */
typedef struct {
  const char* name;
  lamina_runtime_data_type_t dtype;
  int ndims;
  const int64_t* dims;
  const int64_t* strides;
  void* data;
} lamina_runtime_tensor_t;

/* An extent or a stride that depends on the shapes of inputs. */
#define LAMINA_RUNTIME_DYNAMIC INT64_MIN

LAMINA_RUNTIME_API size_t lamina_model_input_count(const_lamina_model_t model);
LAMINA_RUNTIME_API size_t lamina_model_output_count(const_lamina_model_t model);
/* What they must be in a run; `data` is null. The pointers are valid as long as the model. If the model has several variants,
 * what differs between them is LAMINA_RUNTIME_DYNAMIC. */
LAMINA_RUNTIME_API lamina_runtime_status_t lamina_model_input(const_lamina_model_t model, size_t index,
                                                              lamina_runtime_tensor_t* tensor);
LAMINA_RUNTIME_API lamina_runtime_status_t lamina_model_output(const_lamina_model_t model, size_t index,
                                                               lamina_runtime_tensor_t* tensor);
/* A model has a variant for each list of input shapes that it was exported for. A run selects it by the shapes of its inputs.
 */
LAMINA_RUNTIME_API size_t lamina_model_variant_count(const_lamina_model_t model);
LAMINA_RUNTIME_API lamina_runtime_status_t lamina_model_variant_input(const_lamina_model_t model, size_t variant, size_t index,
                                                                      lamina_runtime_tensor_t* tensor);
LAMINA_RUNTIME_API lamina_runtime_status_t lamina_model_variant_output(const_lamina_model_t model, size_t variant, size_t index,
                                                                       lamina_runtime_tensor_t* tensor);
/* The instruction set of the program, as `lamina export --isa` names it. Valid as long as the model. */
LAMINA_RUNTIME_API const char* lamina_model_isa(const_lamina_model_t model);

/* A caller's threads, as lamina_threadpool_t in graph/lamina.h, which documents the functions. */
typedef struct {
  size_t size; /* sizeof(lamina_runtime_threadpool_t) */
  void* user;
  int (*num_threads)(void* user);
  int (*in_parallel)(void* user);
  void (*parallel_for)(void* user, int count, void (*work)(void* state, int index), void* state);
} lamina_runtime_threadpool_t;

typedef struct {
  size_t size;                             /* sizeof(lamina_run_options_t) */
  int threads;                             /* at most; 0: as many as OpenMP would use */
  const lamina_runtime_threadpool_t* pool; /* used instead of lamina's threads; may be null */
} lamina_run_options_t;

/* All inputs and outputs, in the order of the model. Inputs are not written. Outputs must not overlap inputs or each other.
 * Results have the same bits for any threads. The first run packs weights. `options` may be null. */
LAMINA_RUNTIME_API lamina_runtime_status_t lamina_model_run(const_lamina_model_t model, const lamina_runtime_tensor_t* inputs,
                                                            size_t input_count, const lamina_runtime_tensor_t* outputs,
                                                            size_t output_count, const lamina_run_options_t* options);

#ifdef __cplusplus
}
#endif

#endif
