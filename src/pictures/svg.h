// The drawing of an explained graph as an <svg> element, whose looks are the style sheet's (page.css) and whose elements carry
// what a script needs to find them: data-op, data-partition, data-tensor (positions in the explained graph).
#pragma once

#include <string>

#include "interface/explained_graph.h"

namespace lamina::pictures {

std::string svg_element(const ExplainedGraph& graph);

}  // namespace lamina::pictures
