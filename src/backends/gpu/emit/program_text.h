// The text before a generated kernel: the prelude of the language, the mathematics of the dialect that the kernel needs, and
// the reductions over teams.
#pragma once

#include <string>

#include "backends/gpu/emit/emit_kernel.h"

namespace lamina::gpu {

// `wide`: with double.
std::string program_prelude(const kernel::Kernel& kernel, const Schedule& schedule, const Language& language, bool wide,
                            bool aligned, bool disjoint);

// For a program that loads, converts and stores single elements, and whose outputs do not share memory with inputs. `wide`:
// with double, else in f32.
std::string conversions_prelude(const Language& language, bool wide = false);

// Texts that the build embeds from the files with the same names.
namespace text {
extern const char kPrelude[];
extern const char kTeams[];
extern const char kReal[];
}  // namespace text

}  // namespace lamina::gpu
