// From a parsed dump to a graph: ops are added one by one, and errors are told with the file and the op in front.
#include "interface/json/json.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "interface/status.h"

namespace lamina {
namespace {

// `KIND "name": message` becomes `FILE: op ID (KIND "name"): message`.
std::string with_place(const std::string& file, uint64_t id, const std::string& described_op, std::string message) {
  const std::string prefix = described_op + ": ";
  if (message.starts_with(prefix)) message.erase(0, prefix.size());
  return join(file, ": op ", id, " (", described_op, "): ", message);
}

// The op that a message of the graph begins with, nullptr when it speaks of none.
const Op* op_named_by(const Graph& graph, const std::string& message) {
  const auto found = std::find_if(graph.ops().begin(), graph.ops().end(),
                                  [&](const Op& op) { return message.starts_with(describe(op) + ": "); });
  return found == graph.ops().end() ? nullptr : &*found;
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
      Op named;
      named.kind = op.kind;
      named.name = op.name.empty() ? join(name_of(op.kind), '_', op.id) : op.name;
      throw Error(error.status(), with_place(file_name, op.id, describe(named), error.what()));
    }
  }
  for (const DumpedConstant& constant : dump.constants) {
    try {
      graph.set_constant(constant.id, constant.value);
    } catch (const Error& error) {
      throw Error(error.status(), join(file_name, ": ", error.what()));
    }
  }
  return graph;
}

void finalize_graph(Graph& graph, const std::string& file_name) {
  try {
    graph.finalize();
  } catch (const Error& error) {
    const Op* op = op_named_by(graph, error.what());
    throw Error(error.status(), op != nullptr ? with_place(file_name, op->id, describe(*op), error.what())
                                              : join(file_name, ": ", error.what()));
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
