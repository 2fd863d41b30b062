// The fuzzer's bytes as a sequence of choices. After the last byte, every choice is 0.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lamina::fuzz {

class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : bytes_(reinterpret_cast<const char*>(data), size) {}

  bool is_at_end() const { return bytes_.empty(); }

  template <typename T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const size_t size = std::min(sizeof value, bytes_.size());
    std::memcpy(static_cast<void*>(&value), bytes_.data(), size);
    bytes_.remove_prefix(size);
    return value;
  }
  size_t below(size_t count) { return count == 0 ? 0 : take<uint8_t>() % count; }
  bool flip() { return (take<uint8_t>() & 1) != 0; }
  template <typename T>
  const T& pick(const std::vector<T>& list) {
    return list[below(list.size())];
  }
  std::string text(size_t most) {
    const size_t wanted = below(most + 1);  // choose before the remaining bytes are counted
    const size_t size = std::min(wanted, bytes_.size());
    const std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }
  std::string_view rest() const { return bytes_; }

  // Returns a dim or a stride: mostly small, sometimes near overflow.
  int64_t extent() {
    static const std::vector<int64_t> list = {
        1, 2, 3, 4, 5, 8, 16, 17, 0, 64, -1, INT64_MIN, INT64_MAX, int64_t{1} << 31, int64_t{1} << 62};
    const uint8_t byte = take<uint8_t>();
    return byte < 230 ? list[byte % 10] : list[byte % list.size()];
  }

 private:
  std::string_view bytes_;
};

// Checks a property of the fuzz target. A failure ends the process, so that the fuzzer stores the input.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: broken promise: %s\n", what);
  std::abort();
}

}  // namespace lamina::fuzz
