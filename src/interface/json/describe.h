// Schemas and partitions described as JSON; graph/text.h documents the keys.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "interface/op_schema.h"
#include "interface/partition.h"
#include "interface/variant.h"

namespace lamina {

std::string schema_to_json(const OpSchema& schema);
std::string partition_to_json(const Partition& partition);

// A JSON object of these fields, in their order.
using JsonField = Variant<bool, int64_t, double, std::string, std::vector<std::string>>;
std::string json_object(const std::vector<std::pair<std::string, JsonField>>& fields);

}  // namespace lamina
