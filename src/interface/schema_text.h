// Schemas in words, for `lamina ops` and the pages of docs/ops.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "interface/op_schema.h"

namespace lamina {

std::string presence_text(const PortSpec& port);           // "required; only when use_affine is true"
std::string default_text(const AttributeSpec& attribute);  // "required", "default -1" or "optional"
std::string allowed_text(const AttributeSpec& attribute);  // "one of NCX, NXC"; "" if any value of its type is allowed

// "src 0.25 to 4; gamma 0.5 to 1.5": the domains of inputs, from which the driver fills them; "" if any values will do.
// `name` writes a port's name.
std::string data_text(const OpSchema& schema, const std::function<std::string(const std::string&)>& name);
// The error that its arithmetic adds, and whether it amplifies errors of its inputs; "" for an op that computes nothing.
std::string accuracy_text(const OpSchema& schema);
// The range of magnitudes in which sums of squares do not overflow, and the results beyond it; "" if no squares are summed.
std::string range_text(const OpSchema& schema);

// Every combination of types that the schema accepts, one type per variable, in the order of schema.types.
std::vector<std::vector<DataType>> legal_types(const OpSchema& schema);

}  // namespace lamina
