// `lamina explain`: each op, its partition, its kernel, and why it is or is not fused with its neighbours.
#pragma once

#include <string>

#include "interface/explained_graph.h"
#include "lamina/bar.h"
#include "lamina/overrides.h"

namespace lamina::driver {

// The graph, and the target that it is partitioned and compiled for.
struct GraphChoice {
  std::string file;
  std::string engine, device;
  std::string policy = "fusion";
  Overrides overrides;
};

struct ExplainOptions : GraphChoice {
  bool kernel_texts = false;
};

// Loads and partitions the graph, and compiles it if `compile` is set. The title is the file name.
ExplainedGraph explained_graph(const GraphChoice& choice, bool compile, Bar& bar);

int explain(const ExplainOptions& options);

}  // namespace lamina::driver
