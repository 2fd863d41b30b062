// Builds a graph from a parsed dump: ops are added one by one, and errors are prefixed with the file and the op.
#include "interface/json/json.h"

#include <filesystem>
#include <fstream>

#include "interface/status.h"

namespace lamina {
namespace {

// The error thrown while adding the op, with the op as its place: errors about a tensor alone have no place.
Error of_op(const DumpedOp& op, const Error& error) {
  if (error.place()) return error;
  return {error.status(), {op.id, op.kind, op.name.empty() ? join(name_of(op.kind), '_', op.id) : op.name}, error.what()};
}

}  // namespace

Graph build_graph(const GraphDump& dump, const std::string& file_name) {
  Graph graph;
  graph.engine_kind = dump.engine_kind;
  graph.fpmath_mode = dump.fpmath_mode;
  graph.fpmath_apply_to_int = dump.fpmath_apply_to_int;
  for (const DumpedOp& op : dump.ops) {
    try {
      graph.add_op(op.id, op.kind, op.name, op.attributes, op.inputs, op.outputs);
    } catch (const Error& error) {
      throw of_op(op, error).in_file(file_name);
    }
  }
  for (const DumpedConstant& constant : dump.constants) {
    try {
      graph.set_constant(constant.id, constant.value);
    } catch (const Error& error) {
      throw error.in_file(file_name);
    }
  }
  return graph;
}

void finalize_graph(Graph& graph, const std::string& file_name) {
  try {
    graph.finalize();
  } catch (const Error& error) {
    throw error.in_file(file_name);
  }
}

Graph read_graph_json(std::string_view text, const std::string& file_name) {
  return build_graph(parse_graph_json(text, file_name), file_name);
}

std::string read_dump_file(const std::string& path, const DumpLimits& limits) {
  const auto fail = [&](const std::string& why) { throw Error(Status::invalid_arguments, join(path, ": ", why)); };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) fail("is a directory, allowed is a graph dump");
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("cannot be opened for reading");
  std::string text;
  char block[1 << 16];
  while (file.read(block, sizeof block) || file.gcount() > 0) {
    text.append(block, static_cast<size_t>(file.gcount()));
    if (text.size() > limits.file_bytes) fail(join("the file has more than ", limits.file_bytes, " bytes, the limit"));
  }
  if (file.bad()) fail("cannot be read to its end");
  return text;
}

}  // namespace lamina
