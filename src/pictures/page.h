// An explained graph as a self-contained HTML page: the drawing, a list of partitions, a search, and a panel with the details
// of an op or a partition. It works by keyboard and by mouse, and follows the system's light or dark mode. Without scripts,
// the drawing and the list still work.
#pragma once

#include <string>

#include "interface/explained_graph.h"

namespace lamina::pictures {

std::string html_page(const ExplainedGraph& graph);

}  // namespace lamina::pictures
