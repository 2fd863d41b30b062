#include "pictures/dot.h"

#include <array>
#include <string_view>

#include "interface/status.h"
#include "pictures/words.h"

namespace lamina::pictures {
namespace {

// Light enough for black text; partitions cycle through them.
constexpr std::array kColours = {"#cfe2f3", "#d9ead3", "#fff2cc", "#f4cccc", "#d9d2e9", "#fce5cd", "#d0e0e3", "#ead1dc"};

// A string literal of the DOT language. Backslashes and quotes appear in the picture as they are; a newline starts a new
// line.
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

std::string label_of(const ExplainedTensor& tensor) { return join(tensor.id, "\n", tensor.text); }

std::string label_of(const ExplainedGraph& graph, const ExplainedPartition& partition) {
  std::string label = join("partition ", partition.id);
  if (const std::string time = time_line(graph, partition); !time.empty()) label += join(", ", time);
  if (!partition.problem.empty()) label += join("\n", partition.problem);
  for (const ExplainedKernel& kernel : partition.kernels)
    label += join("\n", kernel.name, kernel.schedule.empty() ? "" : " (", kernel.schedule, kernel.schedule.empty() ? "" : ")");
  for (const ExplainedStep& step : partition.steps)
    if (step.times) label += join("\n", time_line(graph, step.times->us), ": ", step.name);
  for (const ExplainedTiles& tiles : partition.tiles) label += join("\n", tiles.text);
  return label;
}

void draw_partition(std::string& out, const ExplainedGraph& graph, const ExplainedPartition& partition, const char* colour) {
  out += join("  subgraph cluster_", partition.id, " {\n", "    label=", dot_string(label_of(graph, partition)), ";\n",
              "    style=", dot_string(partition.supported ? "filled,rounded" : "filled,rounded,dashed"), ";\n",
              "    fillcolor=", dot_string(colour), ";\n");
  for (const size_t op : partition.ops)
    out += join("    op_", op, " [label=", dot_string(join(graph.ops[op].id, " ", graph.ops[op].text)), "];\n");
  out += "  }\n";
}

// One edge per read of a value, from the producing op, or from the value itself if no op produces it.
void draw_edges(std::string& out, const ExplainedGraph& graph) {
  for (size_t position = 0; position < graph.ops.size(); ++position) {
    for (const ExplainedPort& port : graph.ops[position].inputs) {
      if (port.tensor < 0) continue;
      const ExplainedTensor& tensor = graph.tensors[static_cast<size_t>(port.tensor)];
      const std::string from = tensor.producer < 0 ? join("value_", port.tensor) : join("op_", tensor.producer);
      out += join("  ", from, " -> op_", position);
      if (tensor.producer >= 0) out += join(" [label=", dot_string(label_of(tensor)), "]");
      out += ";\n";
    }
  }
}

void draw_border(std::string& out, const ExplainedGraph& graph) {
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    const ExplainedTensor& tensor = graph.tensors[t];
    if (tensor.producer >= 0 && !tensor.is_output) continue;
    out += join("  value_", t, " [label=", dot_string(label_of(tensor)), ", shape=ellipse, fillcolor=white];\n");
    if (tensor.producer >= 0) out += join("  op_", tensor.producer, " -> value_", t, ";\n");
  }
}

void draw_legend(std::string& out) {
  out +=
      "  subgraph cluster_legend {\n"
      "    label=\"legend\";\n"
      "    legend_op [label=\"op: its id, kind and name\"];\n"
      "    legend_border [label=\"tensor that the graph\\nreads or returns\", shape=ellipse];\n"
      "    legend_partition [label=\"a coloured field: one partition,\\nits kernels (how they run) and tiles;\\ndashed: the "
      "engine "
      "cannot run it\", shape=plaintext, style=\"\"];\n"
      "    legend_op -> legend_border [label=\"tensor: its id,\\ntype and shape\"];\n"
      "    legend_border -> legend_partition [style=invis];\n"
      "  }\n";
}

}  // namespace

std::string dot_text(const ExplainedGraph& graph) {
  std::string out;
  out += join("digraph lamina {\n", "  label=", dot_string(headline(graph)), ";\n",
              "  labelloc=t;\n"
              "  fontname=\"Helvetica\";\n"
              "  bgcolor=white;\n"
              "  node [shape=box, style=filled, fillcolor=white, fontname=\"Helvetica\", fontsize=11];\n"
              "  edge [fontname=\"Helvetica\", fontsize=9];\n");
  for (size_t i = 0; i < graph.partitions.size(); ++i)
    draw_partition(out, graph, graph.partitions[i], kColours[i % kColours.size()]);
  draw_border(out, graph);
  draw_edges(out, graph);
  draw_legend(out);
  out += "}\n";
  return out;
}

}  // namespace lamina::pictures
