/* lamina, C interface: describes, partitions, compiles and executes a graph of deep-learning operations.
 *
 * Call sequence: lamina_graph_graph_create, lamina_graph_op_create and _add_input/_add_output/_set_attr_*,
 * lamina_graph_add_op, lamina_graph_graph_finalize, lamina_graph_graph_filter, lamina_graph_graph_get_partitions,
 * lamina_graph_partition_compile, lamina_graph_compiled_partition_execute.
 *
 * Names, enumerators and meaning follow oneDNN's graph interface (prefix `lamina_` instead of `dnnl_`), see
 * docs/architecture.md. Every call returns a lamina_status_t, unless its comment says otherwise. When a call does not return
 * lamina_success, lamina_last_error() returns one sentence about the cause and no output argument has been written. A call
 * returns lamina_invalid_arguments for a null pointer where it expects an object or a result. The _destroy functions release
 * objects; they accept null.
 *
 * Threads: one thread at a time may use an object, with one exception: many threads at once may read, compile and execute
 * partitions, compiled partitions, engines, tensors and CPU streams. */
#ifndef LAMINA_H
#define LAMINA_H

#include <stddef.h>
#include <stdint.h>

#define LAMINA_API __attribute__((visibility("default")))

/* Fixes the underlying type of enums that callers pass in, so that a value outside the enumerators is well defined in C++ as
 * in C and can be rejected. */
#ifdef __cplusplus
#define LAMINA_ANY_INT : int
#else
#define LAMINA_ANY_INT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status ---- */

typedef enum LAMINA_ANY_INT {
  lamina_success = 0,
  lamina_out_of_memory = 1,
  lamina_invalid_arguments = 2,
  lamina_unimplemented = 3,
  lamina_last_impl_reached = 4,
  lamina_runtime_error = 5,
  lamina_not_required = 6,
  lamina_invalid_graph = 7,
  lamina_invalid_graph_op = 8,
  lamina_invalid_shape = 9,
  lamina_invalid_data_type = 10,
  /* Values below 512 equal oneDNN's. */
  lamina_index_out_of_range = 512 /* an index that an execution reads names no entry */
} lamina_status_t;

/* The error sentence of this thread's last failing call; "" if no call has failed. Valid until this thread's next failing
 * call. */
LAMINA_API const char* lamina_last_error(void);
/* Sets this thread's error sentence; null means "". For libraries built on lamina that reject something themselves. */
LAMINA_API void lamina_set_last_error(const char* sentence);

typedef struct {
  int major;
  int minor;
  int patch;
} lamina_version_t;

/* The version of the library that is loaded. Never null. */
LAMINA_API const lamina_version_t* lamina_version(void);

/* Sets what the process prints to stdout, as the environment variable LAMINA_VERBOSE does: 0 nothing, 1 one line per compile
 * and per execution, 2 also one line per pass. Errors: another level. */
LAMINA_API lamina_status_t lamina_set_verbose(int level);

/* ---- engine, stream, allocator ---- */

typedef enum LAMINA_ANY_INT { lamina_any_engine = 0, lamina_cpu = 1, lamina_gpu = 2 } lamina_engine_kind_t;

typedef enum LAMINA_ANY_INT {
  lamina_fpmath_mode_strict = 0,
  lamina_fpmath_mode_bf16 = 1,
  lamina_fpmath_mode_f16 = 2,
  lamina_fpmath_mode_any = 3,
  lamina_fpmath_mode_tf32 = 4
} lamina_fpmath_mode_t;

/* The mode of graphs that are created from now on without an explicit mode, in the whole process. The initial mode is strict.
 */
LAMINA_API lamina_status_t lamina_set_default_fpmath_mode(lamina_fpmath_mode_t mode);
LAMINA_API lamina_status_t lamina_get_default_fpmath_mode(lamina_fpmath_mode_t* mode);

typedef struct lamina_engine* lamina_engine_t;
typedef const struct lamina_engine* const_lamina_engine_t;
typedef struct lamina_stream* lamina_stream_t;
typedef const struct lamina_stream* const_lamina_stream_t;
typedef struct lamina_graph_allocator* lamina_graph_allocator_t;
typedef const struct lamina_graph_allocator* const_lamina_graph_allocator_t;

/* Allocation callbacks; `alignment` is a power of two. They are called from any thread. */
typedef void* (*lamina_graph_host_allocate_f)(size_t size, size_t alignment);
typedef void (*lamina_graph_host_deallocate_f)(void* memory);

/* The number of engines of a kind: 1 for cpu, the number of CUDA and OpenCL devices for gpu. Returns the number itself.
 * Returns 0 when the number cannot be determined; lamina_last_error() then returns the reason. */
LAMINA_API size_t lamina_engine_get_count(lamina_engine_kind_t kind);
/* Errors: index >= count; lamina_unimplemented for a kind without a backend in this build. */
LAMINA_API lamina_status_t lamina_engine_create(lamina_engine_t* engine, lamina_engine_kind_t kind, size_t index);
LAMINA_API lamina_status_t lamina_engine_get_kind(const_lamina_engine_t engine, lamina_engine_kind_t* kind);
LAMINA_API lamina_status_t lamina_engine_destroy(lamina_engine_t engine);

/* Both functions must be given, or neither; without them lamina uses aligned new and delete. */
LAMINA_API lamina_status_t lamina_graph_allocator_create(lamina_graph_allocator_t* allocator,
                                                         lamina_graph_host_allocate_f host_malloc,
                                                         lamina_graph_host_deallocate_f host_free);
LAMINA_API lamina_status_t lamina_graph_allocator_destroy(lamina_graph_allocator_t allocator);
/* The engine keeps a copy of the callbacks: the allocator object may be destroyed before the engine. */
LAMINA_API lamina_status_t lamina_graph_make_engine_with_allocator(lamina_engine_t* engine, lamina_engine_kind_t kind,
                                                                   size_t index, const_lamina_graph_allocator_t allocator);

/* A framework's thread pool, which a CPU engine uses in place of lamina's threads. Results are bitwise identical with both.
 *
 * An execution calls in_parallel and num_threads, at most once each, on the thread that executes. If in_parallel returns 1
 * (this thread already runs a work item of the pool), or if there is little work, the execution runs on this thread alone.
 * Otherwise it calls parallel_for on this thread, several times in sequence. Compilation uses no threads. Therefore:
 *   - concurrent executions on one pool call these functions concurrently: they must be thread-safe;
 *   - work items never wait for one another: the pool may run them in any order, concurrently or in sequence, on any of its
 *     threads or on the calling thread, several on one thread;
 *   - while a work item runs, OpenMP regions on that thread use only one thread, including those of other libraries;
 *   - a work item takes no lock that belongs to the caller, and throws nothing.
 * A pool whose parallel_for waits for free threads deadlocks when it is called on one of these threads: in_parallel lets
 * lamina avoid that call. When a function of the pool throws a C++ exception, the execution fails with lamina_runtime_error
 * and the exception's text. parallel_for must not return or throw while an item runs, nor start one later. */
typedef struct {
  size_t size; /* sizeof(lamina_threadpool_t): lets lamina detect which members the caller's header has */
  void* user;  /* passed to each function */
  /* The number of threads an execution may use, 1 or more. Also called when the engine is created. If it has grown since a
   * partition was compiled, only some steps use the additional threads. */
  int (*num_threads)(void* user);
  /* 1 when the calling thread runs a work item of this pool, whether or not lamina submitted the item; else 0. */
  int (*in_parallel)(void* user);
  /* Calls work(state, index) once for each index = 0 .. count - 1 and returns when all calls have returned. */
  void (*parallel_for)(void* user, int count, void (*work)(void* state, int index), void* state);
} lamina_threadpool_t;

/* The engine and its streams keep a copy of the struct; what `user` points to must outlive them and every execution. The
 * stream, not the engine for which the partition was compiled, determines which threads run an execution. `allocator` may be
 * null: lamina then uses aligned new and delete. Steps that run the reference loops (LAMINA_ALLOW_REFERENCE) still use
 * OpenMP. Errors: a kind other than cpu or any; another size; a null function; num_threads below 1. */
LAMINA_API lamina_status_t lamina_graph_make_engine_with_threadpool(lamina_engine_t* engine, lamina_engine_kind_t kind,
                                                                    size_t index, const_lamina_graph_allocator_t allocator,
                                                                    const lamina_threadpool_t* pool);

/* lamina's streams run work in submission order, for both flags. */
typedef enum LAMINA_ANY_INT {
  lamina_stream_in_order = 0x1,
  lamina_stream_out_of_order = 0x2,
  lamina_stream_default_flags = lamina_stream_in_order,
  lamina_stream_profiling = 0x4 /* measures the steps of executions: lamina_stream_write_profile (graph/text.h) */
} lamina_stream_flags_t;

/* `flags`: one of the two orders, and on a CPU profiling, added to one of them or alone. Errors: lamina_unimplemented for
 * profiling on a GPU, lamina_invalid_arguments for other bits. */
LAMINA_API lamina_status_t lamina_stream_create(lamina_stream_t* stream, const_lamina_engine_t engine, unsigned flags);
/* The handle that the stream was created with. The caller owns it and may have destroyed it since. */
LAMINA_API lamina_status_t lamina_stream_get_engine(const_lamina_stream_t stream, lamina_engine_t* engine);
/* Returns when all submitted work has run. On the CPU, execution has finished when execute returns. */
LAMINA_API lamina_status_t lamina_stream_wait(lamina_stream_t stream);
LAMINA_API lamina_status_t lamina_stream_destroy(lamina_stream_t stream);

/* ---- logical tensor ---- */

#define LAMINA_MAX_NDIMS 12
#define LAMINA_GRAPH_UNKNOWN_NDIMS (-1)
#define LAMINA_GRAPH_UNKNOWN_DIM INT64_MIN

typedef int64_t lamina_dim_t;
typedef lamina_dim_t lamina_dims_t[LAMINA_MAX_NDIMS];

typedef enum LAMINA_ANY_INT {
#define LAMINA_DATA_TYPE(name, value, bits, kind, npy) lamina_##name = value,
#include "graph/data_types.def"
  lamina_data_type_undef = 0 /* not yet known */
} lamina_data_type_t;

typedef enum LAMINA_ANY_INT {
  lamina_graph_layout_type_undef = 0,   /* not yet known */
  lamina_graph_layout_type_any = 1,     /* lamina chooses; read back with query_logical_tensor */
  lamina_graph_layout_type_strided = 2, /* the layout is given by strides, in elements */
  lamina_graph_layout_type_opaque = 3   /* lamina never produces it; compile rejects it */
} lamina_graph_layout_type_t;

typedef enum LAMINA_ANY_INT {
  lamina_graph_tensor_property_undef = 0,
  lamina_graph_tensor_property_variable = 1,
  lamina_graph_tensor_property_constant = 2,
  lamina_graph_tensor_property_host_scalar = 3
} lamina_graph_tensor_property_t;

/* What is known about a tensor before it has memory. ndims is -1 for an unknown rank and 0 for a scalar; host scalars have
 * rank 0. A dim may be LAMINA_GRAPH_UNKNOWN_DIM. The id SIZE_MAX denotes the empty logical tensor: an omitted port. */
typedef struct {
  size_t id;
  int32_t ndims;
  lamina_dims_t dims;
  lamina_data_type_t data_type;
  lamina_graph_tensor_property_t property;
  lamina_graph_layout_type_t layout_type;
  union {
    lamina_dims_t strides; /* for layout strided */
    size_t layout_id;      /* for layout opaque */
  } layout;
} lamina_graph_logical_tensor_t;

/* If the rank is known, all dims become LAMINA_GRAPH_UNKNOWN_DIM. Errors: ndims outside -1..12, or above 0 for a host scalar;
 * a value that is not an enumerator. */
LAMINA_API lamina_status_t lamina_graph_logical_tensor_init(lamina_graph_logical_tensor_t* logical_tensor, size_t id,
                                                            lamina_data_type_t data_type, int32_t ndims,
                                                            lamina_graph_layout_type_t layout_type,
                                                            lamina_graph_tensor_property_t property);
/* With layout strided and all dims known, the strides become dense row-major. Errors: a negative dim. */
LAMINA_API lamina_status_t lamina_graph_logical_tensor_init_with_dims(lamina_graph_logical_tensor_t* logical_tensor, size_t id,
                                                                      lamina_data_type_t data_type, int32_t ndims,
                                                                      const lamina_dims_t dims,
                                                                      lamina_graph_layout_type_t layout_type,
                                                                      lamina_graph_tensor_property_t property);
/* Strides in elements; 0 broadcasts. Errors: a negative dim or stride. */
LAMINA_API lamina_status_t lamina_graph_logical_tensor_init_with_strides(lamina_graph_logical_tensor_t* logical_tensor,
                                                                         size_t id, lamina_data_type_t data_type, int32_t ndims,
                                                                         const lamina_dims_t dims, const lamina_dims_t strides,
                                                                         lamina_graph_tensor_property_t property);
/* The size in bytes from the first element to past the last one; SIZE_MAX when the shape or the strides are unknown. */
LAMINA_API lamina_status_t lamina_graph_logical_tensor_get_mem_size(const lamina_graph_logical_tensor_t* logical_tensor,
                                                                    size_t* size);
/* Writes 1 when id, type, shape, layout and property agree. */
LAMINA_API lamina_status_t lamina_graph_logical_tensor_is_equal(const lamina_graph_logical_tensor_t* left,
                                                                const lamina_graph_logical_tensor_t* right, uint8_t* is_equal);

/* ---- op ---- */

typedef enum LAMINA_ANY_INT {
#define LAMINA_OP(kind, value) lamina_graph_op_##kind = value,
#include "graph/op_kinds.def"
  lamina_graph_op_last_symbol = 0x7fff
} lamina_graph_op_kind_t;

typedef enum LAMINA_ANY_INT {
  lamina_graph_op_attr_undef = 0,
#define LAMINA_ATTRIBUTE(name, value, type) lamina_graph_op_attr_##name = value,
#include "graph/attribute_kinds.def"
  lamina_graph_op_attr_last_symbol = 0x7fff
} lamina_graph_op_attr_t;

typedef struct lamina_graph_op* lamina_graph_op_t;
typedef const struct lamina_graph_op* const_lamina_graph_op_t;

/* `verbose_name` may be null or "": the op's name is then KIND_ID. Errors: a kind that does not exist. */
LAMINA_API lamina_status_t lamina_graph_op_create(lamina_graph_op_t* op, size_t id, lamina_graph_op_kind_t kind,
                                                  const char* verbose_name);
LAMINA_API lamina_status_t lamina_graph_op_destroy(lamina_graph_op_t op);
/* Adds ports in the order of the op's schema (`lamina ops KIND` prints it). */
LAMINA_API lamina_status_t lamina_graph_op_add_input(lamina_graph_op_t op, const lamina_graph_logical_tensor_t* input);
LAMINA_API lamina_status_t lamina_graph_op_add_output(lamina_graph_op_t op, const lamina_graph_logical_tensor_t* output);
/* `value_len` counts elements; it is 1 for an attribute that is not a list. lamina_graph_add_op checks whether the op has
 * this attribute, and the range of the value. Errors: an attribute of another type. */
LAMINA_API lamina_status_t lamina_graph_op_set_attr_f32(lamina_graph_op_t op, lamina_graph_op_attr_t name, const float* value,
                                                        size_t value_len);
/* For an attribute whose schema type is f32 (not f32[]). An op with an f64 tensor computes with all digits of the value; other
 * ops round it to f32. */
LAMINA_API lamina_status_t lamina_graph_op_set_attr_f64(lamina_graph_op_t op, lamina_graph_op_attr_t name, const double* value,
                                                        size_t value_len);
LAMINA_API lamina_status_t lamina_graph_op_set_attr_bool(lamina_graph_op_t op, lamina_graph_op_attr_t name,
                                                         const uint8_t* value, size_t value_len);
LAMINA_API lamina_status_t lamina_graph_op_set_attr_s64(lamina_graph_op_t op, lamina_graph_op_attr_t name, const int64_t* value,
                                                        size_t value_len);
/* `value_len` is the string's length; a null byte is not needed. */
LAMINA_API lamina_status_t lamina_graph_op_set_attr_str(lamina_graph_op_t op, lamina_graph_op_attr_t name, const char* value,
                                                        size_t value_len);
LAMINA_API lamina_status_t lamina_graph_op_get_id(const_lamina_graph_op_t op, size_t* id);
LAMINA_API lamina_status_t lamina_graph_op_get_kind(const_lamina_graph_op_t op, lamina_graph_op_kind_t* kind);

/* ---- graph ---- */

typedef enum LAMINA_ANY_INT {
  lamina_graph_partition_policy_fusion = 1,
  lamina_graph_partition_policy_debug = 2
} lamina_graph_partition_policy_t;

typedef struct lamina_graph_graph* lamina_graph_graph_t;
typedef const struct lamina_graph_graph* const_lamina_graph_graph_t;
typedef struct lamina_graph_partition* lamina_graph_partition_t;
typedef const struct lamina_graph_partition* const_lamina_graph_partition_t;

/* The graph gets the default mode (lamina_set_default_fpmath_mode). */
LAMINA_API lamina_status_t lamina_graph_graph_create(lamina_graph_graph_t* graph, lamina_engine_kind_t engine_kind);
LAMINA_API lamina_status_t lamina_graph_graph_create_with_fpmath_mode(lamina_graph_graph_t* graph,
                                                                      lamina_engine_kind_t engine_kind,
                                                                      lamina_fpmath_mode_t mode);
LAMINA_API lamina_status_t lamina_graph_graph_destroy(lamina_graph_graph_t graph);
LAMINA_API lamina_status_t lamina_graph_graph_set_fpmath_mode(lamina_graph_graph_t graph, lamina_fpmath_mode_t mode,
                                                              int apply_to_int);
LAMINA_API lamina_status_t lamina_graph_graph_get_fpmath_mode(const_lamina_graph_graph_t graph, lamina_fpmath_mode_t* mode,
                                                              int* apply_to_int);
/* Checks the op against its schema and adds a copy of it. Errors: lamina_invalid_graph_op and others; the sentence names the
 * op, the port or attribute, the given value and the allowed values. After an error the graph is unchanged. */
LAMINA_API lamina_status_t lamina_graph_add_op(lamina_graph_graph_t graph, const_lamina_graph_op_t op);
/* Declares that every element of an input tensor is `value` at every execution, for example the epsilon under a root or the
 * 1/N of a mean. Passes may then compile the value in; a partition that has compiled it in has no port for it. `value` is
 * rounded to the tensor's type; a new value needs a new tensor id, as with every constant. Errors: a tensor that no op added
 * so far reads, that an op produces, that has the property variable, or that already has another value; a finalized graph. */
LAMINA_API lamina_status_t lamina_graph_graph_set_constant(lamina_graph_graph_t graph, size_t tensor_id, double value);
/* Ends building. Errors: lamina_invalid_graph for a cycle or a tensor with two producers. */
LAMINA_API lamina_status_t lamina_graph_graph_finalize(lamina_graph_graph_t graph);
LAMINA_API lamina_status_t lamina_graph_graph_is_finalized(const_lamina_graph_graph_t graph, uint8_t* finalized);
/* Partitions a finalized graph. Errors: lamina_invalid_graph when it is not finalized. */
LAMINA_API lamina_status_t lamina_graph_graph_filter(lamina_graph_graph_t graph, lamina_graph_partition_policy_t policy);
LAMINA_API lamina_status_t lamina_graph_graph_get_partition_num(const_lamina_graph_graph_t graph, size_t* num);
/* Writes `num` new partition objects in topological order. The caller destroys them; they may outlive the graph. */
LAMINA_API lamina_status_t lamina_graph_graph_get_partitions(lamina_graph_graph_t graph, size_t num,
                                                             lamina_graph_partition_t* partitions);

/* ---- partition ---- */

typedef struct lamina_graph_compiled_partition* lamina_graph_compiled_partition_t;
typedef const struct lamina_graph_compiled_partition* const_lamina_graph_compiled_partition_t;

/* Creates a partition of one op, without a graph. */
LAMINA_API lamina_status_t lamina_graph_partition_create_with_op(lamina_graph_partition_t* partition,
                                                                 const_lamina_graph_op_t op, lamina_engine_kind_t engine_kind);
LAMINA_API lamina_status_t lamina_graph_partition_destroy(lamina_graph_partition_t partition);
LAMINA_API lamina_status_t lamina_graph_partition_get_id(const_lamina_graph_partition_t partition, size_t* id);
/* The ops of the user's graph that the partition contains, including ops that a pass has merged into others. */
LAMINA_API lamina_status_t lamina_graph_partition_get_op_num(const_lamina_graph_partition_t partition, size_t* num);
LAMINA_API lamina_status_t lamina_graph_partition_get_ops(const_lamina_graph_partition_t partition, size_t num, size_t* ids);
/* Writes 0 when no kernel of this engine can run the partition; compile then reports the reason. */
LAMINA_API lamina_status_t lamina_graph_partition_is_supported(const_lamina_graph_partition_t partition, uint8_t* is_supported);
/* Input ports in order of first use by the partition's ops; output ports in the order of the ops. */
LAMINA_API lamina_status_t lamina_graph_partition_get_input_ports_num(const_lamina_graph_partition_t partition, size_t* num);
LAMINA_API lamina_status_t lamina_graph_partition_get_input_ports(const_lamina_graph_partition_t partition, size_t num,
                                                                  lamina_graph_logical_tensor_t* inputs);
LAMINA_API lamina_status_t lamina_graph_partition_get_output_ports_num(const_lamina_graph_partition_t partition, size_t* num);
LAMINA_API lamina_status_t lamina_graph_partition_get_output_ports(const_lamina_graph_partition_t partition, size_t num,
                                                                   lamina_graph_logical_tensor_t* outputs);
LAMINA_API lamina_status_t lamina_graph_partition_get_engine_kind(const_lamina_graph_partition_t partition,
                                                                  lamina_engine_kind_t* kind);
/* Logical tensors are matched to ports by id, in any order; inputs that match no port are ignored. Every input needs a known
 * shape; outputs may have unknown shapes and layout `any`, which becomes the dense row-major layout. A tensor may have a
 * property that the graph leaves undefined: one graph can be compiled with and without constants. Errors: a port without its
 * tensor, a tensor that contradicts the graph, an output with stride 0 along an axis of several elements,
 * lamina_invalid_shape from inference, lamina_unimplemented with the reason. */
LAMINA_API lamina_status_t lamina_graph_partition_compile(const_lamina_graph_partition_t partition,
                                                          lamina_graph_compiled_partition_t compiled_partition, size_t in_num,
                                                          const lamina_graph_logical_tensor_t** inputs, size_t out_num,
                                                          const lamina_graph_logical_tensor_t** outputs,
                                                          const_lamina_engine_t engine);
/* Times the kernels of the partition under several schedules, for these tensors (as for compile) in memory that it allocates,
 * and keeps the fastest schedule. Partitions that are compiled afterwards use it, in this process and, where LAMINA_CACHE_DIR
 * is set, in others. No bit of a result changes. `milliseconds` is the time limit per kernel, including compilation; 0 means
 * 200. `timed` may be null; else it receives the number of kernels that were timed: those without a stored result, and none
 * on a GPU. Tuning uses all threads of the engine; concurrent work distorts the times. Errors: as for compile; milliseconds
 * that are negative or not finite. */
LAMINA_API lamina_status_t lamina_graph_partition_tune(const_lamina_graph_partition_t partition, size_t in_num,
                                                       const lamina_graph_logical_tensor_t** inputs, size_t out_num,
                                                       const lamina_graph_logical_tensor_t** outputs,
                                                       const_lamina_engine_t engine, double milliseconds, size_t* timed);

/* ---- tensor ---- */

typedef struct lamina_graph_tensor* lamina_graph_tensor_t;
typedef const struct lamina_graph_tensor* const_lamina_graph_tensor_t;

/* Values for `handle`: no memory (legal for a tensor without elements); memory that the engine's allocator allocates and
 * frees. */
#define LAMINA_MEMORY_NONE (NULL)
#define LAMINA_MEMORY_ALLOCATE ((void*)(size_t)-1)

/* Joins a logical tensor with memory, which the caller keeps owning. If the shape is unknown, the tensor has the shape that
 * the executed partition was compiled for, and the memory must be large enough for it. Errors: LAMINA_MEMORY_ALLOCATE for a
 * tensor of unknown shape. */
LAMINA_API lamina_status_t lamina_graph_tensor_create(lamina_graph_tensor_t* tensor,
                                                      const lamina_graph_logical_tensor_t* logical_tensor,
                                                      const_lamina_engine_t engine, void* handle);
/* A host scalar: lamina copies the value at `value`. The logical tensor has the property host_scalar and rank 0. */
LAMINA_API lamina_status_t lamina_graph_tensor_create_scalar(lamina_graph_tensor_t* tensor,
                                                             const lamina_graph_logical_tensor_t* logical_tensor,
                                                             const void* value);
LAMINA_API lamina_status_t lamina_graph_tensor_destroy(lamina_graph_tensor_t tensor);
/* Writes null for a host scalar, whose value lamina stores. */
LAMINA_API lamina_status_t lamina_graph_tensor_get_data_handle(const_lamina_graph_tensor_t tensor, void** handle);
/* Releases memory that lamina allocated for this tensor, unless `handle` is that memory. Errors: a host scalar. */
LAMINA_API lamina_status_t lamina_graph_tensor_set_data_handle(lamina_graph_tensor_t tensor, void* handle);
/* The handle that the tensor was created with. The caller owns it and may have destroyed it since. Null for a host scalar. */
LAMINA_API lamina_status_t lamina_graph_tensor_get_engine(const_lamina_graph_tensor_t tensor, lamina_engine_t* engine);
LAMINA_API lamina_status_t lamina_graph_tensor_get_logical_tensor(const_lamina_graph_tensor_t tensor,
                                                                  lamina_graph_logical_tensor_t* logical_tensor);

/* ---- compiled partition ---- */

/* Ids of an input and an output that may share memory. */
typedef struct {
  size_t input_id;
  size_t output_id;
} lamina_graph_inplace_pair_t;

/* Creates an empty object that lamina_graph_partition_compile fills; it remembers the partition. */
LAMINA_API lamina_status_t lamina_graph_compiled_partition_create(lamina_graph_compiled_partition_t* compiled_partition,
                                                                  const_lamina_graph_partition_t partition);
LAMINA_API lamina_status_t lamina_graph_compiled_partition_destroy(lamina_graph_compiled_partition_t compiled_partition);
/* The tensor of a port with its final shape and strides. Errors: an id that is not a port of the partition. */
LAMINA_API lamina_status_t
lamina_graph_compiled_partition_query_logical_tensor(const_lamina_graph_compiled_partition_t compiled_partition,
                                                     size_t tensor_id, lamina_graph_logical_tensor_t* logical_tensor);
/* The array of pairs is valid as long as the compiled partition. */
LAMINA_API lamina_status_t
lamina_graph_compiled_partition_get_inplace_ports(const_lamina_graph_compiled_partition_t compiled_partition,
                                                  size_t* num_inplace_pairs, const lamina_graph_inplace_pair_t** inplace_pairs);
/* Whether an input and an output may share memory; the pairs above name each port at most once. An execution may use several
 * such pairs, each input with one output. Errors: an id that is not a port of the partition. */
LAMINA_API lamina_status_t lamina_graph_compiled_partition_may_share(const_lamina_graph_compiled_partition_t compiled_partition,
                                                                     size_t input_id, size_t output_id, uint8_t* may_share);
/* Runs the partition. Tensors are matched to ports by id, in any order. Many threads may execute one compiled partition at
 * once, each with its own outputs. A thread that has executed it before allocates nothing, with three exceptions that may
 * need code or memory once: another alignment or overlap of the tensors' memory, another number of threads, and a GPU that
 * still runs work of another stream. (Allocations of a GPU's driver are not counted.) An output may share the memory of an
 * input if the two are a pair of in-place ports, and then it must cover all of it. Any other memory shared with an output
 * produces wrong results; lamina does not check for it. Errors: a port without its tensor, a tensor whose type, shape or
 * strides differ from the compiled ones, null memory for a tensor that has elements, a stream or a tensor of an engine on
 * another kind of device than the partition was compiled for. */
LAMINA_API lamina_status_t lamina_graph_compiled_partition_execute(const_lamina_graph_compiled_partition_t compiled_partition,
                                                                   lamina_stream_t stream, size_t num_inputs,
                                                                   const const_lamina_graph_tensor_t* inputs,
                                                                   size_t num_outputs,
                                                                   const const_lamina_graph_tensor_t* outputs);

/* Describes the scratchpad: the memory that an execution needs between and inside its steps. It is a tensor of bytes (u8, one
 * dim, which is 0 if no memory is needed), to be aligned to 64 bytes. Its id, SIZE_MAX - 1, has no meaning. */
LAMINA_API lamina_status_t lamina_graph_compiled_partition_get_scratchpad_logical_tensor(
    const_lamina_graph_compiled_partition_t compiled_partition, lamina_graph_logical_tensor_t* logical_tensor);
/* As lamina_graph_compiled_partition_execute, but uses the caller's scratchpad instead of memory that lamina keeps: a tensor
 * as described above, or larger, of an engine on the same kind of device. Concurrent executions need one scratchpad each. If
 * `scratchpad` is null, lamina uses its own. Errors: a scratchpad that is smaller than needed or misaligned. */
LAMINA_API lamina_status_t
lamina_graph_compiled_partition_execute_v2(const_lamina_graph_compiled_partition_t compiled_partition, lamina_stream_t stream,
                                           size_t num_inputs, const const_lamina_graph_tensor_t* inputs, size_t num_outputs,
                                           const const_lamina_graph_tensor_t* outputs, const_lamina_graph_tensor_t scratchpad);

/* ---- caches and debug files, process-wide ---- */

/* The capacity of the LRU cache of compiled partitions: compiling the same partition for the same tensors again costs one
 * look-up. The initial capacity is 1024; 0 disables the cache. Errors: a negative capacity. */
LAMINA_API lamina_status_t lamina_graph_set_compiled_partition_cache_capacity(int capacity);
LAMINA_API lamina_status_t lamina_graph_get_compiled_partition_cache_capacity(int* capacity);

/* 1 (the initial value) or 0: whether data derived from inputs of property constant (such as weights packed into the layout
 * that a matrix product needs) is computed once, by the first execution of a compiled partition, and kept for the compiled
 * partition's lifetime. Such inputs must then have the same values at every execution. Applies to partitions that are
 * compiled afterwards, in the whole process. Errors: a negative flag. */
LAMINA_API lamina_status_t lamina_graph_set_constant_tensor_cache(int flag);
LAMINA_API lamina_status_t lamina_graph_get_constant_tensor_cache(int* flag);
/* The limit of that kept data over all compiled partitions, in MiB (2^20 bytes); initially no limit (SIZE_MAX). A partition
 * whose data no longer fits when it is compiled recomputes it at every execution. Errors: a kind other than cpu: nothing is
 * kept on a GPU. */
LAMINA_API lamina_status_t lamina_graph_set_constant_tensor_cache_capacity(lamina_engine_kind_t kind, size_t mebibytes);
LAMINA_API lamina_status_t lamina_graph_get_constant_tensor_cache_capacity(lamina_engine_kind_t kind, size_t* mebibytes);

/* Which JSON files are written to the working directory, as by the environment variable LAMINA_GRAPH_DUMP: a bit mask. */
typedef enum LAMINA_ANY_INT {
  lamina_graph_dump_mode_none = 0x0,
  lamina_graph_dump_mode_subgraph = 0x1, /* one file per compiled partition */
  lamina_graph_dump_mode_graph = 0x2     /* one file per graph, before it is partitioned */
} lamina_graph_dump_mode_t;

/* Overrides from now on what the environment requested, except the dumps of passes. Errors: other bits. */
LAMINA_API lamina_status_t lamina_graph_set_dump_mode(lamina_graph_dump_mode_t modes);

#ifdef __cplusplus
}
#endif

#endif
