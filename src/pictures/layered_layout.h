// Boxes connected by edges, placed in layers from top to bottom so that edges point downwards.
//
// Input: the sizes of the nodes, and acyclic edges. Output: the position of each node, and the points through which each edge
// passes between its ends.
//
// Method: layered drawing (Sugiyama et al., 1981). Layers follow the longest path from above; a node without a producer is
// placed just above its first reader. An edge that passes layers reserves a narrow place in each. Sweeps down and up order
// each layer by barycentres. Then positions are chosen as close to the neighbours' middles as the order and the gaps allow.
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

// Throws Error, a bug in the caller, for self-loops and cycles.
LayeredLayout layered_layout(const std::vector<Size>& nodes, const std::vector<Edge>& edges, const Gaps& gaps = {});

}  // namespace lamina::pictures
