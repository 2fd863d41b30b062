// Sets of element types and relations between type variables that several schemas share.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "interface/data_type.h"

namespace lamina {

// f32, bf16, f16: the floating types of oneDNN's op set. floats_and_f64 adds f64, an extension of lamina.
std::vector<DataType> floats_of_opset();
std::vector<DataType> floats_and_f64();
std::vector<DataType> all_types();  // every type but undef
std::vector<DataType> small_floats_of(int bits);
// The integers with which ops along an axis compute, modulo 2^bits: those of 16 bits or more.
std::vector<DataType> computing_integers();
std::vector<DataType> floats_and_integers();  // floats_and_f64() and these
std::vector<DataType> whole_integers();       // the integers of a byte or more
std::vector<DataType> numbers();              // floats_and_f64() and these

using TypeOf = std::function<DataType(std::string_view)>;  // undef for a variable that no given port binds
using TypeRule = std::function<std::string(const TypeOf&)>;

// The rule that `type` does not mix with other types among these variables.
TypeRule stays_alone(DataType type, std::vector<std::string> variables);
TypeRule f64_stays_alone(std::vector<std::string> variables);

// The rule that `variable` may be the narrow type `type` only if `source` is that type too.
TypeRule only_with_same(DataType type, std::string variable, std::string source);

// The rule that both types are equal, or `variable` (with `either`, any of the two) is f32.
TypeRule equal_or_f32(std::string variable, std::string source, bool either = false);

// The rule that all of `rules` hold; it reports the first violation.
TypeRule all_of(std::vector<TypeRule> rules);

}  // namespace lamina
