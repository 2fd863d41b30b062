// The changes that --set-shape, --set-attr and --set-dtype make to a dump before a graph is built, so that one dump covers
// many cases.
#pragma once

#include <string>
#include <vector>

#include "interface/json/json.h"

namespace lamina::driver {

struct Overrides {
  std::vector<std::string> shapes;      // "ID:4x8": the shape of a graph input, dense; "ID:" is a scalar
  std::vector<std::string> attributes;  // "OP:NAME=VALUE", where OP is an id or a name; list entries are separated by x
  std::vector<std::string> dtypes;      // "ID:bf16" or "all:bf16"
  bool empty() const { return shapes.empty() && attributes.empty() && dtypes.empty(); }
};

// Splits values from the command line at commas.
std::vector<std::string> split_at_commas(const std::vector<std::string>& given);

// Applies the changes. If a shape or an attribute changes, the shapes of produced tensors are cleared and inferred again.
// Throws Error(invalid_arguments) with the option, the given and the allowed value.
void apply_overrides(GraphDump& dump, const Overrides& overrides);

}  // namespace lamina::driver
