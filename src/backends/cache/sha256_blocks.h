// The compression function of SHA-256 (FIPS 180-4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lamina {

using Sha256State = std::array<uint32_t, 8>;

// Adds blocks of 64 bytes by the fastest way of this machine.
void add_sha256_blocks(Sha256State& state, const uint8_t* blocks, size_t count);

// The same in portable code.
void add_sha256_blocks_portably(Sha256State& state, const uint8_t* blocks, size_t count);

}  // namespace lamina
