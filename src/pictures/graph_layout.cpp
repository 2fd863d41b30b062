#include "pictures/graph_layout.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "interface/status.h"
#include "pictures/acyclic_groups.h"
#include "pictures/words.h"

namespace lamina::pictures {
namespace {

constexpr double kCharacter = 6.6;  // width of a sans serif face of 12 pixels, rounded up
constexpr double kBoldCharacter = 7.6;
constexpr size_t kLongestLine = 34;
constexpr double kOpHeight = 50, kBorderHeight = 22, kLeastWidth = 84;
constexpr double kLeastFrame = 150;
constexpr Gaps kInFrame{18, 30};
constexpr Gaps kBetweenFrames{30, 46};

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }
size_t length_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) { return !is_continuation(byte); }));
}

Size size_for(std::initializer_list<std::string> lines, double height) {
  size_t longest = 0;
  for (const std::string& line : lines) longest = std::max(longest, std::min(length_of(line), kLongestLine));
  return {std::max(kLeastWidth, static_cast<double>(longest) * kCharacter + 20), height};
}

// ---- which ops of a partition share a box

// Joins the groups of two nodes.
void join_groups(std::vector<size_t>& groups, size_t a, size_t b) {
  const size_t from = groups[b], to = groups[a];
  for (size_t& group : groups)
    if (group == from) group = to;
}

void join_all(std::vector<size_t>& groups, const std::vector<size_t>& nodes) {
  for (size_t i = 1; i < nodes.size(); ++i) join_groups(groups, nodes[0], nodes[i]);
}

// Per op of the partition, by its position there: a group of ops that one kernel or several kernels compute together, and a
// group of those that run in the same tiles.
struct OpGroups {
  std::vector<size_t> kernel, region;
};

OpGroups groups_of(const ExplainedGraph& graph, const ExplainedPartition& partition) {
  std::map<size_t, size_t> place;
  for (size_t i = 0; i < partition.ops.size(); ++i) place[partition.ops[i]] = i;
  std::vector<Edge> edges;
  for (const ExplainedTensor& tensor : graph.tensors) {
    const auto from = tensor.producer < 0 ? place.end() : place.find(static_cast<size_t>(tensor.producer));
    if (from == place.end()) continue;
    for (const size_t consumer : tensor.consumers)
      if (const auto to = place.find(consumer); to != place.end()) edges.push_back({from->second, to->second});
  }
  std::vector<std::vector<size_t>> by_kernel(partition.kernels.size());
  for (const size_t op : partition.ops)
    for (const size_t kernel : graph.ops[op].kernels) by_kernel[kernel].push_back(place[op]);
  OpGroups groups;
  groups.kernel.resize(partition.ops.size());
  std::iota(groups.kernel.begin(), groups.kernel.end(), size_t{0});
  for (const std::vector<size_t>& ops : by_kernel) join_all(groups.kernel, ops);
  groups.kernel = acyclic_groups(groups.kernel, edges);
  groups.region = groups.kernel;
  for (const ExplainedTiles& tiles : partition.tiles) {
    std::vector<size_t> ops;
    for (const size_t op : tiles.ops) ops.push_back(place.at(op));
    join_all(groups.region, ops);
  }
  groups.region = acyclic_groups(groups.region, edges);
  return groups;
}

// ---- the boxes and what is inside them

// An op, a tensor of the border, or a box around others. Item 0 is the whole picture.
struct Item {
  size_t parent = 0;
  Size size = {};
  Point at = {};  // in the parent, at last in the picture
  std::vector<size_t> children = {};
  double heading = 0, padding = 0, least_width = 0;  // of a box
};
struct Wire {
  size_t tensor, from, to;  // items
  double leaves, enters;    // where on their edges, 0 to 1
};

class Drawing {
 public:
  explicit Drawing(const ExplainedGraph& graph) : graph_(graph), items_(1) {
    for (const ExplainedPartition& partition : graph.partitions) partitions_.push_back(add_frame(partition));
    ops_.resize(graph.ops.size());
    for (size_t p = 0; p < graph.partitions.size(); ++p) add_partition(p);
    for (size_t t = 0; t < graph.tensors.size(); ++t) add_border(t);
    add_wires();
  }

  GraphLayout finish() {
    bends_.resize(wires_.size());
    lay_out_inside(0, wires_of_boxes());
    place_inside(0);
    for (const size_t item : ops_) made_.ops.push_back(box_of(item));
    for (const size_t item : partitions_) made_.partitions.push_back(box_of(item));
    for (size_t i = 0; i < steps_.size(); ++i) made_.steps[i].box = box_of(steps_[i]);
    for (size_t i = 0; i < border_.size(); ++i) made_.border[i].box = box_of(border_[i]);
    for (size_t w = 0; w < wires_.size(); ++w) made_.lines.push_back(line_of(w));
    made_.size = items_[0].size;
    return std::move(made_);
  }

 private:
  size_t add_item(Item item) {
    items_[item.parent].children.push_back(items_.size());
    items_.push_back(std::move(item));
    return items_.size() - 1;
  }

  // The heading fits, in bold letters.
  size_t add_frame(const ExplainedPartition& partition) {
    constexpr double kPadding = 14, kHeading = 40;
    const double letters = static_cast<double>(length_of(heading(graph_, partition))) * kBoldCharacter;
    return add_item({.heading = kHeading, .padding = kPadding, .least_width = std::max(kLeastFrame, letters + 2 * kPadding)});
  }

  size_t add_step(size_t parent, StepBox step) {
    constexpr double kPadding = 10, kHeading = 24;
    made_.steps.push_back(std::move(step));
    steps_.push_back(add_item({.parent = parent, .heading = kHeading, .padding = kPadding, .least_width = kLeastFrame}));
    return steps_.back();
  }

  // The tiles that ops of a region belong to; -1: none of them runs in tiles.
  static int tiles_of(const ExplainedPartition& partition, const std::set<size_t>& ops) {
    for (size_t t = 0; t < partition.tiles.size(); ++t)
      for (const size_t op : partition.tiles[t].ops)
        if (ops.count(op) != 0) return static_cast<int>(t);
    return -1;
  }

  void add_partition(size_t p) {
    const ExplainedPartition& partition = graph_.partitions[p];
    const OpGroups groups = groups_of(graph_, partition);
    std::map<size_t, std::set<size_t>> in_region, kernels;
    for (size_t i = 0; i < partition.ops.size(); ++i) {
      in_region[groups.region[i]].insert(partition.ops[i]);
      const auto& own = graph_.ops[partition.ops[i]].kernels;
      kernels[groups.kernel[i]].insert(own.begin(), own.end());
    }
    std::map<size_t, size_t> region_box, kernel_box;
    for (size_t i = 0; i < partition.ops.size(); ++i) {
      const size_t region = groups.region[i], kernel = groups.kernel[i];
      if (region_box.count(region) == 0) {
        const int tiles = tiles_of(partition, in_region[region]);
        region_box[region] = tiles < 0 ? partitions_[p] : add_step(partitions_[p], {.partition = p, .tiles = tiles});
      }
      if (kernel_box.count(kernel) == 0) {
        const std::set<size_t>& own = kernels[kernel];
        kernel_box[kernel] = own.empty() ? region_box[region]
                                         : add_step(region_box[region], {.partition = p, .kernels = {own.begin(), own.end()}});
      }
      const ExplainedOp& op = graph_.ops[partition.ops[i]];
      Size size = size_for({name_line(op), result_line(graph_, op)}, kOpHeight);
      const auto letters = static_cast<double>(std::min(length_of(op.kind), kLongestLine));
      size.width = std::max(size.width, letters * kBoldCharacter + 20);
      ops_[partition.ops[i]] = add_item({.parent = kernel_box[kernel], .size = size});
    }
  }

  // From the item to the picture, both included.
  std::vector<size_t> path_from(size_t item) const {
    std::vector<size_t> path{item};
    while (path.back() != 0) path.push_back(items_[path.back()].parent);
    return path;
  }

  // The innermost box that holds both.
  size_t common_box(size_t a, size_t b) const {
    const std::vector<size_t> path = path_from(a);
    while (std::find(path.begin(), path.end(), b) == path.end()) b = items_[b].parent;
    return b;
  }

  void add_border(size_t index) {
    const ExplainedTensor& tensor = graph_.tensors[index];
    const Size size = size_for({join(tensor.id, " ", tensor.text)}, kBorderHeight);
    if (tensor.producer < 0 && !tensor.consumers.empty()) {
      size_t box = items_[ops_[tensor.consumers.front()]].parent;
      for (const size_t op : tensor.consumers) box = common_box(box, items_[ops_[op]].parent);
      inputs_[index] = add_item({.parent = box, .size = size});
      border_.push_back(inputs_[index]);
      made_.border.push_back({index, false, {}});
    }
    if (tensor.producer >= 0 && tensor.is_output) {
      outputs_[index] = add_item({.parent = items_[ops_[static_cast<size_t>(tensor.producer)]].parent, .size = size});
      border_.push_back(outputs_[index]);
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
        const size_t from = producer < 0 ? inputs_.at(tensor) : ops_[static_cast<size_t>(producer)];
        wires_.push_back({tensor, from, ops_[o], producer < 0 ? 0.5 : leaves[tensor], share(i, inputs.size())});
      }
    }
    for (const auto& [tensor, item] : outputs_)
      wires_.push_back({tensor, ops_[static_cast<size_t>(graph_.tensors[tensor].producer)], item, leaves[tensor], 0.5});
  }

  // ---- positions

  // The child of the box that holds the item, or is it.
  size_t child_with(size_t box, size_t item) const {
    while (items_[item].parent != box) item = items_[item].parent;
    return item;
  }

  // Per box: the wires between two of its children.
  std::vector<std::vector<size_t>> wires_of_boxes() const {
    std::vector<std::vector<size_t>> result(items_.size());
    for (size_t w = 0; w < wires_.size(); ++w) result[common_box(wires_[w].from, wires_[w].to)].push_back(w);
    return result;
  }

  void lay_out_inside(size_t box, const std::vector<std::vector<size_t>>& wires) {
    std::map<size_t, size_t> place;
    std::vector<Size> sizes;
    for (const size_t child : items_[box].children) {
      if (!items_[child].children.empty() || items_[child].heading > 0) lay_out_inside(child, wires);
      place[child] = sizes.size();
      sizes.push_back(items_[child].size);
    }
    std::map<std::pair<size_t, size_t>, size_t> known;
    std::vector<Edge> edges;
    for (const size_t w : wires[box]) {
      const Edge edge{place[child_with(box, wires_[w].from)], place[child_with(box, wires_[w].to)]};
      if (known.try_emplace({edge.from, edge.to}, edges.size()).second) edges.push_back(edge);
    }
    const LayeredLayout layout = layered_layout(sizes, edges, box == 0 ? kBetweenFrames : kInFrame);
    Item& item = items_[box];
    const double width = std::max(layout.size.width + 2 * item.padding, item.least_width);
    const Point corner{(width - layout.size.width) / 2, item.heading};
    for (const auto& [child, position] : place)
      items_[child].at = {layout.nodes[position].x + corner.x, layout.nodes[position].y + corner.y};
    for (const size_t w : wires[box]) {
      const Edge edge{place[child_with(box, wires_[w].from)], place[child_with(box, wires_[w].to)]};
      for (const Point& bend : layout.bends[known.at({edge.from, edge.to})])
        bends_[w].push_back({bend.x + corner.x, bend.y + corner.y});
    }
    item.size = {width, layout.size.height + item.heading + item.padding};
  }

  void place_inside(size_t box) {
    for (const size_t child : items_[box].children) {
      items_[child].at.x += items_[box].at.x;
      items_[child].at.y += items_[box].at.y;
      place_inside(child);
    }
  }

  Box box_of(size_t item) const { return {items_[item].at, items_[item].size}; }

  int op_of(size_t item) const {
    const auto found = std::find(ops_.begin(), ops_.end(), item);
    return found == ops_.end() ? -1 : static_cast<int>(found - ops_.begin());
  }

  // Down out of the boxes around the one end, past what is between, and into the boxes around the other.
  Line line_of(size_t index) const {
    const Wire& wire = wires_[index];
    Line line{wire.tensor, op_of(wire.from), op_of(wire.to), {}};
    const Item &from = items_[wire.from], &to = items_[wire.to];
    const Point begin{from.at.x + from.size.width * wire.leaves, from.at.y + from.size.height};
    const Point end{to.at.x + to.size.width * wire.enters, to.at.y};
    const size_t box = common_box(wire.from, wire.to);
    line.points.push_back(begin);
    for (size_t out = from.parent; out != box; out = items_[out].parent)
      line.points.push_back({begin.x, items_[out].at.y + items_[out].size.height});
    for (const Point& bend : bends_[index]) line.points.push_back({items_[box].at.x + bend.x, items_[box].at.y + bend.y});
    std::vector<Point> inwards;
    for (size_t in = to.parent; in != box; in = items_[in].parent) inwards.push_back({end.x, items_[in].at.y});
    line.points.insert(line.points.end(), inwards.rbegin(), inwards.rend());
    line.points.push_back(end);
    return line;
  }

  const ExplainedGraph& graph_;
  GraphLayout made_;
  std::vector<Item> items_;
  std::vector<size_t> partitions_, ops_, steps_, border_;  // items
  std::map<size_t, size_t> inputs_, outputs_;              // tensor -> item
  std::vector<Wire> wires_;
  std::vector<std::vector<Point>> bends_;  // per wire, in the innermost box that holds both ends
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
