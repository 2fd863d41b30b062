// Graph dumps: the JSON text that oneDNN Graph writes, read into a graph and back.
//
// Reading goes in two steps, so that the driver can override shapes, types and attributes in between: text -> GraphDump (the
// file's contents, checked for form only) -> Graph (checked against the schemas). The reader accepts dumps of all versions,
// with their omissions and older spellings, and limits every size that a malicious file could inflate.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "interface/graph.h"

namespace lamina {

// One op object of the file.
struct DumpedOp {
  uint64_t id = 0;
  OpKind kind = OpKind::Wildcard;
  std::string name;
  Attributes attributes;  // as written: defaults may be absent; bookkeeping attributes (partition_id, ...) are dropped
  std::vector<LogicalTensor> inputs, outputs;
};

// A graph input whose elements are all `value` (Graph::set_constant).
struct DumpedConstant {
  uint64_t id = 0;
  double value = 0;
};

struct GraphDump {
  std::string version;
  EngineKind engine_kind = EngineKind::cpu;
  FpMathMode fpmath_mode = FpMathMode::strict;
  bool fpmath_apply_to_int = false;
  // Port lists as written. They only hint at the order: older files lack them, and they may be wrong.
  std::vector<uint64_t> input_ports, output_ports;
  std::vector<DumpedOp> ops;
  // The key "constants", an extension of lamina: [{"id": 7, "value": 1e-05}, ...]. It is last in the file, where oneDNN's
  // reader accepts unknown keys.
  std::vector<DumpedConstant> constants;
};

// Limits on the size of a file and its contents.
struct DumpLimits {
  size_t file_bytes = size_t{256} << 20;
  size_t nesting = 64;
  size_t ops = 1'000'000;
  size_t ports_per_op = 16'384;
  size_t string_bytes = size_t{1} << 20;
  size_t list_entries = size_t{4} << 20;  // of one attribute or port list
};

// Throws Error(invalid_graph) with `FILE: line L, column C: ...` for text that is not JSON, and with `FILE: op ID ...: ...`
// for other errors.
GraphDump parse_graph_json(std::string_view text, const std::string& file_name, const DumpLimits& limits = {});

// Adds the ops; errors are prefixed with `FILE: op ID (KIND "name"): `. The graph is not finalized.
Graph build_graph(const GraphDump& dump, const std::string& file_name);

// Calls Graph::finalize; its errors get the same prefix.
void finalize_graph(Graph& graph, const std::string& file_name);

// Calls parse_graph_json and build_graph.
Graph read_graph_json(std::string_view text, const std::string& file_name);

// Returns the whole file as text; the size limit applies. Throws Error(invalid_arguments) with the file's name in the
// sentence.
std::string read_dump_file(const std::string& path, const DumpLimits& limits = {});

// Writes a graph in the layout of oneDNN's writer. Reading the result and writing it again produces the same bytes.
std::string write_graph_json(const Graph& graph);

}  // namespace lamina
