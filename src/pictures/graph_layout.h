// The layout of an explained graph in a picture: ops inside the boxes of their kernels, tile regions and partitions, and the
// graph's input and output tensors.
//
// Boxes are laid out from the inside out: the content of each box in layers determines its size.
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

// An input or output tensor of the graph.
struct BorderBox {
  size_t tensor = 0;
  bool is_output = false;
  Box box;
};

// A line from a tensor's producer (or the border) to one of its consumers (or the border).
struct Line {
  size_t tensor = 0;
  int from_op = -1, to_op = -1;  // -1: the border
  std::vector<Point> points;
};

// A kernel, or ops that run tile by tile, inside a partition. Kernels that share ops have one box.
struct StepBox {
  size_t partition = 0;
  int tiles = -1;                    // position in ExplainedPartition::tiles; -1: a kernel
  std::vector<size_t> kernels = {};  // positions in ExplainedPartition::kernels
  Box box = {};
};

struct GraphLayout {
  std::vector<Box> partitions, ops;
  std::vector<StepBox> steps;  // an outer box before the boxes inside it
  std::vector<BorderBox> border;
  std::vector<Line> lines;
  Size size;
};

GraphLayout lay_out(const ExplainedGraph& graph);

// The lines in an op's box below its kind: its name, if that adds to the kind, and its first result.
std::string name_line(const ExplainedOp& op);
std::string result_line(const ExplainedGraph& graph, const ExplainedOp& op);

// The text shortened to this many characters; counts code points, not bytes.
std::string shortened(const std::string& text, size_t characters);

}  // namespace lamina::pictures
