// oneDNN's graph interface as the fuzzer calls it: with numbers where the headers have enumerators, since a C program may pass
// any number. Logical tensors are lamina's, which have the same memory layout (vocabulary.cpp of the drop-in asserts it).
// Statuses are numbers too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/lamina.h"

struct dnnl_engine;
struct dnnl_stream;
struct dnnl_graph_allocator;
struct dnnl_graph_graph;
struct dnnl_graph_op;
struct dnnl_graph_partition;
struct dnnl_graph_compiled_partition;
struct dnnl_graph_tensor;

extern "C" {

int dnnl_engine_create(dnnl_engine** engine, int kind, size_t index);
int dnnl_engine_get_kind(dnnl_engine* engine, int* kind);
int dnnl_engine_destroy(dnnl_engine* engine);
int dnnl_stream_create(dnnl_stream** stream, dnnl_engine* engine, unsigned flags);
int dnnl_stream_get_engine(const dnnl_stream* stream, dnnl_engine** engine);
int dnnl_stream_wait(dnnl_stream* stream);
int dnnl_stream_destroy(dnnl_stream* stream);

using dnnl_allocate = void* (*)(size_t size, size_t alignment);
using dnnl_release = void (*)(void* memory);
int dnnl_graph_allocator_create(dnnl_graph_allocator** allocator, dnnl_allocate allocate, dnnl_release release);
int dnnl_graph_allocator_destroy(dnnl_graph_allocator* allocator);
int dnnl_graph_make_engine_with_allocator(dnnl_engine** engine, int kind, size_t index, const dnnl_graph_allocator* allocator);

int dnnl_graph_logical_tensor_init(lamina_graph_logical_tensor_t* tensor, size_t id, int type, int32_t ndims, int layout,
                                   int property);
int dnnl_graph_logical_tensor_init_with_dims(lamina_graph_logical_tensor_t* tensor, size_t id, int type, int32_t ndims,
                                             const int64_t* dims, int layout, int property);
int dnnl_graph_logical_tensor_init_with_strides(lamina_graph_logical_tensor_t* tensor, size_t id, int type, int32_t ndims,
                                                const int64_t* dims, const int64_t* strides, int property);
int dnnl_graph_logical_tensor_get_mem_size(const lamina_graph_logical_tensor_t* tensor, size_t* size);
int dnnl_graph_logical_tensor_is_equal(const lamina_graph_logical_tensor_t* left, const lamina_graph_logical_tensor_t* right,
                                       uint8_t* is_equal);

int dnnl_graph_op_create(dnnl_graph_op** op, size_t id, int kind, const char* name);
int dnnl_graph_op_destroy(dnnl_graph_op* op);
int dnnl_graph_op_add_input(dnnl_graph_op* op, const lamina_graph_logical_tensor_t* input);
int dnnl_graph_op_add_output(dnnl_graph_op* op, const lamina_graph_logical_tensor_t* output);
int dnnl_graph_op_set_attr_f32(dnnl_graph_op* op, int name, const float* value, size_t length);
int dnnl_graph_op_set_attr_s64(dnnl_graph_op* op, int name, const int64_t* value, size_t length);
int dnnl_graph_op_set_attr_bool(dnnl_graph_op* op, int name, const uint8_t* value, size_t length);
int dnnl_graph_op_set_attr_str(dnnl_graph_op* op, int name, const char* value, size_t length);
int dnnl_graph_op_get_id(const dnnl_graph_op* op, size_t* id);
int dnnl_graph_op_get_kind(const dnnl_graph_op* op, int* kind);

int dnnl_graph_graph_create(dnnl_graph_graph** graph, int engine_kind);
int dnnl_graph_graph_create_with_fpmath_mode(dnnl_graph_graph** graph, int engine_kind, int mode);
int dnnl_graph_graph_destroy(dnnl_graph_graph* graph);
int dnnl_graph_graph_set_fpmath_mode(dnnl_graph_graph* graph, int mode, int apply_to_int);
int dnnl_graph_graph_get_fpmath_mode(dnnl_graph_graph* graph, int* mode, int* apply_to_int);
int dnnl_graph_graph_set_deterministic(dnnl_graph_graph* graph, int deterministic);
int dnnl_graph_graph_get_deterministic(const dnnl_graph_graph* graph, int* deterministic);
int dnnl_graph_add_op(dnnl_graph_graph* graph, dnnl_graph_op* op);
int dnnl_graph_graph_finalize(dnnl_graph_graph* graph);
int dnnl_graph_graph_is_finalized(dnnl_graph_graph* graph, uint8_t* is_finalized);
int dnnl_graph_graph_filter(dnnl_graph_graph* graph, int policy);
int dnnl_graph_graph_get_partition_num(const dnnl_graph_graph* graph, size_t* num);
int dnnl_graph_graph_get_partitions(dnnl_graph_graph* graph, size_t num, dnnl_graph_partition** partitions);

int dnnl_graph_partition_create_with_op(dnnl_graph_partition** partition, const dnnl_graph_op* op, int engine_kind);
int dnnl_graph_partition_destroy(dnnl_graph_partition* partition);
int dnnl_graph_partition_get_op_num(const dnnl_graph_partition* partition, size_t* num);
int dnnl_graph_partition_get_ops(const dnnl_graph_partition* partition, size_t num, size_t* ids);
int dnnl_graph_partition_get_id(const dnnl_graph_partition* partition, size_t* id);
int dnnl_graph_partition_get_input_ports_num(const dnnl_graph_partition* partition, size_t* num);
int dnnl_graph_partition_get_input_ports(const dnnl_graph_partition* partition, size_t num,
                                         lamina_graph_logical_tensor_t* ports);
int dnnl_graph_partition_get_output_ports_num(const dnnl_graph_partition* partition, size_t* num);
int dnnl_graph_partition_get_output_ports(const dnnl_graph_partition* partition, size_t num,
                                          lamina_graph_logical_tensor_t* ports);
int dnnl_graph_partition_is_supported(const dnnl_graph_partition* partition, uint8_t* is_supported);
int dnnl_graph_partition_get_engine_kind(const dnnl_graph_partition* partition, int* kind);
int dnnl_graph_partition_compile(dnnl_graph_partition* partition, dnnl_graph_compiled_partition* compiled, size_t num_inputs,
                                 const lamina_graph_logical_tensor_t** inputs, size_t num_outputs,
                                 const lamina_graph_logical_tensor_t** outputs, dnnl_engine* engine);

int dnnl_graph_compiled_partition_create(dnnl_graph_compiled_partition** compiled, dnnl_graph_partition* partition);
int dnnl_graph_compiled_partition_destroy(dnnl_graph_compiled_partition* compiled);
int dnnl_graph_compiled_partition_query_logical_tensor(const dnnl_graph_compiled_partition* compiled, size_t id,
                                                       lamina_graph_logical_tensor_t* tensor);
int dnnl_graph_compiled_partition_get_inplace_ports(const dnnl_graph_compiled_partition* compiled, size_t* num,
                                                    const lamina_graph_inplace_pair_t** pairs);
int dnnl_graph_compiled_partition_get_scratchpad_logical_tensor(const dnnl_graph_compiled_partition* compiled,
                                                                lamina_graph_logical_tensor_t* tensor);
int dnnl_graph_compiled_partition_execute_v2(const dnnl_graph_compiled_partition* compiled, dnnl_stream* stream,
                                             size_t num_inputs, const dnnl_graph_tensor** inputs, size_t num_outputs,
                                             const dnnl_graph_tensor** outputs, const dnnl_graph_tensor* scratchpad);

int dnnl_graph_tensor_create(dnnl_graph_tensor** tensor, const lamina_graph_logical_tensor_t* logical, dnnl_engine* engine,
                             void* handle);
int dnnl_graph_tensor_create_scalar(dnnl_graph_tensor** tensor, const lamina_graph_logical_tensor_t* logical, void* value);
int dnnl_graph_tensor_destroy(dnnl_graph_tensor* tensor);
int dnnl_graph_tensor_get_data_handle(const dnnl_graph_tensor* tensor, void** handle);
int dnnl_graph_tensor_set_data_handle(dnnl_graph_tensor* tensor, void* handle);
int dnnl_graph_tensor_get_engine(const dnnl_graph_tensor* tensor, dnnl_engine** engine);
int dnnl_graph_tensor_get_logical_tensor(const dnnl_graph_tensor* tensor, lamina_graph_logical_tensor_t* logical);

int dnnl_graph_get_compiled_partition_cache_capacity(int* capacity);
int dnnl_graph_set_compiled_partition_cache_capacity(int capacity);
int dnnl_graph_get_constant_tensor_cache(int* flag);
int dnnl_graph_set_constant_tensor_cache(int flag);
int dnnl_graph_get_constant_tensor_cache_capacity(int engine_kind, size_t* size);
int dnnl_graph_set_constant_tensor_cache_capacity(int engine_kind, size_t size);
int dnnl_graph_set_dump_mode(unsigned modes);
int dnnl_get_default_fpmath_mode(int* mode);
int dnnl_set_default_fpmath_mode(int mode);
}
