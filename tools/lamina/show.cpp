#include "lamina/show.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string_view>

#include "interface/status.h"
#include "lamina/files.h"
#include "lamina/load.h"
#include "passes/pipeline.h"

namespace lamina::driver {
namespace {

// Light enough for black words; after the last one the first comes again.
constexpr std::array kColours = {"#cfe2f3", "#d9ead3", "#fff2cc", "#f4cccc", "#d9d2e9", "#fce5cd", "#d0e0e3", "#ead1dc"};

// As a string of Graphviz' language: a backslash or a quote of a name is one in the picture, a line end begins a line.
std::string dot_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return result + "\"";
}

std::string label_of(const LogicalTensor& tensor) { return join(tensor.id, "\n", describe(tensor)); }

void draw_op(std::string& out, const Graph& graph, int position) {
  const Op& op = graph.ops()[static_cast<size_t>(position)];
  out += join("    op_", position, " [label=", dot_string(join(op.id, " ", describe(op))), "];\n");
}

void draw_partition(std::string& out, const Partition& partition, const char* colour) {
  out += join("  subgraph cluster_", partition.id, " {\n", "    label=",
              dot_string(join("partition ", partition.id, partition.supported ? "" : "\n", partition.unsupported_reason)),
              ";\n", "    style=", dot_string(partition.supported ? "filled,rounded" : "filled,rounded,dashed"), ";\n",
              "    fillcolor=", dot_string(colour), ";\n");
  for (const int op : partition.ops) draw_op(out, *partition.graph, op);
  out += "  }\n";
}

// An edge for each time that an op reads a value, from the op that makes it or from the value itself where none does.
void draw_edges(std::string& out, const Graph& graph) {
  for (size_t position = 0; position < graph.ops().size(); ++position) {
    for (const ValueIndex input : graph.ops()[position].inputs) {
      if (input == kNoValue) continue;
      const int producer = graph.value(input).producer.op;
      const std::string from = producer < 0 ? join("value_", input) : join("op_", producer);
      out += join("  ", from, " -> op_", position);
      if (producer >= 0) out += join(" [label=", dot_string(label_of(graph.tensor(input))), "]");
      out += ";\n";
    }
  }
}

void draw_border(std::string& out, const Graph& graph) {
  for (const ValueIndex input : graph.inputs())
    out +=
        join("  value_", input, " [label=", dot_string(label_of(graph.tensor(input))), ", shape=ellipse, fillcolor=white];\n");
  for (const ValueIndex output : graph.outputs()) {
    out += join("  value_", output, " [label=", dot_string(label_of(graph.tensor(output))),
                ", shape=ellipse, fillcolor=white];\n");
    out += join("  op_", graph.value(output).producer.op, " -> value_", output, ";\n");
  }
}

void draw_legend(std::string& out) {
  out +=
      "  subgraph cluster_legend {\n"
      "    label=\"legend\";\n"
      "    legend_op [label=\"op: its id, kind and name\"];\n"
      "    legend_border [label=\"tensor that the graph\\ntakes or gives\", shape=ellipse];\n"
      "    legend_partition [label=\"a coloured field: one partition;\\ndashed: the engine cannot run it\", "
      "shape=plaintext, "
      "style=\"\"];\n"
      "    legend_op -> legend_border [label=\"tensor: its id,\\ntype and shape\"];\n"
      "    legend_border -> legend_partition [style=invis];\n"
      "  }\n";
}

// Where the shell would find a program; "" for nowhere.
std::string program_in_path(const std::string& name) {
  const char* const folders = std::getenv("PATH");
  for (std::string_view rest = folders == nullptr ? "" : folders; !rest.empty();) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    const std::string program = join(folder.empty() ? "." : folder, "/", name);
    if (::access(program.c_str(), X_OK) == 0 && !std::filesystem::is_directory(program)) return program;
  }
  return "";
}

std::string quoted_for_shell(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// A file with `text` that is there as long as this is.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text) {
    path_ = (std::filesystem::temp_directory_path() / "lamina-show-XXXXXX").string();
    const int file = ::mkstemp(path_.data());
    if (file < 0) throw Error(Status::runtime_error, join("lamina show: ", path_, " cannot be made"));
    ::close(file);
    std::ofstream(path_, std::ios::binary) << text;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlink(path_.c_str()); }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string svg_of(const std::string& dot_text, const std::string& picture) {
  const std::string program = program_in_path("dot");
  if (program.empty())
    throw Error(
        Status::invalid_arguments,
        join(picture, ": an SVG is drawn by Graphviz' dot, which is not in PATH; a name that ends in .dot needs no dot"));
  const TemporaryFile source(dot_text);
  const std::string command = join(quoted_for_shell(program), " -Tsvg ", quoted_for_shell(source.path()));
  FILE* const output = ::popen(command.c_str(), "r");
  if (output == nullptr) throw Error(Status::runtime_error, join(picture, ": ", program, " cannot be started"));
  std::string svg;
  for (std::array<char, 4096> block; const size_t count = std::fread(block.data(), 1, block.size(), output);)
    svg.append(block.data(), count);
  const int status = ::pclose(output);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || svg.empty())
    throw Error(Status::runtime_error, join(picture, ": ", program, " could not draw it"));
  return svg;
}

}  // namespace

std::string dot_picture(const std::string& title, const std::vector<Partition>& partitions) {
  std::string out;
  out += join("digraph lamina {\n", "  label=", dot_string(title), ";\n",
              "  labelloc=t;\n"
              "  fontname=\"Helvetica\";\n"
              "  bgcolor=white;\n"
              "  node [shape=box, style=filled, fillcolor=white, fontname=\"Helvetica\", fontsize=11];\n"
              "  edge [fontname=\"Helvetica\", fontsize=9];\n");
  for (size_t i = 0; i < partitions.size(); ++i) draw_partition(out, partitions[i], kColours[i % kColours.size()]);
  const Graph& graph = *partitions.front().graph;
  draw_border(out, graph);
  draw_edges(out, graph);
  draw_legend(out);
  out += "}\n";
  return out;
}

int show(const ShowOptions& options) {
  const bool is_svg = options.picture.ends_with(".svg");
  if (!is_svg && !options.picture.ends_with(".dot"))
    throw Error(Status::invalid_arguments, join("-o ", options.picture, ": the name of a picture ends in .dot or .svg"));
  const Backend& backend = backend_for(options.engine, options.device);
  const Graph graph = load_graph(options.file, options.overrides);
  const auto policy = options.policy == "debug" ? PartitionPolicy::debug : PartitionPolicy::fusion;
  const std::vector<Partition> partitions = partition_graph(graph, policy, backend);
  const std::string title = join(options.file, ": ", graph.ops().size(), " ops, ", partitions.size(),
                                 partitions.size() == 1 ? " partition" : " partitions", ", backend ", backend.name());
  const std::string dot = dot_picture(title, partitions);
  const std::string text = is_svg ? svg_of(dot, options.picture) : dot;
  OutputFiles files;
  files.add(options.picture, [&](std::ostream& out) { out << text; });
  files.commit();
  std::cout << options.picture << ": " << title << '\n';
  return 0;
}

}  // namespace lamina::driver
