// What a result was measured on.
#pragma once

#include <nlohmann/json.hpp>

namespace bench {

// CPU model, CPUs, caches (what is told of them, what was measured), compiler, oneDNN's version, page size policy.
nlohmann::ordered_json describe_machine();

// Whether other programs keep the machine busy right now, by its load of the last minute.
bool is_busy_now(double& load);

}  // namespace bench
