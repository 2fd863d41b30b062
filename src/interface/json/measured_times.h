// The times of a run, which `lamina replay --report` (docs/report.schema.json) or `lamina profile --json`
// (docs/profile.schema.json) has written, for an explained graph.
#pragma once

#include <string>
#include <string_view>

#include "interface/explained_graph.h"

namespace lamina {

// Adds the times of a report or a profile of the same graph to the partitions, and those of a profile to the steps. A report
// has the times of the file called `file`, or of its only file. Throws Error(invalid_arguments), with a sentence that starts
// with `name`, if the text is neither of the two or is about other partitions or steps.
void add_measured_times(ExplainedGraph& graph, std::string_view text, const std::string& name, const std::string& file);

}  // namespace lamina
