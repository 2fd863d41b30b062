// Where everything of an explained graph lies in a picture: partitions as frames around their ops, with the tensors that the
// graph takes and gives.
//
// In two steps: the ops of each partition in layers, which gives the partition's frame; then the frames in layers.
#pragma once

#include <string>
#include <vector>

#include "interface/explained_graph.h"
#include "pictures/layered_layout.h"

namespace lamina::pictures {

struct Box {
  Point at;
  Size size;
};

// A tensor that the graph takes or gives.
struct BorderBox {
  size_t tensor = 0;
  bool is_output = false;
  Box box;
};

// From the op that makes a tensor (or the border) to one that reads it (or the border).
struct Line {
  size_t tensor = 0;
  int from_op = -1, to_op = -1;  // -1: the border
  std::vector<Point> points;
};

struct GraphLayout {
  std::vector<Box> partitions, ops;
  std::vector<BorderBox> border;
  std::vector<Line> lines;
  Size size;
};

GraphLayout lay_out(const ExplainedGraph& graph);

// What stands in an op's box below its kind: its name, where that says more than the kind; the first of its results.
std::string name_line(const ExplainedOp& op);
std::string result_line(const ExplainedGraph& graph, const ExplainedOp& op);

// As much of a text as fits this many characters; counts code points, not bytes.
std::string shortened(const std::string& text, size_t characters);

}  // namespace lamina::pictures
