// What --set-shape, --set-attr and --set-dtype change in a dump before it becomes a graph, so that one dump serves many cases.
#pragma once

#include <string>
#include <vector>

#include "interface/json/json.h"

namespace lamina::driver {

struct Overrides {
  std::vector<std::string> shapes;      // "ID:4x8": the shape of a graph input, dense; "ID:" is a scalar
  std::vector<std::string> attributes;  // "OP:NAME=VALUE", OP an id or a name; entries of a list are joined by x
  std::vector<std::string> dtypes;      // "ID:bf16" or "all:bf16"
  bool empty() const { return shapes.empty() && attributes.empty() && dtypes.empty(); }
};

// Splits what was given on the command line at its commas.
std::vector<std::string> split_at_commas(const std::vector<std::string>& given);

// Changes the dump. Shapes of everything that some op makes are forgotten once a shape or an attribute was changed, so that
// they are inferred anew. Throws Error(invalid_arguments) naming the option, what was given and what is allowed.
void apply_overrides(GraphDump& dump, const Overrides& overrides);

}  // namespace lamina::driver
