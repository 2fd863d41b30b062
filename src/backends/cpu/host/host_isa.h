// The instruction sets of exported programs that this machine has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lamina::cpu::host {

// By the names of targets (targets/target.h), the best first.
std::vector<std::string_view> isas();

}  // namespace lamina::cpu::host
