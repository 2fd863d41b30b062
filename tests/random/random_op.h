// One op of a random graph: attributes that its schema allows, and input shapes that match them and the shape of the first
// input. The combination may still be invalid; the caller checks it with the schema.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "interface/op_schema.h"
#include "random/rng.h"

namespace lamina::testing {

// Types by type variable of the schema.
using Types = std::map<std::string, DataType, std::less<>>;

// Returns a shape that suits the op's first input.
Dims random_shape(const OpSchema& schema, Rng& rng);

// `shape` is the shape of the first input.
Attributes random_attributes(const OpSchema& schema, const Dims& shape, Rng& rng);

// Returns the shape of input `port` for a first input of `shape`; `attributes` includes the defaults.
Dims operand_shape(const OpSchema& schema, const PortSpec& port, const Attributes& attributes, const Dims& shape, Rng& rng);

// Returns group sizes that divide each axis of `shape`.
std::vector<int64_t> random_groups(const Dims& shape, Rng& rng);

// Returns all combinations that the schema allows.
std::vector<Types> type_combinations(const OpSchema& schema);

Types random_types(const OpSchema& schema, Rng& rng);

}  // namespace lamina::testing
