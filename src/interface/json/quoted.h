#pragma once

#include <string>
#include <string_view>

namespace lamina::json {

// A string literal in JSON. Bytes that are not UTF-8 become U+FFFD, so that readers accept the output.
std::string quoted(std::string_view text);

}  // namespace lamina::json
