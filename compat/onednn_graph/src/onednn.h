// oneDNN's graph interface as this library implements it: the headers that it is built with, and additions of newer versions,
// declared by hand with types that every version has. vocabulary.cpp checks the layouts and values that oneDNN and lamina
// share.
#pragma once

#include <oneapi/dnnl/dnnl_graph.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace onednn_graph {

// The version of the graph interface that this library implements.
inline constexpr int kMajor = 3, kMinor = 14;

// A client may pass any number as an enumerator, in C or with a newer header, and oneDNN's enumerations have no fixed
// underlying type. Therefore enumerators from a client are read and stored as numbers.
template <typename Enumeration>
int number_of(const Enumeration& enumerator) {
  int number = 0;
  static_assert(sizeof number == sizeof enumerator);
  std::memcpy(&number, &enumerator, sizeof number);
  return number;
}
template <typename Enumeration>
void set_number(Enumeration& enumerator, int number) {
  static_assert(sizeof number == sizeof enumerator);
  std::memcpy(&enumerator, &number, sizeof number);
}

// Enumerators added after oneDNN 3.2.
inline constexpr int kHostScalar = 3;              // a tensor property
inline constexpr int kFpmathTf32 = 4;              // a floating-point math mode
inline constexpr unsigned kDumpModes = 0x1 | 0x2;  // subgraph, graph

// The special handle that requests memory for a tensor; oneDNN declares it in the header of memory objects, not in
// dnnl_graph.h.
inline void* const kAllocate = reinterpret_cast<void*>(~static_cast<uintptr_t>(0));

}  // namespace onednn_graph

extern "C" {

// Since 3.4.
dnnl_status_t DNNL_API dnnl_graph_set_constant_tensor_cache_capacity(dnnl_engine_kind_t eng_kind, size_t size);
dnnl_status_t DNNL_API dnnl_graph_get_constant_tensor_cache_capacity(dnnl_engine_kind_t eng_kind, size_t* size);
// Since 3.5.
dnnl_status_t DNNL_API dnnl_graph_graph_set_fpmath_mode(dnnl_graph_graph_t graph, dnnl_fpmath_mode_t mode, int apply_to_int);
dnnl_status_t DNNL_API dnnl_graph_graph_get_fpmath_mode(dnnl_graph_graph_t graph, dnnl_fpmath_mode_t* mode, int* apply_to_int);
// Since 3.7.
dnnl_status_t DNNL_API dnnl_graph_tensor_get_logical_tensor(const_dnnl_graph_tensor_t tensor,
                                                            dnnl_graph_logical_tensor_t* logical_tensor);
// Since 3.10 and later.
dnnl_status_t DNNL_API dnnl_graph_tensor_create_scalar(dnnl_graph_tensor_t* tensor,
                                                       const dnnl_graph_logical_tensor_t* logical_tensor, void* scalar);
dnnl_status_t DNNL_API dnnl_graph_set_dump_mode(unsigned modes);
dnnl_status_t DNNL_API dnnl_graph_compiled_partition_get_scratchpad_logical_tensor(
    const_dnnl_graph_compiled_partition_t compiled_partition, dnnl_graph_logical_tensor_t* lt);
dnnl_status_t DNNL_API dnnl_graph_compiled_partition_execute_v2(const_dnnl_graph_compiled_partition_t compiled_partition,
                                                                dnnl_stream_t stream, size_t num_inputs,
                                                                const_dnnl_graph_tensor_t* inputs, size_t num_outputs,
                                                                const_dnnl_graph_tensor_t* outputs,
                                                                const_dnnl_graph_tensor_t scratchpad);
dnnl_status_t DNNL_API dnnl_graph_graph_set_deterministic(dnnl_graph_graph_t graph, int deterministic);
dnnl_status_t DNNL_API dnnl_graph_graph_get_deterministic(const_dnnl_graph_graph_t graph, int* deterministic);
}
