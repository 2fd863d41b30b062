// The function's body under each schedule. emit_kernel.cpp selects one.
#pragma once

#include "backends/cpu/emit/emission.h"

namespace lamina::cpu {

void emit_along_rows(Emission& emission);   // tile after tile
void emit_across_rows(Emission& emission);  // group after group, one lane per row
void emit_split_rows(Emission& emission);   // one step for rows that threads share

}  // namespace lamina::cpu
