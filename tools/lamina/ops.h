// `lamina ops`: prints the schemas in words.
#pragma once

#include <iosfwd>
#include <string>

namespace lamina::driver {

// Prints all kinds, one per line, if `kind` is empty; else one whole schema. Throws Error(invalid_arguments) for an unknown
// kind.
void print_ops(std::ostream& out, const std::string& kind);

}  // namespace lamina::driver
