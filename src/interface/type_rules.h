// Sets of element types and relations between type variables that several schemas share.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "interface/data_type.h"

namespace lamina {

// f32, bf16, f16: what the op set takes for arithmetic. With f64: what lamina computes as well.
std::vector<DataType> floats_of_opset();
std::vector<DataType> floats_and_f64();
std::vector<DataType> all_types();  // every type but undef

using TypeOf = std::function<DataType(std::string_view)>;  // undef for a variable that no given port binds
using TypeRule = std::function<std::string(const TypeOf&)>;

// That type never mixes with another among these variables.
TypeRule stays_alone(DataType type, std::vector<std::string> variables);
TypeRule f64_stays_alone(std::vector<std::string> variables);

// The narrow type `type` of `variable` is allowed only where `source` has it too.
TypeRule only_with_same(DataType type, std::string variable, std::string source);

// Both types are equal, or `variable` (or with `either`, any of the two) is f32.
TypeRule equal_or_f32(std::string variable, std::string source, bool either = false);

// The first rule that objects.
TypeRule all_of(std::vector<TypeRule> rules);

}  // namespace lamina
