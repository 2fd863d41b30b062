/* lamina, C interface: a graph of deep-learning operations is described, partitioned, compiled and executed.
 *
 * The way through it: lamina_graph_graph_create, lamina_graph_op_create and _add_input/_add_output/_set_attr_*,
 * lamina_graph_add_op, lamina_graph_graph_finalize, lamina_graph_graph_filter, lamina_graph_graph_get_partitions,
 * lamina_graph_partition_compile, lamina_graph_compiled_partition_execute.
 *
 * Names, enumerators and meaning follow oneDNN's graph interface (prefix `lamina_` instead of `dnnl_`), see
 * docs/architecture.md. Every call returns a lamina_status_t, unless said otherwise; when it is not lamina_success,
 * lamina_last_error() holds one sentence and no output argument was written. A null pointer where an object or a result is
 * expected is refused with lamina_invalid_arguments. Objects are released with their _destroy function, which accepts null.
 *
 * Threads: an object may be used by one thread at a time, except that partitions, compiled partitions, engines, tensors and
 * streams of a CPU may be read, compiled and executed (on) by many at once. */
#ifndef LAMINA_H
#define LAMINA_H

#include <stddef.h>
#include <stdint.h>

#define LAMINA_API __attribute__((visibility("default")))

/* After `enum` of a type that comes in: an integer that is no enumerator is refused by name, in C++ as in C. */
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
  lamina_invalid_data_type = 10
} lamina_status_t;

/* The sentence of the last call of this thread that failed, "" when none did. Valid until this thread's next failing call. */
LAMINA_API const char* lamina_last_error(void);
/* For libraries over lamina that refuse something themselves: this thread's sentence from now on. Null stands for "". */
LAMINA_API void lamina_set_last_error(const char* sentence);

typedef struct {
  int major;
  int minor;
  int patch;
} lamina_version_t;

/* The version of the library that is loaded. Never null. */
LAMINA_API const lamina_version_t* lamina_version(void);

/* What is printed on stdout from now on, in the whole process, as by the environment's LAMINA_VERBOSE: 0 nothing, 1 a line for
 * each compile and each execution, 2 also for each pass. Errors: another level. */
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

/* The mode of graphs that are created from now on without one, in the whole process: strict at first. */
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

/* How many engines of a kind there are: 1 for cpu, the devices of CUDA and OpenCL for gpu. Returns the number itself, 0 when it
 * cannot be found out; lamina_last_error() says why then. */
LAMINA_API size_t lamina_engine_get_count(lamina_engine_kind_t kind);
/* Errors: index >= count; lamina_unimplemented for a kind that this build has no backend for. */
LAMINA_API lamina_status_t lamina_engine_create(lamina_engine_t* engine, lamina_engine_kind_t kind, size_t index);
LAMINA_API lamina_status_t lamina_engine_get_kind(const_lamina_engine_t engine, lamina_engine_kind_t* kind);
LAMINA_API lamina_status_t lamina_engine_destroy(lamina_engine_t engine);

/* Both functions or none of them must be given; none means aligned new and delete. */
LAMINA_API lamina_status_t lamina_graph_allocator_create(lamina_graph_allocator_t* allocator,
                                                         lamina_graph_host_allocate_f host_malloc,
                                                         lamina_graph_host_deallocate_f host_free);
LAMINA_API lamina_status_t lamina_graph_allocator_destroy(lamina_graph_allocator_t allocator);
/* The engine keeps a copy of the callbacks: the allocator object may be destroyed before it. */
LAMINA_API lamina_status_t lamina_graph_make_engine_with_allocator(lamina_engine_t* engine, lamina_engine_kind_t kind,
                                                                   size_t index, const_lamina_graph_allocator_t allocator);

/* A framework's own threads, for a CPU engine in place of lamina's. Results have the same bits with either.
 *
 * An execution asks in_parallel and num_threads, at most once each, on the thread that executes. Where in_parallel says 1 (this
 * thread is one of the pool's, at work already), or there is little to do, it runs on this thread alone. Otherwise it calls
 * parallel_for on this thread, several times one after the other. Compiling uses no threads. So:
 *   - many executions at once call these functions at once, of one pool: they must be thread-safe;
 *   - work items never wait for one another: the pool may run them in any order, together or one after the other, on any of its
 *     threads or on the calling one, several on one thread;
 *   - while items run, other libraries on that thread are told to use one thread of OpenMP;
 *   - a work item takes no lock of the caller's, and throws nothing.
 * A pool whose parallel_for waits for free threads, called on one of these threads, waits for ever: in_parallel is there to
 * tell. A function of the pool that throws a C++ exception fails the execution with lamina_runtime_error and its text.
 * parallel_for must not return or throw while an item runs, nor start one later. */
typedef struct {
  size_t size; /* sizeof(lamina_threadpool_t): which members the caller knows of */
  void* user;  /* handed to each function */
  /* How many threads an execution may use, 1 or more; asked when the engine is created as well. More than there were when a
   * partition was compiled are used by some steps only. */
  int (*num_threads)(void* user);
  /* 1 when the calling thread runs a work item of this pool, also one that is not lamina's; else 0. */
  int (*in_parallel)(void* user);
  /* Calls work(state, index) once for each index = 0 .. count - 1 and returns when all calls have returned. */
  void (*parallel_for)(void* user, int count, void (*work)(void* state, int index), void* state);
} lamina_threadpool_t;

/* The engine and its streams keep a copy of the struct; what `user` points to must outlive them and every execution. Which
 * threads run an execution is a matter of its stream, whatever engine the partition was compiled for. `allocator` may be null:
 * aligned new and delete. What runs by the reference's loops (LAMINA_ALLOW_REFERENCE) keeps to OpenMP. Errors: another kind
 * than cpu or any; another size; a null function; num_threads below 1. */
LAMINA_API lamina_status_t lamina_graph_make_engine_with_threadpool(lamina_engine_t* engine, lamina_engine_kind_t kind,
                                                                    size_t index, const_lamina_graph_allocator_t allocator,
                                                                    const lamina_threadpool_t* pool);

/* lamina's streams run what they are given in order, whichever order is asked for. */
typedef enum LAMINA_ANY_INT {
  lamina_stream_in_order = 0x1,
  lamina_stream_out_of_order = 0x2,
  lamina_stream_default_flags = lamina_stream_in_order,
  lamina_stream_profiling = 0x4
} lamina_stream_flags_t;

/* `flags`: one of the two orders. Errors: lamina_unimplemented for profiling, lamina_invalid_arguments for other bits. */
LAMINA_API lamina_status_t lamina_stream_create(lamina_stream_t* stream, const_lamina_engine_t engine, unsigned flags);
/* The handle that the stream was created with; it is the caller's and may have been destroyed since. */
LAMINA_API lamina_status_t lamina_stream_get_engine(const_lamina_stream_t stream, lamina_engine_t* engine);
/* Returns when all that was submitted has run. On the CPU, execution is finished when execute returns. */
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
  lamina_graph_layout_type_strided = 2, /* given by strides, in elements */
  lamina_graph_layout_type_opaque = 3   /* never made by lamina; refused at compile */
} lamina_graph_layout_type_t;

typedef enum LAMINA_ANY_INT {
  lamina_graph_tensor_property_undef = 0,
  lamina_graph_tensor_property_variable = 1,
  lamina_graph_tensor_property_constant = 2,
  lamina_graph_tensor_property_host_scalar = 3
} lamina_graph_tensor_property_t;

/* What is known of a tensor before it has memory. ndims -1: rank unknown; 0: a scalar, which every host scalar is; a dim may be
 * LAMINA_GRAPH_UNKNOWN_DIM.
 * id SIZE_MAX is the empty logical tensor: a port that is left out. */
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

/* Errors: ndims outside -1..12, or above 0 for a host scalar; an enumerator that does not exist. All dims of a known rank are
 * unknown. */
LAMINA_API lamina_status_t lamina_graph_logical_tensor_init(lamina_graph_logical_tensor_t* logical_tensor, size_t id,
                                                            lamina_data_type_t data_type, int32_t ndims,
                                                            lamina_graph_layout_type_t layout_type,
                                                            lamina_graph_tensor_property_t property);
/* With layout strided and all dims known the strides are dense, row-major. Errors: a negative dim. */
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
/* Bytes from the first to past the last element; SIZE_MAX when the shape or the strides are not known. */
LAMINA_API lamina_status_t lamina_graph_logical_tensor_get_mem_size(const lamina_graph_logical_tensor_t* logical_tensor,
                                                                    size_t* size);
/* 1 when id, type, shape, layout and property agree. */
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

/* `verbose_name` may be null or "": the op is then named KIND_ID. Errors: a kind that does not exist. */
LAMINA_API lamina_status_t lamina_graph_op_create(lamina_graph_op_t* op, size_t id, lamina_graph_op_kind_t kind,
                                                  const char* verbose_name);
LAMINA_API lamina_status_t lamina_graph_op_destroy(lamina_graph_op_t op);
/* Ports in the order of the op's schema (`lamina ops KIND` prints it). */
LAMINA_API lamina_status_t lamina_graph_op_add_input(lamina_graph_op_t op, const lamina_graph_logical_tensor_t* input);
LAMINA_API lamina_status_t lamina_graph_op_add_output(lamina_graph_op_t op, const lamina_graph_logical_tensor_t* output);
/* `value_len` counts elements and is 1 for an attribute that is not a list. Errors: an attribute of another type. Whether the
 * op has this attribute, and the value's range, are checked by lamina_graph_add_op. */
LAMINA_API lamina_status_t lamina_graph_op_set_attr_f32(lamina_graph_op_t op, lamina_graph_op_attr_t name, const float* value,
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

/* With the default mode (lamina_set_default_fpmath_mode). */
LAMINA_API lamina_status_t lamina_graph_graph_create(lamina_graph_graph_t* graph, lamina_engine_kind_t engine_kind);
LAMINA_API lamina_status_t lamina_graph_graph_create_with_fpmath_mode(lamina_graph_graph_t* graph,
                                                                      lamina_engine_kind_t engine_kind,
                                                                      lamina_fpmath_mode_t mode);
LAMINA_API lamina_status_t lamina_graph_graph_destroy(lamina_graph_graph_t graph);
LAMINA_API lamina_status_t lamina_graph_graph_set_fpmath_mode(lamina_graph_graph_t graph, lamina_fpmath_mode_t mode,
                                                              int apply_to_int);
LAMINA_API lamina_status_t lamina_graph_graph_get_fpmath_mode(const_lamina_graph_graph_t graph, lamina_fpmath_mode_t* mode,
                                                              int* apply_to_int);
/* Checks the op against its schema and adds a copy of it. Errors: lamina_invalid_graph_op and others, naming the op, the port
 * or attribute, what was given and what is allowed; the graph is unchanged then. */
LAMINA_API lamina_status_t lamina_graph_add_op(lamina_graph_graph_t graph, const_lamina_graph_op_t op);
/* Says that every element of an input tensor is `value` at every execution, e.g. the epsilon under a root or the 1/N of a mean.
 * Passes may then compile it in, and a partition that did so has no port for it. `value` is rounded to the tensor's type; a new
 * value needs a new tensor id, as with every constant. Errors: a tensor that no op added so far reads, that an op makes, that
 * has the property variable or another value already; a finalized graph. */
LAMINA_API lamina_status_t lamina_graph_graph_set_constant(lamina_graph_graph_t graph, size_t tensor_id, double value);
/* Ends building. Errors: lamina_invalid_graph for a cycle or a tensor with two producers. */
LAMINA_API lamina_status_t lamina_graph_graph_finalize(lamina_graph_graph_t graph);
LAMINA_API lamina_status_t lamina_graph_graph_is_finalized(const_lamina_graph_graph_t graph, uint8_t* finalized);
/* Partitions a finalized graph. Errors: lamina_invalid_graph when it is not finalized. */
LAMINA_API lamina_status_t lamina_graph_graph_filter(lamina_graph_graph_t graph, lamina_graph_partition_policy_t policy);
LAMINA_API lamina_status_t lamina_graph_graph_get_partition_num(const_lamina_graph_graph_t graph, size_t* num);
/* Writes `num` new partition objects, which the caller destroys, in topological order. They outlive the graph. */
LAMINA_API lamina_status_t lamina_graph_graph_get_partitions(lamina_graph_graph_t graph, size_t num,
                                                             lamina_graph_partition_t* partitions);

/* ---- partition ---- */

typedef struct lamina_graph_compiled_partition* lamina_graph_compiled_partition_t;
typedef const struct lamina_graph_compiled_partition* const_lamina_graph_compiled_partition_t;

/* A partition of one op, without a graph. */
LAMINA_API lamina_status_t lamina_graph_partition_create_with_op(lamina_graph_partition_t* partition,
                                                                 const_lamina_graph_op_t op, lamina_engine_kind_t engine_kind);
LAMINA_API lamina_status_t lamina_graph_partition_destroy(lamina_graph_partition_t partition);
LAMINA_API lamina_status_t lamina_graph_partition_get_id(const_lamina_graph_partition_t partition, size_t* id);
/* The ops of the user's graph that are in the partition: an op that a pass took into another one counts too. */
LAMINA_API lamina_status_t lamina_graph_partition_get_op_num(const_lamina_graph_partition_t partition, size_t* num);
LAMINA_API lamina_status_t lamina_graph_partition_get_ops(const_lamina_graph_partition_t partition, size_t num, size_t* ids);
/* 0 when no kernel of this engine can run it; compile then says why. */
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
/* Logical tensors are matched to ports by id, in any order; inputs that are no port are ignored. Every input needs a known
 * shape; outputs may have unknown shapes and layout `any`, which becomes dense row-major. Errors: a port without its tensor, a
 * tensor that contradicts the graph, an output with stride 0 along an axis of several elements, lamina_invalid_shape from
 * inference, lamina_unimplemented with the reason. */
LAMINA_API lamina_status_t lamina_graph_partition_compile(const_lamina_graph_partition_t partition,
                                                          lamina_graph_compiled_partition_t compiled_partition, size_t in_num,
                                                          const lamina_graph_logical_tensor_t** inputs, size_t out_num,
                                                          const lamina_graph_logical_tensor_t** outputs,
                                                          const_lamina_engine_t engine);
/* Times the kernels of the partition under several schedules, for these tensors (as for compile) and on memory of its own, and
 * keeps the fastest: partitions that are compiled from then on run by it, in this process and, where LAMINA_CACHE_DIR is set,
 * in others. No bit of a result changes. `milliseconds`: of each kernel, compiling included; 0: 200. `timed` may be null; else
 * it gets the number of kernels that were timed: those of which nothing is known yet, none on a GPU. Takes all threads of the
 * engine; what else runs meanwhile spoils the times. Errors: as for compile; milliseconds that are negative or not finite. */
LAMINA_API lamina_status_t lamina_graph_partition_tune(const_lamina_graph_partition_t partition, size_t in_num,
                                                       const lamina_graph_logical_tensor_t** inputs, size_t out_num,
                                                       const lamina_graph_logical_tensor_t** outputs,
                                                       const_lamina_engine_t engine, double milliseconds, size_t* timed);

/* ---- tensor ---- */

typedef struct lamina_graph_tensor* lamina_graph_tensor_t;
typedef const struct lamina_graph_tensor* const_lamina_graph_tensor_t;

/* As `handle`: no memory (legal for a tensor without elements); memory that the engine's allocator gives and takes back. */
#define LAMINA_MEMORY_NONE (NULL)
#define LAMINA_MEMORY_ALLOCATE ((void*)(size_t)-1)

/* Joins a logical tensor with memory, which stays the caller's. Where its shape is not known, it stands for the one that the
 * partition was compiled for, whatever partition that is: the memory must hold it. Errors: LAMINA_MEMORY_ALLOCATE for a tensor
 * of unknown shape. */
LAMINA_API lamina_status_t lamina_graph_tensor_create(lamina_graph_tensor_t* tensor,
                                                      const lamina_graph_logical_tensor_t* logical_tensor,
                                                      const_lamina_engine_t engine, void* handle);
/* A host scalar: the value at `value` is copied. The logical tensor has the property host_scalar and rank 0. */
LAMINA_API lamina_status_t lamina_graph_tensor_create_scalar(lamina_graph_tensor_t* tensor,
                                                             const lamina_graph_logical_tensor_t* logical_tensor,
                                                             const void* value);
LAMINA_API lamina_status_t lamina_graph_tensor_destroy(lamina_graph_tensor_t tensor);
/* Null for a host scalar, whose value lamina keeps. */
LAMINA_API lamina_status_t lamina_graph_tensor_get_data_handle(const_lamina_graph_tensor_t tensor, void** handle);
/* Memory that lamina had allocated for this tensor is released, unless `handle` is that memory. Errors: a host scalar. */
LAMINA_API lamina_status_t lamina_graph_tensor_set_data_handle(lamina_graph_tensor_t tensor, void* handle);
/* The handle that the tensor was created with; it is the caller's and may have been destroyed since. Null for a host scalar. */
LAMINA_API lamina_status_t lamina_graph_tensor_get_engine(const_lamina_graph_tensor_t tensor, lamina_engine_t* engine);
LAMINA_API lamina_status_t lamina_graph_tensor_get_logical_tensor(const_lamina_graph_tensor_t tensor,
                                                                  lamina_graph_logical_tensor_t* logical_tensor);

/* ---- compiled partition ---- */

/* Ids of an input and an output that may be given the same memory. */
typedef struct {
  size_t input_id;
  size_t output_id;
} lamina_graph_inplace_pair_t;

/* An empty object that lamina_graph_partition_compile fills; it remembers the partition. */
LAMINA_API lamina_status_t lamina_graph_compiled_partition_create(lamina_graph_compiled_partition_t* compiled_partition,
                                                                  const_lamina_graph_partition_t partition);
LAMINA_API lamina_status_t lamina_graph_compiled_partition_destroy(lamina_graph_compiled_partition_t compiled_partition);
/* The tensor of a port with its final shape and strides. Errors: the id is no port of the partition. */
LAMINA_API lamina_status_t
lamina_graph_compiled_partition_query_logical_tensor(const_lamina_graph_compiled_partition_t compiled_partition,
                                                     size_t tensor_id, lamina_graph_logical_tensor_t* logical_tensor);
/* The pairs live as long as the compiled partition. */
LAMINA_API lamina_status_t
lamina_graph_compiled_partition_get_inplace_ports(const_lamina_graph_compiled_partition_t compiled_partition,
                                                  size_t* num_inplace_pairs, const lamina_graph_inplace_pair_t** inplace_pairs);
/* Runs it: tensors are matched to ports by id, in any order. Many threads may execute one compiled partition at once, each on
 * its own outputs. A thread that has executed it before allocates nothing, unless memory now lies otherwise, there are more or
 * fewer threads, or a GPU still works on what another stream was given: each may need code or memory of its own once. (What a
 * GPU's driver allocates is its own.) Errors: a port without its tensor, a tensor whose type, shape or strides differ from what
 * was compiled, null memory for a tensor that has elements, a stream or a tensor of an engine on another kind of device than
 * the partition was compiled for. An output may be in the memory of an input where they are a pair of in-place ports, and then
 * in all of it; what else shares memory with an output gives wrong results, which is not checked. */
LAMINA_API lamina_status_t lamina_graph_compiled_partition_execute(const_lamina_graph_compiled_partition_t compiled_partition,
                                                                   lamina_stream_t stream, size_t num_inputs,
                                                                   const const_lamina_graph_tensor_t* inputs,
                                                                   size_t num_outputs,
                                                                   const const_lamina_graph_tensor_t* outputs);

/* The memory that an execution needs between and inside its steps: a tensor of bytes (u8, one dim, 0 where nothing is needed),
 * to be aligned to 64 bytes. Its id, SIZE_MAX - 1, means nothing. */
LAMINA_API lamina_status_t lamina_graph_compiled_partition_get_scratchpad_logical_tensor(
    const_lamina_graph_compiled_partition_t compiled_partition, lamina_graph_logical_tensor_t* logical_tensor);
/* As lamina_graph_compiled_partition_execute, in the caller's scratchpad instead of memory that lamina keeps: a tensor as
 * described above, or larger, of an engine on the same kind of device. Executions that run at once need one each. Null:
 * lamina's. Errors: a scratchpad that is smaller than needed or not aligned. */
LAMINA_API lamina_status_t
lamina_graph_compiled_partition_execute_v2(const_lamina_graph_compiled_partition_t compiled_partition, lamina_stream_t stream,
                                           size_t num_inputs, const const_lamina_graph_tensor_t* inputs, size_t num_outputs,
                                           const const_lamina_graph_tensor_t* outputs, const_lamina_graph_tensor_t scratchpad);

/* ---- what is kept in memory, and what is written for debugging, in the whole process ---- */

/* How many compiled partitions are kept, those that were compiled or found again last: compiling the same for the same tensors
 * costs a look-up. 1024 at first; 0: none. Errors: a negative capacity. */
LAMINA_API lamina_status_t lamina_graph_set_compiled_partition_cache_capacity(int capacity);
LAMINA_API lamina_status_t lamina_graph_get_compiled_partition_cache_capacity(int* capacity);

/* Whether what is made of inputs of property constant (weights in the layout that a product wants) is made once, by the first
 * execution of a compiled partition, and kept as long as that lives: 1 (at first) or 0. Such inputs must then hold the same
 * values at every execution. Holds for partitions that are compiled afterwards, in the whole process. Errors: a negative flag.
 */
LAMINA_API lamina_status_t lamina_graph_set_constant_tensor_cache(int flag);
LAMINA_API lamina_status_t lamina_graph_get_constant_tensor_cache(int* flag);
/* How much of that is kept at most, in MiB (2^20 bytes) of all compiled partitions together; no limit at first (SIZE_MAX).
 * Partitions that are compiled when what they would keep no longer fits make it at every execution. Errors: another kind than
 * cpu: on a GPU nothing is kept. */
LAMINA_API lamina_status_t lamina_graph_set_constant_tensor_cache_capacity(lamina_engine_kind_t kind, size_t mebibytes);
LAMINA_API lamina_status_t lamina_graph_get_constant_tensor_cache_capacity(lamina_engine_kind_t kind, size_t* mebibytes);

/* JSON files in the working directory, as by the environment's LAMINA_GRAPH_DUMP: bits. */
typedef enum LAMINA_ANY_INT {
  lamina_graph_dump_mode_none = 0x0,
  lamina_graph_dump_mode_subgraph = 0x1, /* of each partition that is compiled */
  lamina_graph_dump_mode_graph = 0x2     /* of each graph before it is partitioned */
} lamina_graph_dump_mode_t;

/* From now on, in place of what the environment asked for (dumps of passes stay). Errors: other bits. */
LAMINA_API lamina_status_t lamina_graph_set_dump_mode(lamina_graph_dump_mode_t modes);

#ifdef __cplusplus
}
#endif

#endif
