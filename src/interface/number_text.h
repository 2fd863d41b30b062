// Real numbers as text, independent of the locale. Streams and printf depend on the process's locale, so lamina uses neither
// for numbers.
#pragma once

#include <string>

namespace lamina {

std::string fixed_text(double value, int digits);    // as printf's %.3f for 3 digits
std::string general_text(double value, int digits);  // as printf's %.3g for 3 significant digits
std::string exact_text(double value);                // as printf's %a: hexadecimal and exact

}  // namespace lamina
