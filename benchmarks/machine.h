// Describes the machine of a measurement.
#pragma once

#include <nlohmann/json.hpp>

namespace bench {

// CPU model, number of CPUs, caches (reported and measured), compiler, oneDNN's version, page size policy.
nlohmann::ordered_json describe_machine();

// Whether other programs keep the machine busy now, judged by the load of the last minute.
bool is_busy_now(double& load);

}  // namespace bench
