// An explained graph in the language of Graphviz.
#pragma once

#include <string>

#include "interface/explained_graph.h"

namespace lamina::pictures {

// Ops in a field for each partition, which tells its kernels, tiles and time; tensors with type and shape on the edges.
std::string dot_text(const ExplainedGraph& graph);

}  // namespace lamina::pictures
