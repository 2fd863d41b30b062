// Inputs that depend on their types, shapes and places only, and digests of results: the same on every machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "graph/lamina_runtime.hpp"

namespace digest {

struct TypeFacts {
  int bits;
  bool is_float;
};

inline TypeFacts facts_of(lamina::runtime::data_type dtype) {
  constexpr bool real = true, small_float = true, signed_integer = false, unsigned_integer = false, boolean = false;
  switch (dtype) {
#define LAMINA_DATA_TYPE(name, value, bits, kind, npy) \
  case lamina_runtime_##name: return {bits, kind};
#include "graph/data_types.def"
    default: return {0, false};
  }
}

inline size_t bytes_of(const lamina::runtime::tensor& tensor) {
  int64_t last = 0;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] == 0) return 0;
    last += (tensor.shape[d] - 1) * tensor.strides[d];
  }
  return static_cast<size_t>((last + 1) * facts_of(tensor.dtype).bits + 7) / 8;
}

inline uint64_t next(uint64_t& state) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  return state >> 33;
}

// Floats between -1 and 1, or positive ones, as variances are. Integers of whole bytes are 0 or 1, which are legal indices.
inline void fill(const lamina::runtime::tensor& tensor, bool is_positive, std::vector<char>& memory, uint64_t& state) {
  const TypeFacts facts = facts_of(tensor.dtype);
  const size_t bytes = facts.bits < 8 ? 1 : static_cast<size_t>(facts.bits) / 8;
  for (size_t at = 0; at + bytes <= memory.size(); at += bytes) {
    const uint64_t random = next(state);
    uint64_t word = facts.bits < 8 ? random & 255 : random & 1;
    const double value = static_cast<double>((random & 0xFFFF) + 1) / 32768.0 - (is_positive ? 0 : 1);
    const auto narrow = static_cast<float>(value);
    if (tensor.dtype == lamina_runtime_f64)
      std::memcpy(&word, &value, sizeof value);
    else if (tensor.dtype == lamina_runtime_f32)
      std::memcpy(&word, &narrow, sizeof narrow);
    else if (tensor.dtype == lamina_runtime_f16)
      word = 0x3000 + (random & (is_positive ? 0x0FFF : 0x8FFF));
    else if (tensor.dtype == lamina_runtime_bf16)
      word = 0x3F00 + (random & (is_positive ? 0x00FF : 0x80FF));
    else if (facts.is_float)
      word = 0x20 + (random & (is_positive ? 0x1F : 0x9F));
    std::memcpy(memory.data() + at, &word, bytes);
  }
}

// The memory of each input.
inline std::vector<std::vector<char>> filled(const std::vector<lamina::runtime::tensor>& inputs) {
  uint64_t state = 1;
  int64_t largest = 0;
  for (const lamina::runtime::tensor& input : inputs) largest = std::max(largest, input.size());
  std::vector<std::vector<char>> memory;
  for (const lamina::runtime::tensor& input : inputs)
    fill(input, input.size() < largest, memory.emplace_back(bytes_of(input)), state);
  return memory;
}

// FNV-1a
inline uint64_t digest_of(const char* memory, size_t bytes) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<unsigned char>(memory[i])) * 0x100000001b3U;
  return hash;
}

}  // namespace digest
