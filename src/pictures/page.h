// An explained graph as one HTML page that needs nothing else: the drawing, a list of partitions, a search, and a panel that
// tells all about an op or a partition. By keyboard as by mouse; light or dark as the reader's system is. Without a script the
// drawing and the list are still there.
#pragma once

#include <string>

#include "interface/explained_graph.h"

namespace lamina::pictures {

std::string html_page(const ExplainedGraph& graph);

}  // namespace lamina::pictures
