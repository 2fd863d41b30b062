// Loads and stores of elements by index, in memory of any alignment.
#pragma once

#include <cstdint>
#include <cstring>

namespace lamina {

template <typename T>
T load_element(const void* data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void store_element(void* data, int64_t index, T value) {
  std::memcpy(static_cast<char*>(data) + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace lamina
