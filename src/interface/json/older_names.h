// What earlier versions of the op set called today's ops and attributes. Only renamings: what also had other ports or another
// meaning is not here (LayerNormBackprop is an op of its own, BatchNormTrainingBackprop had its inputs in another order, and
// Erf, Index, Negative, Sign and their like have no successor).
#pragma once

#include <optional>
#include <string_view>

#include "interface/op_schema.h"

namespace lamina {

std::optional<OpKind> kind_of_older_name(std::string_view name);

// Attributes that the schema knows by a newer name take it. Throws Error(invalid_graph) where both names are given.
void rename_older_attributes(const OpSchema& schema, Attributes& attributes);

}  // namespace lamina
