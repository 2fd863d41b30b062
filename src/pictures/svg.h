// The drawing of an explained graph as an <svg> element, styled by page.css. Its elements have attributes by which scripts
// find them: data-op, data-partition, data-tensor (positions in the explained graph).
#pragma once

#include <string>

#include "interface/explained_graph.h"

namespace lamina::pictures {

std::string svg_element(const ExplainedGraph& graph);

}  // namespace lamina::pictures
