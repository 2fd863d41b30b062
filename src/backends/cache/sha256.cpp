#include "backends/cache/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace lamina {

namespace {

// FIPS 180-4.
constexpr std::array<uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

void Sha256Stream::update(std::string_view text) {
  if (text.empty()) return;  // memcpy takes no null pointer, not even for no bytes
  total_ += text.size();
  if (filled_ > 0) {
    const size_t taken = std::min(text.size(), block_.size() - filled_);
    std::memcpy(block_.data() + filled_, text.data(), taken);
    filled_ += taken;
    text.remove_prefix(taken);
    if (filled_ < block_.size()) return;
    add(block_.data());
  }
  for (; text.size() >= block_.size(); text.remove_prefix(block_.size())) add(reinterpret_cast<const uint8_t*>(text.data()));
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

void Sha256Stream::add(const uint8_t* block) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i)
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 | uint32_t{block[4 * i + 2]} << 8 | block[4 * i + 3];
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t first = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    const uint32_t second = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + first + w[i - 7] + second;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t choice = (e & f) ^ (~e & g), majority = (a & b) ^ (a & c) ^ (b & c);
    const uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + choice + kRoundConstants[i] + w[i];
    const uint32_t second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + majority;
    h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
  }
  const std::array<uint32_t, 8> added = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < state_.size(); ++i) state_[i] += added[i];
  filled_ = 0;
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
