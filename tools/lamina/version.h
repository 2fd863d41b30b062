// The output of `lamina --version`.
#pragma once

#include <string>

namespace lamina::driver {

// Three lines: lamina's version, LLVM's version, and the backends in this build.
std::string version_text();

}  // namespace lamina::driver
