// The function's body under each schedule. Which one it is is chosen once, in emit_kernel.cpp.
#pragma once

#include "backends/cpu/emit/emission.h"

namespace lamina::cpu {

void emit_along_rows(Emission& emission);   // tile after tile
void emit_across_rows(Emission& emission);  // group after group, a lane a row
void emit_split_rows(Emission& emission);   // one step of rows that threads share

}  // namespace lamina::cpu
