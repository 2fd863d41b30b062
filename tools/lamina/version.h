// `lamina --version`.
#pragma once

#include <string>

namespace lamina::driver {

// Three lines: lamina's own version, LLVM's, and the backends that were built.
std::string version_text();

}  // namespace lamina::driver
