// An explained graph as JSON, with the times from a replay's report.
//
//   {"title", "backend", "given_ops", "compiled", "warnings": [...],
//    "tensors": [{"id", "text", "layout", "property", "value", "producer", "consumers", "is_output"}],
//    "ops": [{"id", "kind", "name", "attributes": [[name, value]], "inputs": [[port, tensor]], "outputs", "reasons":
//             [{"code", "text", "other_op"}], "partition", "kernels"}],
//    "partitions": [{"id", "ops", "supported", "problem", "backend", "kernels": [{"name", "schedule", "text"}],
//                    "tiles": [{"text", "sums", "ops"}], "required_bytes", "moved_bytes", "workspace_bytes",
//                    "times": {"median_us", "gb_per_s", "compile_ms", "verdict"}}]}
//
// Tensors, ops and kernels are referred to by their positions; unknown values are null or "".
#pragma once

#include <string>
#include <string_view>

#include "interface/explained_graph.h"

namespace lamina {

std::string explained_to_json(const ExplainedGraph& graph);

// Adds the times of a report (`lamina replay --report`) of the same graph to the partitions: of its file called `file`, or of
// its only file. Throws Error(invalid_arguments), with a sentence that starts with `name`, if the text is not a report or is
// about other partitions.
void add_report_times(ExplainedGraph& graph, std::string_view report, const std::string& name, const std::string& file);

}  // namespace lamina
