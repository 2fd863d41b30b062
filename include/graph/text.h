/* lamina, C interface for introspection, for language bindings and tools: graphs as JSON dumps, inferred outputs of ops,
 * schemas, the reasons for partitions, the code of compiled partitions, pictures of both, profiles of executions, compile
 * progress, and verbose lines.
 *
 * A function that produces a text calls `write(user, text, length)` once, on the calling thread, before it returns. The text
 * is UTF-8, is not null-terminated, and is valid only during that call. Statuses and lamina_last_error() are those of
 * graph/lamina.h. */
#ifndef LAMINA_TEXT_H
#define LAMINA_TEXT_H

#include "graph/lamina.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*lamina_text_f)(void* user, const char* text, size_t length);

/* ---- graphs ---- */

/* Creates a graph from a dump (docs/dumps.md), not finalized. `name` prefixes error sentences; null means "graph". Errors:
 * lamina_invalid_graph, with line and column or the op in the sentence; others as for lamina_graph_add_op. */
LAMINA_API lamina_status_t lamina_graph_graph_create_from_json(lamina_graph_graph_t* graph, const char* text, size_t length,
                                                               const char* name);
/* Writes the graph as a dump, which `lamina replay` runs. */
LAMINA_API lamina_status_t lamina_graph_graph_write_json(const_lamina_graph_graph_t graph, lamina_text_f write, void* user);
/* What the graph knows about a tensor, including the inferred shape if the graph is finalized. Errors: a tensor of no op. */
LAMINA_API lamina_status_t lamina_graph_graph_get_logical_tensor(const_lamina_graph_graph_t graph, size_t tensor_id,
                                                                 lamina_graph_logical_tensor_t* logical_tensor);
/* The graph's inputs (tensors that ops read and no op produces) in order of first use, and its outputs (tensors that no op
 * reads, or that an End op marks). */
LAMINA_API lamina_status_t lamina_graph_graph_get_border_num(const_lamina_graph_graph_t graph, size_t* num_inputs,
                                                             size_t* num_outputs);
LAMINA_API lamina_status_t lamina_graph_graph_get_border(const_lamina_graph_graph_t graph, size_t num_inputs,
                                                         lamina_graph_logical_tensor_t* inputs, size_t num_outputs,
                                                         lamina_graph_logical_tensor_t* outputs);

/* ---- ops ---- */

/* The logical tensors that the op's outputs will be, one per output port that exists for its attributes. Types and shapes
 * follow from the schema and the inputs; a dim or rank that does not follow is unknown, and a type that may be chosen becomes
 * that of the first input if that is legal. The layout is any, the id SIZE_MAX. Outputs already added to the op are ignored.
 * `*num` is the capacity of `outputs` on entry and their number on return. Errors: those of lamina_graph_add_op; a capacity
 * that is too small. */
LAMINA_API lamina_status_t lamina_graph_op_infer_outputs(const_lamina_graph_op_t op, size_t* num,
                                                         lamina_graph_logical_tensor_t* outputs);
/* The schema as a JSON object: "kind", "class", "formula", "inputs" and "outputs" (lists of {"name", "type", "given",
 * "meaning"}), "attributes" (lists of {"name", "type", "given", "allowed", "meaning"}), "types" (variable -> list of types). */
LAMINA_API lamina_status_t lamina_graph_op_kind_write_schema(lamina_graph_op_kind_t kind, lamina_text_f write, void* user);

/* ---- partitions ---- */

/* Why each op is in this partition, as a JSON object: "supported", "unsupported_reason" if it is not supported, and "ops", a
 * list of {"id", "kind", "name", "reasons": [{"code", "text"}]} in execution order. */
LAMINA_API lamina_status_t lamina_graph_partition_write_reasons(const_lamina_graph_partition_t partition, lamina_text_f write,
                                                                void* user);
/* The compiled code, as a JSON object: "backend", "kernels" (names), "schedules", "required_bytes" (inputs and outputs, each
 * once), "moved_bytes" (read and written in main memory by kernels), "workspace_bytes", "constant_bytes" (kept of constant
 * inputs, such as packed weights), "compile_ms", "from_cache". */
LAMINA_API lamina_status_t lamina_graph_compiled_partition_write_info(
    const_lamina_graph_compiled_partition_t compiled_partition, lamina_text_f write, void* user);

/* The format of an explanation of partitions and their code. */
typedef enum LAMINA_ANY_INT {
  lamina_graph_explanation_json = 0, /* an object; its keys are documented in src/interface/json/explained.h */
  lamina_graph_explanation_html = 1, /* a self-contained page with a drawing, a search and a panel for each op */
  lamina_graph_explanation_dot = 2   /* for Graphviz */
} lamina_graph_explanation_t;

/* Explains partitions of one graph, given in an order in which they can run. If `engine` is null, the partitions are
 * explained as they were partitioned, without code. Else each is compiled for the engine, and its kernels, schedules and
 * tiles are explained: for the tensors of `compiled[i]` if `compiled` and this entry are not null, else for the shapes that
 * the graph knows. A partition that cannot be compiled is explained by the reason. `title` is the heading; null for none.
 * `report` is null, or the report of `lamina replay --report` on one file or a profile (lamina_stream_write_profile) about the
 * same partitions, whose times are then included. Errors: no partitions; partitions of two graphs; a format that does not
 * exist; an empty compiled partition; a report or a profile of other partitions. */
LAMINA_API lamina_status_t lamina_graph_partitions_explain(size_t num, const const_lamina_graph_partition_t* partitions,
                                                           const const_lamina_graph_compiled_partition_t* compiled,
                                                           const_lamina_engine_t engine, lamina_graph_explanation_t format,
                                                           const char* title, const char* report, lamina_text_f write,
                                                           void* user);

/* ---- profiles ---- */

typedef enum LAMINA_ANY_INT {
  lamina_profile_json = 0,  /* an object; docs/profile.schema.json describes its keys */
  lamina_profile_table = 1, /* for people, at most 80 columns */
  lamina_profile_trace = 2  /* Chrome's trace event format, which Perfetto opens */
} lamina_profile_format_t;

/* The times of the steps of all executions on this stream, which was created with lamina_stream_profiling. The first call in a
 * process for json or table measures the machine, in about 0.3 s, so no other work should run then. `title` is the heading;
 * null for none. Errors: a stream without profiling; a format that does not exist. */
LAMINA_API lamina_status_t lamina_stream_write_profile(const_lamina_stream_t stream, lamina_profile_format_t format,
                                                       const char* title, lamina_text_f write, void* user);

/* ---- progress and verbose output ---- */

/* `done` of `total` steps (kernels, library steps, tiled chains) of a partition are compiled; `name` is "partition 3:
 * LayerNorm + GELU", valid during the call. Return 0 to continue; any other value cancels, and the compile fails with
 * lamina_runtime_error. */
typedef int (*lamina_compile_progress_f)(void* user, size_t done, size_t total, const char* name);

/* From now on, compilations on this thread call `report` on this thread: before each step and, with done equal to total, at
 * the end. A partition found in the cache is not compiled and not reported. Null, the initial value, disables reports. */
LAMINA_API lamina_status_t lamina_set_compile_progress(lamina_compile_progress_f report, void* user);

/* Controls what LAMINA_VERBOSE prints (docs/debugging.md), for the whole process. Level 1 reports compilations and
 * executions, 2 also passes, 0 nothing; -1, the initial value, follows the environment. `write` receives each line without a
 * line end, in place of stdout; null means stdout. Any thread may call it, one at a time, and it must not call lamina.
 * Errors: another level. */
LAMINA_API lamina_status_t lamina_set_verbose_output(int level, lamina_text_f write, void* user);

#ifdef __cplusplus
}
#endif

#endif
