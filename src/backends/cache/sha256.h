// SHA-256. LLVM computes it, but callers do not depend on LLVM.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace lamina {

using Sha256 = std::array<uint8_t, 32>;

Sha256 sha256(std::string_view first, std::string_view second = {});  // of both, concatenated
std::string sha256_hex(std::string_view text);                        // 64 digits

}  // namespace lamina
