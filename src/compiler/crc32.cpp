#include "compiler/crc32.h"

#include <array>
#include <cstddef>

namespace lamina::compiler {

namespace {

constexpr size_t kBytes = 8;  // at a time

// tables[n][byte]: the remainder of a byte that n bytes follow.
using Tables = std::array<std::array<uint32_t, 256>, kBytes>;

Tables made_tables() {
  Tables tables;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ ((rest & 1) != 0 ? 0xEDB88320U : 0);
    tables[0][byte] = rest;
  }
  for (size_t n = 1; n < kBytes; ++n) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[n - 1][byte];
      tables[n][byte] = tables[0][before & 255] ^ before >> 8;
    }
  }
  return tables;
}

}  // namespace

uint32_t crc32(std::span<const std::string_view> parts) {
  static const Tables tables = made_tables();
  uint32_t crc = 0xFFFFFFFF;
  for (const std::string_view part : parts) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(part.data());
    size_t left = part.size();
    for (; left >= kBytes; left -= kBytes, bytes += kBytes) {
      uint32_t next = 0;
      for (size_t i = 0; i < kBytes; ++i) {
        const uint8_t of_crc = i < 4 ? static_cast<uint8_t>(crc >> (8 * i)) : 0;
        next ^= tables[kBytes - 1 - i][bytes[i] ^ of_crc];
      }
      crc = next;
    }
    for (; left > 0; --left, ++bytes) crc = tables[0][(crc ^ *bytes) & 255] ^ crc >> 8;
  }
  return ~crc;
}

}  // namespace lamina::compiler
