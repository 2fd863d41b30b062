// Names of today's ops and attributes in earlier versions of the op set. The list contains only renamings. It omits ops that
// also had other ports or another meaning: LayerNormBackprop is an op of its own, BatchNormTrainingBackprop had its inputs in
// another order, and Erf, Index, Negative, Sign and similar ops have no successor.
#pragma once

#include <optional>
#include <string_view>

#include "interface/op_schema.h"

namespace lamina {

std::optional<OpKind> kind_of_older_name(std::string_view name);

// Renames attributes that have a newer name in the schema. Throws Error(invalid_graph) if both names are given.
void rename_older_attributes(const OpSchema& schema, Attributes& attributes);

}  // namespace lamina
