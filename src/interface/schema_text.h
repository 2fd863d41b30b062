// Schemas in words: what `lamina ops` prints and the pages of docs/ops are made of.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "interface/op_schema.h"

namespace lamina {

std::string presence_text(const PortSpec& port);           // "required; only when use_affine is true"
std::string default_text(const AttributeSpec& attribute);  // "required", "default -1" or "may be left out"
std::string allowed_text(const AttributeSpec& attribute);  // "one of NCX, NXC"; "" when any value of its type is

// "src 0.25 to 4; gamma 0.5 to 1.5": what inputs are meant to hold, and the driver fills them with; "" when any values will do.
// `name` writes a port's name.
std::string data_text(const OpSchema& schema, const std::function<std::string(const std::string&)>& name);
// What its arithmetic adds to the error, and whether an error of its inputs grows in it; "" of an op that computes nothing.
std::string accuracy_text(const OpSchema& schema);

// Every combination of types that the schema takes, one type a variable, in the order of schema.types.
std::vector<std::vector<DataType>> legal_types(const OpSchema& schema);

}  // namespace lamina
