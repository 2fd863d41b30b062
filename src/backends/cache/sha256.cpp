#include "backends/cache/sha256.h"

#include <algorithm>
#include <cstring>

namespace lamina {

void Sha256Stream::update(std::string_view text) {
  if (text.empty()) return;  // memcpy takes no null pointer, not even for no bytes
  total_ += text.size();
  if (filled_ > 0) {
    const size_t taken = std::min(text.size(), block_.size() - filled_);
    std::memcpy(block_.data() + filled_, text.data(), taken);
    filled_ += taken;
    text.remove_prefix(taken);
    if (filled_ < block_.size()) return;
    add_sha256_blocks(state_, block_.data(), 1);
  }
  const size_t blocks = text.size() / block_.size();
  add_sha256_blocks(state_, reinterpret_cast<const uint8_t*>(text.data()), blocks);
  text.remove_prefix(blocks * block_.size());
  std::memcpy(block_.data(), text.data(), text.size());
  filled_ = text.size();
}

Sha256 Sha256Stream::finish() {
  const uint64_t bits = total_ * 8;
  update(std::string_view("\x80", 1));
  while (filled_ != block_.size() - sizeof(bits)) update(std::string_view("\0", 1));
  std::array<char, sizeof(bits)> length;
  for (size_t i = 0; i < length.size(); ++i) length[i] = static_cast<char>(bits >> (56 - 8 * i));
  update({length.data(), length.size()});
  Sha256 digest;
  for (size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

Sha256 sha256(std::string_view first, std::string_view second) {
  Sha256Stream hash;
  hash.update(first);
  hash.update(second);
  return hash.finish();
}

std::string hex_of(const Sha256& digest) {
  std::string digits;
  for (const uint8_t byte : digest) {
    for (const int shift : {4, 0}) digits += "0123456789abcdef"[byte >> shift & 15];
  }
  return digits;
}

std::string sha256_hex(std::string_view text) { return hex_of(sha256(text)); }

}  // namespace lamina
