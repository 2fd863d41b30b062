/* lamina, C interface for exported models: a graph, its weights and its machine code as one file, which
 * graph/lamina_runtime.h loads. docs/export.md describes both. Statuses and lamina_last_error() are those of graph/lamina.h. */
#ifndef LAMINA_GRAPH_EXPORT_H
#define LAMINA_GRAPH_EXPORT_H

#include "graph/lamina.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Receives the next bytes of the file, on the calling thread. Any result but 0 cancels, and the export fails with
 * lamina_runtime_error. */
typedef int (*lamina_write_bytes_f)(void* user, const void* bytes, size_t length);

/* Members that are zero are defaults. */
typedef struct {
  size_t size; /* sizeof(lamina_graph_export_options_t) */
  /* Instruction sets, as LAMINA_MAX_ISA names them, the best first; also those of other machines. Default: the best one of this
   * machine. */
  size_t num_isas;
  const char* const* isas;
  /* The most threads that a run uses. Default: 16. */
  int threads;
  /* Not 0: weights are also in the file as they are packed for each instruction set, so that the first run packs none of them.
   */
  int packed;
  /* Inputs of the graph that become part of the file: ids, and data in the tensors' strides, dense if the graph knows none. */
  size_t num_weights;
  const size_t* weight_ids;
  const void* const* weights;
  const size_t* weight_bytes;
  /* Ids and names of the model's inputs, in its order: all inputs of the graph but weights and known constants. Default: these
   * inputs in the graph's order, with their ids as names. */
  size_t num_inputs;
  const size_t* input_ids;
  const char* const* input_names;
  /* The same for outputs; outputs of the graph that are not listed are not outputs of the model. */
  size_t num_outputs;
  const size_t* output_ids;
  const char* const* output_names;
} lamina_graph_export_options_t;

/* A copy of a finalized graph in which `inputs` describe its inputs of these ids, in dense layout if they have no strides.
 * Shapes that follow from them are inferred again. Errors: an id that is no input of the graph; another type; shapes that
 * contradict each other. */
LAMINA_API lamina_status_t lamina_graph_graph_create_for_shapes(lamina_graph_graph_t* graph,
                                                                const_lamina_graph_graph_t original, size_t num,
                                                                const lamina_graph_logical_tensor_t* inputs);
/* Writes a model with a variant for each graph: one for each list of input shapes. The graphs are finalized, all shapes are
 * known, and inputs and outputs differ in shapes only. The same input gives the same bytes. `options` may be null. Errors:
 * lamina_unimplemented, with all ops that cannot be exported; an instruction set that does not exist; data of another size;
 * graphs that do not fit together. Bytes that `write` received before an error are no model. */
LAMINA_API lamina_status_t lamina_graph_export(size_t num_graphs, const const_lamina_graph_graph_t* graphs,
                                               const lamina_graph_export_options_t* options, lamina_write_bytes_f write,
                                               void* user);

#ifdef __cplusplus
}
#endif

#endif
