// Graph dumps: the JSON text that oneDNN Graph writes, read into a graph and back.
//
// Reading goes in two steps, so that the driver can override shapes, types and attributes in between: text -> GraphDump (what
// the file says, checked for form only) -> Graph (checked against the schemas). The reader is tolerant about everything a
// dump of any version may lack or spell differently, and has limits for everything a hostile file may exaggerate.
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
  Attributes attributes;  // as written: defaults may be absent; what a writer adds for itself (partition_id, ...) is dropped
  std::vector<LogicalTensor> inputs, outputs;
};

// A graph input of which every element is `value` (Graph::set_constant).
struct DumpedConstant {
  uint64_t id = 0;
  double value = 0;
};

struct GraphDump {
  std::string version;
  EngineKind engine_kind = EngineKind::cpu;
  FpMathMode fpmath_mode = FpMathMode::strict;
  bool fpmath_apply_to_int = false;
  // Port lists as written: hints about the order only, absent in older files and not always right.
  std::vector<uint64_t> input_ports, output_ports;
  std::vector<DumpedOp> ops;
  // Key "constants", lamina's own: [{"id": 7, "value": 1e-05}, ...]. It stands last in the file, where oneDNN's reader takes
  // what it does not know.
  std::vector<DumpedConstant> constants;
};

// What no file may exceed.
struct DumpLimits {
  size_t file_bytes = size_t{256} << 20;
  size_t nesting = 64;
  size_t ops = 1'000'000;
  size_t ports_per_op = 16'384;
  size_t string_bytes = size_t{1} << 20;
  size_t list_entries = size_t{4} << 20;  // of one attribute or port list
};

// Throws Error(invalid_graph) with `FILE: line L, column C: ...` where the text is not JSON, `FILE: op ID ...: ...` elsewhere.
GraphDump parse_graph_json(std::string_view text, const std::string& file_name, const DumpLimits& limits = {});

// Adds the ops; errors get `FILE: op ID (KIND "name"): ` in front. The graph is not finalized.
Graph build_graph(const GraphDump& dump, const std::string& file_name);

// Graph::finalize with the same prefix on its errors.
void finalize_graph(Graph& graph, const std::string& file_name);

// parse_graph_json and build_graph.
Graph read_graph_json(std::string_view text, const std::string& file_name);

// The whole file as text, read with the size limit. Throws Error(invalid_arguments) naming the file.
std::string read_dump_file(const std::string& path, const DumpLimits& limits = {});

// The layout of oneDNN's own writer. Reading the result and writing it again gives the same bytes.
std::string write_graph_json(const Graph& graph);

}  // namespace lamina
