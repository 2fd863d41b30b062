// `lamina ops`: the schemas in words, straight from their declarations.
#pragma once

#include <iosfwd>
#include <string>

namespace lamina::driver {

// All kinds, one a line, when `kind` is empty; else all of one schema. Throws Error(invalid_arguments) for an unknown kind.
void print_ops(std::ostream& out, const std::string& kind);

}  // namespace lamina::driver
