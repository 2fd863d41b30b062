// The checksum of zip archives.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace lamina::compiler {

// Of the parts, one after the other.
uint32_t crc32(std::span<const std::string_view> parts);

}  // namespace lamina::compiler
