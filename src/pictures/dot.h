// An explained graph in Graphviz's DOT language.
#pragma once

#include <string>

#include "interface/explained_graph.h"

namespace lamina::pictures {

// One cluster per partition, labelled with its kernels, tiles and time, contains its ops; edges are labelled with type and
// shape.
std::string dot_text(const ExplainedGraph& graph);

}  // namespace lamina::pictures
