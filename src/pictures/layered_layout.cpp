#include "pictures/layered_layout.h"

#include <algorithm>
#include <map>
#include <utility>

#include "interface/status.h"

namespace lamina::pictures {
namespace {

constexpr size_t kSweeps = 8;
// An edge that passes more layers gets no reserved places: in a deep graph they would fill most of the picture.
constexpr size_t kLongestReserved = 64;
constexpr double kReservedWidth = 6;

using Neighbours = std::vector<std::vector<size_t>>;

// The items in layers: the nodes, followed by the reserved places of edges.
struct Layered {
  std::vector<size_t> layer;                 // per item
  std::vector<double> width;                 // per item
  Neighbours above, below;                   // per item
  std::vector<std::vector<size_t>> layers;   // items, from left to right
  std::vector<std::vector<size_t>> passing;  // per edge, the reserved places that it goes through
};

std::vector<size_t> topological_order(size_t count, const Neighbours& above, const Neighbours& below) {
  std::vector<size_t> missing(count), order;
  for (size_t i = 0; i < count; ++i) {
    missing[i] = above[i].size();
    if (missing[i] == 0) order.push_back(i);
  }
  for (size_t at = 0; at < order.size(); ++at)
    for (const size_t next : below[order[at]])
      if (--missing[next] == 0) order.push_back(next);
  LAMINA_CHECK(order.size() == count, "a layout is asked for of a graph with a cycle");
  return order;
}

std::vector<size_t> layers_by_longest_path(size_t count, const Neighbours& above, const Neighbours& below) {
  std::vector<size_t> layer(count, 0);
  for (const size_t node : topological_order(count, above, below))
    for (const size_t next : below[node]) layer[next] = std::max(layer[next], layer[node] + 1);
  for (size_t node = 0; node < count; ++node) {
    if (!above[node].empty() || below[node].empty()) continue;
    size_t first = layer[below[node].front()];
    for (const size_t next : below[node]) first = std::min(first, layer[next]);
    layer[node] = first - 1;
  }
  return layer;
}

// Edges that leave one node share their places: they are drawn as one line until they diverge.
void reserve_places(Layered& made, const std::vector<Edge>& edges) {
  std::map<std::pair<size_t, size_t>, size_t> places;  // by source and layer
  made.passing.resize(edges.size());
  const auto join_items = [&](size_t from, size_t to) {
    if (std::find(made.below[from].begin(), made.below[from].end(), to) != made.below[from].end()) return;
    made.below[from].push_back(to);
    made.above[to].push_back(from);
  };
  for (size_t e = 0; e < edges.size(); ++e) {
    const auto [from, to] = edges[e];
    const size_t begin = made.layer[from] + 1, end = made.layer[to];
    if (end - begin > kLongestReserved) continue;
    size_t last = from;
    for (size_t layer = begin; layer < end; ++layer) {
      const auto [found, is_new] = places.try_emplace({from, layer}, made.layer.size());
      if (is_new) {
        made.layer.push_back(layer);
        made.width.push_back(kReservedWidth);
        made.above.emplace_back();
        made.below.emplace_back();
      }
      join_items(last, found->second);
      made.passing[e].push_back(last = found->second);
    }
    join_items(last, to);
  }
}

Layered in_layers(const std::vector<Size>& nodes, const std::vector<Edge>& edges) {
  Layered made;
  made.above.resize(nodes.size());
  made.below.resize(nodes.size());
  for (const Edge& edge : edges) {
    made.above[edge.to].push_back(edge.from);
    made.below[edge.from].push_back(edge.to);
  }
  made.layer = layers_by_longest_path(nodes.size(), made.above, made.below);
  for (const Size& node : nodes) made.width.push_back(node.width);
  made.above.assign(nodes.size(), {});
  made.below.assign(nodes.size(), {});
  reserve_places(made, edges);
  const size_t count = made.layer.empty() ? 0 : *std::max_element(made.layer.begin(), made.layer.end()) + 1;
  made.layers.resize(count);
  for (size_t item = 0; item < made.layer.size(); ++item) made.layers[made.layer[item]].push_back(item);
  return made;
}

// ---- order

// Sorts a layer by the mean position of each item's neighbours; an item without neighbours keeps its position.
void order_by_barycentre(std::vector<size_t>& layer, const Neighbours& neighbours, std::vector<size_t>& place) {
  std::vector<std::pair<double, size_t>> keyed;
  for (const size_t item : layer) {
    double sum = 0;
    for (const size_t neighbour : neighbours[item]) sum += static_cast<double>(place[neighbour]);
    const size_t count = neighbours[item].size();
    keyed.emplace_back(count == 0 ? static_cast<double>(place[item]) : sum / static_cast<double>(count), item);
  }
  std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < layer.size(); ++i) {
    layer[i] = keyed[i].second;
    place[layer[i]] = i;
  }
}

void order_layers(Layered& made) {
  std::vector<size_t> place(made.layer.size());
  for (const auto& layer : made.layers)
    for (size_t i = 0; i < layer.size(); ++i) place[layer[i]] = i;
  for (size_t sweep = 0; sweep < kSweeps; ++sweep) {
    if (sweep % 2 == 0) {
      for (auto& layer : made.layers) order_by_barycentre(layer, made.above, place);
    } else {
      for (auto layer = made.layers.rbegin(); layer != made.layers.rend(); ++layer)
        order_by_barycentre(*layer, made.below, place);
    }
  }
}

// ---- positions

// The weight of a node with only one neighbour. It is low, because such a node can follow its neighbour: edges between the
// other nodes become straight, and tensors that only one op reads are placed beside them.
constexpr double kWeightOfLeaf = 0.02;
// The weight of reserved places. It is high, because bends are most visible in long edges.
constexpr double kWeightOfReserved = 4;

double weight_of(const Layered& made, size_t item, size_t node_count) {
  if (item >= node_count) return kWeightOfReserved;
  return made.above[item].size() + made.below[item].size() > 1 ? 1 : kWeightOfLeaf;
}

// Finds the middles closest to the wanted ones (weighted least squares) that keep the order and the distances: neighbours
// that would be too close merge into a block, which is placed at the weighted mean of its items' wanted positions.
std::vector<double> nearest_in_order(const std::vector<double>& wanted, const std::vector<double>& weight,
                                     const std::vector<double>& distance) {
  struct Block {
    double sum, weight;
    size_t count;
    double mean() const { return sum / weight; }
  };
  std::vector<Block> blocks;
  double offset = 0;
  std::vector<double> offsets;
  for (size_t i = 0; i < wanted.size(); ++i) {
    offset += distance[i];
    offsets.push_back(offset);
    blocks.push_back({(wanted[i] - offset) * weight[i], weight[i], 1});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
      const Block last = blocks.back();
      blocks.pop_back();
      blocks.back().sum += last.sum;
      blocks.back().weight += last.weight;
      blocks.back().count += last.count;
    }
  }
  std::vector<double> middles;
  for (const Block& block : blocks)
    for (size_t i = 0; i < block.count; ++i) middles.push_back(block.mean() + offsets[middles.size()]);
  return middles;
}

// The distance from each item's middle to that of its predecessor.
std::vector<double> distances(const std::vector<size_t>& layer, const std::vector<double>& width, double gap) {
  std::vector<double> result;
  for (size_t i = 0; i < layer.size(); ++i)
    result.push_back(i == 0 ? width[layer[i]] / 2 : (width[layer[i - 1]] + width[layer[i]]) / 2 + gap);
  return result;
}

void move_towards(const std::vector<size_t>& layer, const Neighbours& neighbours, const std::vector<double>& weight,
                  const std::vector<double>& distance, std::vector<double>& middle) {
  std::vector<double> wanted, weights;
  for (const size_t item : layer) {
    double sum = 0, total = 0;
    for (const size_t neighbour : neighbours[item]) {
      sum += weight[neighbour] * middle[neighbour];
      total += weight[neighbour];
    }
    wanted.push_back(total == 0 ? middle[item] : sum / total);
    weights.push_back(weight[item]);
  }
  const std::vector<double> placed = nearest_in_order(wanted, weights, distance);
  for (size_t i = 0; i < layer.size(); ++i) middle[layer[i]] = placed[i];
}

std::vector<double> place_middles(const Layered& made, size_t node_count, double gap) {
  std::vector<double> weight;
  for (size_t item = 0; item < made.layer.size(); ++item) weight.push_back(weight_of(made, item, node_count));
  std::vector<std::vector<double>> distance;
  std::vector<double> middle(made.layer.size());
  for (const auto& layer : made.layers) {
    distance.push_back(distances(layer, made.width, gap));
    double at = 0;
    for (size_t i = 0; i < layer.size(); ++i) middle[layer[i]] = at += distance.back()[i];
  }
  for (size_t sweep = 0; sweep < kSweeps; ++sweep) {
    if (sweep % 2 == 0) {
      for (size_t l = 0; l < made.layers.size(); ++l) move_towards(made.layers[l], made.above, weight, distance[l], middle);
    } else {
      for (size_t l = made.layers.size(); l-- > 0;) move_towards(made.layers[l], made.below, weight, distance[l], middle);
    }
  }
  return middle;
}

}  // namespace

LayeredLayout layered_layout(const std::vector<Size>& nodes, const std::vector<Edge>& edges, const Gaps& gaps) {
  Layered made = in_layers(nodes, edges);
  order_layers(made);
  const std::vector<double> middle = place_middles(made, nodes.size(), gaps.beside);

  std::vector<double> height(made.layers.size(), 0), top(made.layers.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) height[made.layer[i]] = std::max(height[made.layer[i]], nodes[i].height);
  for (size_t l = 1; l < top.size(); ++l) top[l] = top[l - 1] + height[l - 1] + gaps.below;
  double left = 0, right = 0;
  for (size_t item = 0; item < middle.size(); ++item) {
    const double begin = middle[item] - made.width[item] / 2, end = middle[item] + made.width[item] / 2;
    left = item == 0 ? begin : std::min(left, begin);
    right = item == 0 ? end : std::max(right, end);
  }

  LayeredLayout layout;
  for (size_t i = 0; i < nodes.size(); ++i) layout.nodes.push_back({middle[i] - nodes[i].width / 2 - left, top[made.layer[i]]});
  for (const auto& passing : made.passing) {
    std::vector<Point>& bends = layout.bends.emplace_back();
    for (const size_t place : passing) {  // the edge passes straight through the layer
      bends.push_back({middle[place] - left, top[made.layer[place]]});
      bends.push_back({middle[place] - left, top[made.layer[place]] + height[made.layer[place]]});
    }
  }
  layout.layers.assign(made.layer.begin(), made.layer.begin() + static_cast<std::ptrdiff_t>(nodes.size()));
  layout.size = {right - left, top.empty() ? 0 : top.back() + height.back()};
  return layout;
}

}  // namespace lamina::pictures
