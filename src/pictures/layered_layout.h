// Boxes joined by edges, placed in layers from top to bottom so that edges point downwards.
//
// In:    the sizes of the nodes, and edges without a cycle.
// Out:   where each node lies, and through which points each edge goes between its ends.
// How:   layers by the longest path from above (a node without a producer lies just above its first reader); edges that pass
// layers
//        get a narrow place in each; the order within a layer by barycentres, sweeping down and up; then positions that keep
//        the order and the gaps and lie as close to the neighbours' middles as they can.
#pragma once

#include <cstddef>
#include <vector>

namespace lamina::pictures {

struct Size {
  double width = 0, height = 0;
};

struct Point {
  double x = 0, y = 0;
};

struct Edge {
  size_t from = 0, to = 0;
};

struct Gaps {
  double beside = 16, below = 34;
};

struct LayeredLayout {
  std::vector<Point> nodes;               // upper left corners
  std::vector<std::vector<Point>> bends;  // per edge
  std::vector<size_t> layers;             // per node
  Size size;
};

// Edges from a node to itself, and those that would close a cycle, throw Error: a bug in whoever calls.
LayeredLayout layered_layout(const std::vector<Size>& nodes, const std::vector<Edge>& edges, const Gaps& gaps = {});

}  // namespace lamina::pictures
