// Real numbers as text, the same in every locale. What streams and printf write follows the locale of the process, so lamina
// uses neither for numbers.
#pragma once

#include <string>

namespace lamina {

std::string fixed_text(double value, int digits);    // printf's %.3f for 3 digits
std::string general_text(double value, int digits);  // printf's %.3g: so many significant digits
std::string exact_text(double value);                // printf's %a: hexadecimal, no bit is lost

}  // namespace lamina
