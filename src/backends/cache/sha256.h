// SHA-256, for keys of caches and digests of files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "backends/cache/sha256_blocks.h"

namespace lamina {

using Sha256 = std::array<uint8_t, 32>;

// Of texts that are added one after the other.
class Sha256Stream {
 public:
  void update(std::string_view text);
  Sha256 finish();  // once

 private:
  Sha256State state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> block_ = {};
  size_t filled_ = 0;
  uint64_t total_ = 0;
};

std::string hex_of(const Sha256& digest);  // 64 digits

Sha256 sha256(std::string_view first, std::string_view second = {});  // of both, concatenated
std::string sha256_hex(std::string_view text);                        // as digits

}  // namespace lamina
