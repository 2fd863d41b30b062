// The example of an op's page, from its schema (OpSchema::example): one small op as a dump and as a Python program.
#pragma once

#include <string>

#include "interface/op_schema.h"

namespace lamina::driver {

// Whether an engine runs ops of the kind by themselves: not a marker, not an opaque op.
bool has_example(const OpSchema& schema);

// The op alone in a graph, finalized.
Graph example_graph(const OpSchema& schema);

// What `lamina replay` runs.
std::string example_json(const OpSchema& schema);

// Builds the op and calls it; the last line prints the shapes of its outputs and has them as a comment.
std::string example_python(const OpSchema& schema);

}  // namespace lamina::driver
