// Schemas in words: what `lamina ops` prints and the pages of docs/ops are made of.
#pragma once

#include <string>
#include <vector>

#include "interface/op_schema.h"

namespace lamina {

std::string presence_text(const PortSpec& port);           // "required; only when use_affine is true"
std::string default_text(const AttributeSpec& attribute);  // "required", "default -1" or "may be left out"
std::string allowed_text(const AttributeSpec& attribute);  // "one of NCX, NXC"; "" when any value of its type is

// Every combination of types that the schema takes, one type a variable, in the order of schema.types.
std::vector<std::vector<DataType>> legal_types(const OpSchema& schema);

}  // namespace lamina
