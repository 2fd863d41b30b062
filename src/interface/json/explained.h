// An explained graph as JSON.
//
//   {"title", "backend", "given_ops", "compiled", "warnings": [...],
//    "tensors": [{"id", "text", "layout", "property", "value", "producer", "consumers", "is_output"}],
//    "ops": [{"id", "kind", "name", "attributes": [[name, value]], "inputs": [[port, tensor]], "outputs", "reasons":
//             [{"code", "text", "other_op"}], "partition", "kernels"}],
//    "partitions": [{"id", "ops", "supported", "problem", "backend", "kernels": [{"name", "schedule", "text", "step"}],
//                    "steps": [{"name", "bytes", "flops", "times": PROFILED}],
//                    "tiles": [{"text", "sums", "ops"}], "required_bytes", "moved_bytes", "workspace_bytes",
//                    "times": {"median_us", "gb_per_s", "compile_ms", "verdict", "profiled": PROFILED}}]}
//
// PROFILED is {"us", "idle_us", "bound_us", "bound"}. Tensors, ops, kernels and steps are referred to by their positions;
// unknown values are null or "".
#pragma once

#include <string>

#include "interface/explained_graph.h"

namespace lamina {

std::string explained_to_json(const ExplainedGraph& graph);

}  // namespace lamina
