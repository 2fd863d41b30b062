#include "pictures/graph_layout.h"

#include <algorithm>
#include <map>
#include <utility>

#include "interface/status.h"
#include "pictures/words.h"

namespace lamina::pictures {
namespace {

constexpr double kCharacter = 6.6;  // width of a character in a 12-pixel sans-serif font, with a margin
constexpr double kBoldCharacter = 7.6;
constexpr size_t kLongestLine = 34;
constexpr double kOpHeight = 50, kBorderHeight = 22, kMinWidth = 84;
constexpr double kPadding = 14, kHeading = 40, kMinFrame = 150;
constexpr Gaps kInFrame{18, 30};
constexpr Gaps kBetweenFrames{30, 46};

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }
size_t length_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) { return !is_continuation(byte); }));
}

Size size_for(std::initializer_list<std::string> lines, double height) {
  size_t longest = 0;
  for (const std::string& line : lines) longest = std::max(longest, std::min(length_of(line), kLongestLine));
  return {std::max(kMinWidth, static_cast<double>(longest) * kCharacter + 20), height};
}

// An op or a tensor of the graph's border, inside a frame or outside of all frames.
struct Node {
  Size size;
  size_t cluster = 0;  // a partition; higher numbers: one per tensor that several partitions read
};
struct Wire {
  size_t tensor, from, to;  // nodes
  double leaves, enters;    // relative position on the box's edge, 0 to 1
};

class Drawing {
 public:
  explicit Drawing(const ExplainedGraph& graph) : graph_(graph), clusters_(graph.partitions.size()) {
    for (const ExplainedOp& op : graph.ops)
      nodes_.push_back({size_for({op.kind, name_line(op), result_line(graph, op)}, kOpHeight), op.partition});
    for (size_t t = 0; t < graph.tensors.size(); ++t) add_border(t);
    add_wires();
  }

  GraphLayout finish() {
    lay_out_clusters();
    lay_out_frames();
    for (size_t node = 0; node < nodes_.size(); ++node) {
      const Point frame = frames_.nodes[nodes_[node].cluster];
      const Box box{{frame.x + inner_[node].x, frame.y + inner_[node].y}, nodes_[node].size};
      if (node < graph_.ops.size()) {
        made_.ops.push_back(box);
      } else {
        made_.border[node - graph_.ops.size()].box = box;
      }
    }
    for (size_t p = 0; p < graph_.partitions.size(); ++p) made_.partitions.push_back({frames_.nodes[p], sizes_[p]});
    for (const Wire& wire : wires_) made_.lines.push_back(line_of(wire));
    made_.size = frames_.size;
    return std::move(made_);
  }

 private:
  std::string border_text(const ExplainedTensor& tensor) const { return join(tensor.id, " ", tensor.text); }

  void add_border(size_t index) {
    const ExplainedTensor& tensor = graph_.tensors[index];
    const Size size = size_for({border_text(tensor)}, kBorderHeight);
    if (tensor.producer < 0 && !tensor.consumers.empty()) {
      const size_t first = graph_.ops[tensor.consumers.front()].partition;
      const bool in_one = std::all_of(tensor.consumers.begin(), tensor.consumers.end(),
                                      [&](size_t op) { return graph_.ops[op].partition == first; });
      inputs_[index] = nodes_.size();
      nodes_.push_back({size, in_one ? first : clusters_++});
      made_.border.push_back({index, false, {}});
    }
    if (tensor.producer >= 0 && tensor.is_output) {
      outputs_[index] = nodes_.size();
      nodes_.push_back({size, graph_.ops[static_cast<size_t>(tensor.producer)].partition});
      made_.border.push_back({index, true, {}});
    }
  }

  static double share(size_t position, size_t count) {
    return static_cast<double>(position + 1) / static_cast<double>(count + 1);
  }

  void add_wires() {
    std::vector<double> leaves(graph_.tensors.size(), 0.5);
    for (const ExplainedOp& op : graph_.ops)
      for (size_t i = 0; i < op.outputs.size(); ++i)
        if (op.outputs[i].tensor >= 0) leaves[static_cast<size_t>(op.outputs[i].tensor)] = share(i, op.outputs.size());
    for (size_t o = 0; o < graph_.ops.size(); ++o) {
      const auto& inputs = graph_.ops[o].inputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].tensor < 0) continue;
        const auto tensor = static_cast<size_t>(inputs[i].tensor);
        const int producer = graph_.tensors[tensor].producer;
        const size_t from = producer < 0 ? inputs_.at(tensor) : static_cast<size_t>(producer);
        wires_.push_back({tensor, from, o, producer < 0 ? 0.5 : leaves[tensor], share(i, inputs.size())});
      }
    }
    for (const auto& [tensor, node] : outputs_)
      wires_.push_back({tensor, static_cast<size_t>(graph_.tensors[tensor].producer), node, leaves[tensor], 0.5});
  }

  // The width at which the heading fits, in bold letters.
  double least_width(size_t partition) const {
    const auto letters = static_cast<double>(length_of(heading(graph_, graph_.partitions[partition])));
    return std::max(kMinFrame, letters * kBoldCharacter + 2 * kPadding);
  }

  bool is_frame(size_t cluster) const { return cluster < graph_.partitions.size(); }

  void lay_out_clusters() {
    std::vector<std::vector<size_t>> members(clusters_);
    std::vector<size_t> place(nodes_.size());
    for (size_t node = 0; node < nodes_.size(); ++node) {
      place[node] = members[nodes_[node].cluster].size();
      members[nodes_[node].cluster].push_back(node);
    }
    std::vector<std::vector<size_t>> inside(clusters_);  // wires
    for (size_t w = 0; w < wires_.size(); ++w)
      if (cluster_of(wires_[w].from) == cluster_of(wires_[w].to)) inside[cluster_of(wires_[w].from)].push_back(w);
    inner_.resize(nodes_.size());
    bends_.resize(wires_.size());
    for (size_t c = 0; c < clusters_; ++c) {
      std::vector<Size> sizes;
      std::vector<Edge> edges;
      for (const size_t node : members[c]) sizes.push_back(nodes_[node].size);
      for (const size_t w : inside[c]) edges.push_back({place[wires_[w].from], place[wires_[w].to]});
      const LayeredLayout layout = layered_layout(sizes, edges, kInFrame);
      const double width = is_frame(c) ? std::max(layout.size.width + 2 * kPadding, least_width(c)) : layout.size.width;
      const Point corner = is_frame(c) ? Point{(width - layout.size.width) / 2, kHeading} : Point{};
      for (size_t i = 0; i < members[c].size(); ++i)
        inner_[members[c][i]] = {layout.nodes[i].x + corner.x, layout.nodes[i].y + corner.y};
      for (size_t i = 0; i < inside[c].size(); ++i)
        for (const Point& bend : layout.bends[i]) bends_[inside[c][i]].push_back({bend.x + corner.x, bend.y + corner.y});
      sizes_.push_back({width, layout.size.height + (is_frame(c) ? kHeading + kPadding : 0)});
    }
  }

  void lay_out_frames() {
    std::map<std::pair<size_t, size_t>, size_t> known;
    std::vector<Edge> edges;
    frame_edge_.resize(wires_.size());
    for (size_t w = 0; w < wires_.size(); ++w) {
      const size_t from = cluster_of(wires_[w].from), to = cluster_of(wires_[w].to);
      if (from == to) continue;
      const auto [found, is_new] = known.try_emplace({from, to}, edges.size());
      if (is_new) edges.push_back({from, to});
      frame_edge_[w] = found->second;
    }
    frames_ = layered_layout(sizes_, edges, kBetweenFrames);
  }

  size_t cluster_of(size_t node) const { return nodes_[node].cluster; }
  int op_of(size_t node) const { return node < graph_.ops.size() ? static_cast<int>(node) : -1; }
  Point corner(size_t node) const {
    const Point frame = frames_.nodes[cluster_of(node)];
    return {frame.x + inner_[node].x, frame.y + inner_[node].y};
  }

  Line line_of(const Wire& wire) const {
    Line line{wire.tensor, op_of(wire.from), op_of(wire.to), {}};
    const Point from = corner(wire.from), to = corner(wire.to);
    const Size size = nodes_[wire.from].size;
    const Point begin{from.x + size.width * wire.leaves, from.y + size.height};
    const Point end{to.x + nodes_[wire.to].size.width * wire.enters, to.y};
    const size_t a = cluster_of(wire.from), b = cluster_of(wire.to);
    const auto w = static_cast<size_t>(&wire - wires_.data());
    line.points.push_back(begin);
    if (a == b) {
      for (const Point& bend : bends_[w]) line.points.push_back({frames_.nodes[a].x + bend.x, frames_.nodes[a].y + bend.y});
    } else {  // out of one frame and into another
      if (is_frame(a)) line.points.push_back({begin.x, frames_.nodes[a].y + sizes_[a].height});
      for (const Point& bend : frames_.bends[frame_edge_[w]]) line.points.push_back(bend);
      if (is_frame(b)) line.points.push_back({end.x, frames_.nodes[b].y});
    }
    line.points.push_back(end);
    return line;
  }

  const ExplainedGraph& graph_;
  size_t clusters_;
  GraphLayout made_;
  std::vector<Node> nodes_;                    // the ops, then the tensors of the border
  std::map<size_t, size_t> inputs_, outputs_;  // tensor -> node
  std::vector<Wire> wires_;
  std::vector<Point> inner_;               // per node, relative to its cluster
  std::vector<Size> sizes_;                // per cluster
  std::vector<std::vector<Point>> bends_;  // per wire inside a cluster
  std::vector<size_t> frame_edge_;         // per wire between clusters
  LayeredLayout frames_;
};

}  // namespace

std::string shortened(const std::string& text, size_t characters) {
  if (length_of(text) <= characters) return text;
  size_t end = 0;
  for (size_t count = 0; end < text.size(); ++end)
    if (!is_continuation(text[end]) && ++count == characters) break;
  return text.substr(0, end) + "\xE2\x80\xA6";  // an ellipsis
}

std::string name_line(const ExplainedOp& op) {
  return shortened(op.name == join(op.kind, "_", op.id) ? join("op ", op.id) : op.name, kLongestLine);
}

std::string result_line(const ExplainedGraph& graph, const ExplainedOp& op) {
  for (const ExplainedPort& port : op.outputs)
    if (port.tensor >= 0) return shortened(graph.tensors[static_cast<size_t>(port.tensor)].text, kLongestLine);
  return "";
}

GraphLayout lay_out(const ExplainedGraph& graph) { return Drawing(graph).finish(); }

}  // namespace lamina::pictures
