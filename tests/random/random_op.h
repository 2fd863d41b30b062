// One op of a random graph: attributes that its schema allows, and shapes of its inputs that go with them and with the shape of
// the first. Nothing here is sure to be legal together; who adds the op asks the schema.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "interface/op_schema.h"
#include "random/rng.h"

namespace lamina::testing {

// By type variable of the schema.
using Types = std::map<std::string, DataType, std::less<>>;

// A shape that suits the op as the shape of its first input.
Dims random_shape(const OpSchema& schema, Rng& rng);

// `shape`: of the first input.
Attributes random_attributes(const OpSchema& schema, const Dims& shape, Rng& rng);

// Of input `port` beside a first input of `shape`; `attributes` has its defaults.
Dims operand_shape(const OpSchema& schema, const PortSpec& port, const Attributes& attributes, const Dims& shape, Rng& rng);

// Sizes of groups along each axis of `shape`, which they divide.
std::vector<int64_t> random_groups(const Dims& shape, Rng& rng);

// All that the schema allows.
std::vector<Types> type_combinations(const OpSchema& schema);

Types random_types(const OpSchema& schema, Rng& rng);

}  // namespace lamina::testing
