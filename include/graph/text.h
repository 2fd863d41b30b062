/* lamina, C interface of what graphs and ops say of themselves, for language bindings and tools: graphs as JSON dumps, the
 * outputs that an op will have, schemas, the reasons behind partitions and the code behind compiled ones, pictures of both; how
 * far a compilation has come, and lines about what is compiled and executed.
 *
 * Where a function makes a text it calls `write(user, text, length)` once, on the calling thread, before it returns; the text
 * is UTF-8, without a null byte at its end, and valid during that call. Statuses and lamina_last_error() are those of
 * graph/lamina.h. */
#ifndef LAMINA_TEXT_H
#define LAMINA_TEXT_H

#include "graph/lamina.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*lamina_text_f)(void* user, const char* text, size_t length);

/* ---- graphs ---- */

/* A graph from a dump (docs/dumps.md), not finalized. `name` stands in front of errors; null: "graph". Errors:
 * lamina_invalid_graph naming line and column, or the op; others as for lamina_graph_add_op. */
LAMINA_API lamina_status_t lamina_graph_graph_create_from_json(lamina_graph_graph_t* graph, const char* text, size_t length,
                                                               const char* name);
/* The graph as a dump, which `lamina replay` runs. */
LAMINA_API lamina_status_t lamina_graph_graph_write_json(const_lamina_graph_graph_t graph, lamina_text_f write, void* user);
/* What the graph knows of a tensor; of a finalized graph, its inferred shape too. Errors: no op has this tensor. */
LAMINA_API lamina_status_t lamina_graph_graph_get_logical_tensor(const_lamina_graph_graph_t graph, size_t tensor_id,
                                                                 lamina_graph_logical_tensor_t* logical_tensor);
/* The tensors that ops read and none makes, in order of first use, and those that none reads or an End op marks. */
LAMINA_API lamina_status_t lamina_graph_graph_get_border_num(const_lamina_graph_graph_t graph, size_t* num_inputs,
                                                             size_t* num_outputs);
LAMINA_API lamina_status_t lamina_graph_graph_get_border(const_lamina_graph_graph_t graph, size_t num_inputs,
                                                         lamina_graph_logical_tensor_t* inputs, size_t num_outputs,
                                                         lamina_graph_logical_tensor_t* outputs);

/* ---- ops ---- */

/* The logical tensors that the op's outputs will be, one per output port that exists for its attributes: types and shapes as
 * they follow from its schema and inputs (an unknown dim or rank where they do not follow; a type that may be chosen is that of
 * the first input if that is legal), layout any, id SIZE_MAX. The op's own outputs are not looked at. `*num` is the capacity of
 * `outputs` and becomes their number. Errors: those of lamina_graph_add_op; a capacity that is too small. */
LAMINA_API lamina_status_t lamina_graph_op_infer_outputs(const_lamina_graph_op_t op, size_t* num,
                                                         lamina_graph_logical_tensor_t* outputs);
/* The schema as a JSON object: "kind", "class", "formula", "inputs" and "outputs" (lists of {"name", "type", "given",
 * "meaning"}), "attributes" (lists of {"name", "type", "given", "allowed", "meaning"}), "types" (variable -> list of types). */
LAMINA_API lamina_status_t lamina_graph_op_kind_write_schema(lamina_graph_op_kind_t kind, lamina_text_f write, void* user);

/* ---- partitions ---- */

/* Why each op is where it is, as a JSON object: "supported", "unsupported_reason" where it is not, and "ops", a list of {"id",
 * "kind", "name", "reasons": [{"code", "text"}]} in the order in which they run. */
LAMINA_API lamina_status_t lamina_graph_partition_write_reasons(const_lamina_graph_partition_t partition, lamina_text_f write,
                                                                void* user);
/* What was compiled, as a JSON object: "backend", "kernels" (names), "schedules", "required_bytes" (inputs and outputs, each
 * once), "moved_bytes" (read and written in main memory by kernels), "workspace_bytes", "compile_ms", "from_cache". */
LAMINA_API lamina_status_t lamina_graph_compiled_partition_write_info(
    const_lamina_graph_compiled_partition_t compiled_partition, lamina_text_f write, void* user);

/* What there is to tell of partitions and their code, in one text. */
typedef enum LAMINA_ANY_INT {
  lamina_graph_explanation_json = 0, /* an object; its keys are told in src/interface/json/explained.h */
  lamina_graph_explanation_html = 1, /* a page that needs nothing else: a drawing, a search, a panel for each op */
  lamina_graph_explanation_dot = 2   /* for Graphviz */
} lamina_graph_explanation_t;

/* Explains partitions of one graph, given in an order in which they can run. `engine` null: as they were partitioned, without
 * code. Else each is compiled for the engine, to tell its kernels, schedules and tiles: for the tensors of `compiled[i]` where
 * `compiled` and this entry are not null, else for the shapes that the graph knows; one that cannot be compiled tells why.
 * `title` stands above, null for none. `report`: null, or a report of `lamina replay --report` (of one file) about the same
 * partitions, whose times are told. Errors: no partitions; partitions of two graphs; a format that does not exist; an empty
 * compiled partition; a report of other partitions. */
LAMINA_API lamina_status_t lamina_graph_partitions_explain(size_t num, const const_lamina_graph_partition_t* partitions,
                                                           const const_lamina_graph_compiled_partition_t* compiled,
                                                           const_lamina_engine_t engine, lamina_graph_explanation_t format,
                                                           const char* title, const char* report, lamina_text_f write,
                                                           void* user);

/* ---- what is told meanwhile ---- */

/* `done` of `total` steps (kernels, library steps, tiled chains) of a partition are compiled; `name` is "partition 3: LayerNorm
 * + GELU", valid during the call. Returns 0 to go on; anything else stops: the compile fails with lamina_runtime_error. */
typedef int (*lamina_compile_progress_f)(void* user, size_t done, size_t total, const char* name);

/* Has `report` called, on this thread, by compilations of this thread from now on: before each step and, done being total, at
 * the end. What is found in the cache is not compiled, and not told. Null: nothing is told, as at first. */
LAMINA_API lamina_status_t lamina_set_compile_progress(lamina_compile_progress_f report, void* user);

/* What LAMINA_VERBOSE prints (docs/debugging.md), asked for by the program: level 1 tells of compilations and executions, 2 of
 * passes too, 0 of nothing; -1: what the environment says, as at first. `write` gets each line, without a line end, in place of
 * stdout; it is called on any thread, by one at a time, and must call nothing of lamina. Null: stdout. For the whole process.
 * Errors: another level. */
LAMINA_API lamina_status_t lamina_set_verbose_output(int level, lamina_text_f write, void* user);

#ifdef __cplusplus
}
#endif

#endif
