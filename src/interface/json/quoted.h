#pragma once

#include <string>
#include <string_view>

namespace lamina::json {

// A string as JSON has it. Bytes that are no UTF-8 become U+FFFD, so that what is written can be read.
std::string quoted(std::string_view text);

}  // namespace lamina::json
