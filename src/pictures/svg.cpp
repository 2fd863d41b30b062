#include "pictures/svg.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "interface/number_text.h"
#include "interface/status.h"
#include "pictures/graph_layout.h"
#include "pictures/words.h"

namespace lamina::pictures {
namespace {

constexpr size_t kColours = 8;  // as many as page.css defines
constexpr double kMargin = 20;
constexpr double kCharacter = 6.2;

// Coordinates are rounded to a tenth of a pixel.
std::string number(double value) {
  std::string text = fixed_text(std::round(value * 10) / 10, 1);
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

std::string rectangle(const Box& box, const char* name, int radius) {
  return join("<rect class=\"", name, "\" x=\"", number(box.at.x), "\" y=\"", number(box.at.y), "\" width=\"",
              number(box.size.width), "\" height=\"", number(box.size.height), "\" rx=\"", radius, "\"/>");
}

std::string words(const char* name, double x, double y, const std::string& text) {
  return text.empty()
             ? ""
             : join("<text class=\"", name, "\" x=\"", number(x), "\" y=\"", number(y), "\">", escaped(text), "</text>");
}

// The names of kernels are in their boxes, if they have some.
std::string kernels_line(const ExplainedPartition& partition, bool has_boxes) {
  if (!partition.problem.empty()) return partition.problem;
  if (partition.kernels.empty()) return "";
  if (has_boxes) return join(partition.kernels.size(), partition.kernels.size() == 1 ? " kernel" : " kernels");
  const size_t more = partition.kernels.size() - 1;
  return join(partition.kernels.front().name, more > 0 ? join(" + ", more, " more") : "");
}

std::string frame(const ExplainedGraph& graph, size_t index, const Box& box) {
  const ExplainedPartition& partition = graph.partitions[index];
  return join("<g class=\"partition c", index % kColours, partition.supported ? "" : " refused", "\" data-partition=\"", index,
              "\">", rectangle(box, "frame", 10), "</g>\n");
}

// "tiled: 4 tiles of 64 rows", or the names of kernels.
std::string step_text(const ExplainedGraph& graph, const StepBox& step) {
  const ExplainedPartition& partition = graph.partitions[step.partition];
  if (step.tiles >= 0) {
    const std::string& text = partition.tiles[static_cast<size_t>(step.tiles)].text;
    return text.substr(0, text.find(", one thread"));
  }
  const size_t more = step.kernels.size() - 1;
  return join(partition.kernels[step.kernels.front()].name, more > 0 ? join(" + ", more, " more") : "");
}

// The steps of the profile that compute what is in the box.
std::set<int> measured_steps(const ExplainedGraph& graph, const StepBox& box) {
  const ExplainedPartition& partition = graph.partitions[box.partition];
  std::set<int> steps;
  const auto add = [&](size_t kernel) {
    const int step = partition.kernels[kernel].step;
    if (step >= 0 && partition.steps[static_cast<size_t>(step)].times) steps.insert(step);
  };
  for (const size_t kernel : box.kernels) add(kernel);
  if (box.tiles >= 0)
    for (const size_t op : partition.tiles[static_cast<size_t>(box.tiles)].ops)
      for (const size_t kernel : graph.ops[op].kernels) add(kernel);
  return steps;
}

// What a profile says of a box. A step of several boxes is told by the first one, around the others or before them.
struct Heat {
  std::string time;  // "" if another box tells it, or nothing was measured
  double part = 0;   // of the longest step's time
  bool is_known = false;
};

std::vector<Heat> heats_of(const ExplainedGraph& graph, const std::vector<StepBox>& boxes) {
  const double longest = longest_step(graph);
  std::set<std::pair<size_t, int>> told;
  std::vector<Heat> heats;
  for (const StepBox& box : boxes) {
    Heat& heat = heats.emplace_back();
    double sum = 0;
    for (const int step : measured_steps(graph, box)) {
      const double us = graph.partitions[box.partition].steps[static_cast<size_t>(step)].times->us;
      heat.is_known = true;
      heat.part = std::max(heat.part, longest > 0 ? us / longest : 0);
      if (told.insert({box.partition, step}).second) sum += us;
    }
    if (sum > 0) heat.time = time_line(graph, sum);
  }
  return heats;
}

std::string text_of(const ExplainedGraph& graph, const StepBox& step, const Heat& heat) {
  return join(heat.time, heat.time.empty() ? "" : " \xC2\xB7 ", step_text(graph, step));
}

// The classes of a box and of its heading, and the colour of its time.
std::string classes_of(const StepBox& step, const Heat& heat) {
  const std::string classes = join("step c", step.partition % kColours, heat.is_known ? " timed" : "");
  return heat.is_known ? join(classes, "\" style=\"--part:", fixed_text(100 * heat.part, 1), "%") : classes;
}

std::string step(const ExplainedGraph& graph, const StepBox& step, const Heat& heat) {
  return join("<g class=\"", step.tiles >= 0 ? "tiles " : "kernel ", classes_of(step, heat), "\" data-partition=\"",
              step.partition, "\"><title>", escaped(text_of(graph, step, heat)), "</title>", rectangle(step.box, "field", 7),
              "</g>\n");
}

std::string step_heading(const ExplainedGraph& graph, const StepBox& step, const Heat& heat) {
  const auto fits = static_cast<size_t>((step.box.size.width - 16) / kCharacter);
  return join("<g class=\"over ", classes_of(step, heat), "\">",
              words("kernels", step.box.at.x + 8, step.box.at.y + 15, shortened(text_of(graph, step, heat), fits)), "</g>\n");
}

// Drawn after the lines, so that it is above them.
std::string frame_heading(const ExplainedGraph& graph, size_t index, const GraphLayout& layout) {
  const Box& box = layout.partitions[index];
  const bool has_boxes =
      std::any_of(layout.steps.begin(), layout.steps.end(), [&](const StepBox& each) { return each.partition == index; });
  const ExplainedPartition& partition = graph.partitions[index];
  const auto fits = static_cast<size_t>((box.size.width - 20) / kCharacter);
  return join("<g class=\"over c", index % kColours, partition.supported ? "" : " refused", "\">",
              words("heading", box.at.x + 10, box.at.y + 17, heading(graph, partition)),
              words("kernels", box.at.x + 10, box.at.y + 32, shortened(kernels_line(partition, has_boxes), fits)), "</g>\n");
}

std::string path(const Line& line) {
  std::string d = join("M", number(line.points.front().x), " ", number(line.points.front().y));
  for (size_t i = 1; i < line.points.size(); ++i) {
    const Point a = line.points[i - 1], b = line.points[i];
    if (std::abs(a.x - b.x) < 0.5) {
      d += join("L", number(b.x), " ", number(b.y));
    } else {
      const double middle = (a.y + b.y) / 2;
      d += join("C", number(a.x), " ", number(middle), " ", number(b.x), " ", number(middle), " ", number(b.x), " ",
                number(b.y));
    }
  }
  return d;
}

std::string drawn_line(const ExplainedGraph& graph, const Line& line) {
  const ExplainedTensor& tensor = graph.tensors[line.tensor];
  return join("<path class=\"line\" data-tensor=\"", line.tensor, "\" data-from=\"", line.from_op, "\" data-to=\"", line.to_op,
              "\" d=\"", path(line), "\"><title>", escaped(join("tensor ", tensor.id, " ", tensor.text)), "</title></path>\n");
}

std::string border(const ExplainedGraph& graph, const BorderBox& drawn) {
  const ExplainedTensor& tensor = graph.tensors[drawn.tensor];
  const double middle = drawn.box.at.x + drawn.box.size.width / 2;
  return join("<g class=\"border ", drawn.is_output ? "given" : "taken", "\" data-tensor=\"", drawn.tensor, "\"><title>",
              drawn.is_output ? "graph output" : "graph input", ": tensor ", tensor.id, "</title>",
              rectangle(drawn.box, "pill", 11),
              words("tensor", middle, drawn.box.at.y + 15, shortened(join(tensor.id, " ", tensor.text), 34)), "</g>\n");
}

std::string drawn_op(const ExplainedGraph& graph, size_t index, const Box& box) {
  const ExplainedOp& op = graph.ops[index];
  const std::string result = result_line(graph, op);
  const double middle = box.at.x + box.size.width / 2;
  const std::string spoken = join("op ", op.id, " ", op.text, result.empty() ? "" : ", makes ", result, ", partition ",
                                  graph.partitions[op.partition].id);
  return join("<g class=\"op\" data-op=\"", index, "\" id=\"op-", index, "\" tabindex=\"", index == 0 ? "0" : "-1",
              "\" role=\"button\" aria-label=\"", escaped(spoken), "\">", rectangle(box, "card", 6),
              words("kind", middle, box.at.y + 17, shortened(op.kind, 34)), words("name", middle, box.at.y + 31, name_line(op)),
              words("result", middle, box.at.y + 44, result), "</g>\n");
}

}  // namespace

std::string svg_element(const ExplainedGraph& graph) {
  const GraphLayout layout = lay_out(graph);
  const std::vector<Heat> heats = heats_of(graph, layout.steps);
  const double width = layout.size.width + 2 * kMargin, height = layout.size.height + 2 * kMargin;
  std::string out = join(
      "<svg id=\"picture\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"", number(-kMargin), " ", number(-kMargin), " ",
      number(width), " ", number(height), "\" data-width=\"", number(width), "\" data-height=\"", number(height),
      "\" role=\"group\" aria-label=\"The graph. Arrow keys move from op to op, Enter shows the details of one.\">\n",
      "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">"
      "<path class=\"tip\" d=\"M0 0 8 4 0 8z\"/></marker></defs>\n<g id=\"world\">\n");
  for (size_t p = 0; p < layout.partitions.size(); ++p) out += frame(graph, p, layout.partitions[p]);
  for (size_t i = 0; i < layout.steps.size(); ++i) out += step(graph, layout.steps[i], heats[i]);
  out += "<g class=\"lines\">\n";
  for (const Line& line : layout.lines) out += drawn_line(graph, line);
  out += "</g>\n";
  for (size_t p = 0; p < layout.partitions.size(); ++p) out += frame_heading(graph, p, layout);
  for (size_t i = 0; i < layout.steps.size(); ++i) out += step_heading(graph, layout.steps[i], heats[i]);
  for (const BorderBox& drawn : layout.border) out += border(graph, drawn);
  for (size_t o = 0; o < layout.ops.size(); ++o) out += drawn_op(graph, o, layout.ops[o]);
  return out + "</g>\n</svg>\n";
}

}  // namespace lamina::pictures
