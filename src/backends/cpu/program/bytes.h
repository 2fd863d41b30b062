// Values as bytes: numbers in few bytes, the same on every machine. A struct lists its fields once, in for_each_field, for both
// directions.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "interface/data_type.h"
#include "interface/status.h"

namespace lamina::cpu {

// The largest enumerator of an enumeration whose values begin at 0 and are contiguous; readers refuse others. DataType is
// checked by is_data_type.
template <typename Enumeration>
inline constexpr int kLastEnumerator = -1;

class ByteWriter {
 public:
  template <typename T>
  void write(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      bytes_.push_back(value ? 1 : 0);
    } else if constexpr (std::is_enum_v<T>) {
      write(static_cast<int64_t>(value));
    } else if constexpr (std::integral<T>) {
      write_integer(static_cast<int64_t>(value));
    } else if constexpr (std::is_same_v<T, float>) {
      write_word(std::bit_cast<uint32_t>(value), sizeof(float));
    } else if constexpr (std::is_same_v<T, std::string>) {
      write(value.size());
      bytes_ += value;
    } else {
      write_fields(value);
    }
  }
  template <typename T>
  void write(const std::vector<T>& values) {
    write(values.size());
    for (const auto& value : values) write(static_cast<const T&>(value));
  }
  template <typename T>
  void write(const std::optional<T>& value) {
    write(value.has_value());
    if (value) write(*value);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  template <typename T>
  void write_fields(const T& value) {
    T::for_each_field(value, [this](const auto& field) { write(field); });
  }
  // Seven bits a byte; small magnitudes are short, for both signs.
  void write_integer(int64_t value) {
    auto rest = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
    for (; rest >= 128; rest >>= 7) bytes_.push_back(static_cast<char>(rest | 128));
    bytes_.push_back(static_cast<char>(rest));
  }
  void write_word(uint64_t word, size_t size) {
    for (size_t i = 0; i < size; ++i) bytes_.push_back(static_cast<char>(word >> (8 * i)));
  }

  std::string bytes_;
};

// Throws Error(invalid_arguments) for bytes that no ByteWriter has written. It never reads past the end, and allocates at most
// in proportion to the bytes that there are.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  bool is_at_end() const { return rest_.empty(); }

  template <typename T>
  void read(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      const auto byte = static_cast<uint8_t>(take(1).front());
      if (byte > 1) fail("a truth value");
      value = byte == 1;
    } else if constexpr (std::is_same_v<T, DataType>) {
      value = static_cast<DataType>(read_integer(0, std::numeric_limits<int>::max()));
      if (value != DataType::undef && !is_data_type(value)) fail("a data type");
    } else if constexpr (std::is_enum_v<T>) {
      static_assert(kLastEnumerator<T> >= 0, "readers must know the range of an enumeration");
      value = static_cast<T>(read_integer(0, kLastEnumerator<T>));
    } else if constexpr (std::integral<T>) {
      constexpr int64_t kLeast = std::is_signed_v<T> ? static_cast<int64_t>(std::numeric_limits<T>::min()) : 0;
      constexpr int64_t kMost =
          sizeof(T) == 8 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(std::numeric_limits<T>::max());
      value = static_cast<T>(read_integer(kLeast, kMost));
    } else if constexpr (std::is_same_v<T, float>) {
      value = std::bit_cast<float>(static_cast<uint32_t>(read_word(sizeof(float))));
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = take(read_count());
    } else {
      T::for_each_field(value, [this](auto& field) { read(field); });
    }
  }
  template <typename T>
  void read(std::vector<T>& values) {
    const size_t count = read_count();
    values.clear();
    values.reserve(std::min(count, kReserved));
    for (size_t i = 0; i < count; ++i) {
      T value{};
      read(value);
      values.push_back(std::move(value));
    }
  }
  template <typename T>
  void read(std::optional<T>& value) {
    bool is_present = false;
    read(is_present);
    value.reset();
    if (!is_present) return;
    value = T{};  // clang does not see that emplace() could make a nested class with initializers
    read(*value);
  }
  template <typename T>
  T get() {
    T value{};
    read(value);
    return value;
  }
  // The number of elements that follow, each of at least a byte.
  size_t read_count() { return static_cast<size_t>(read_integer(0, static_cast<int64_t>(rest_.size()))); }

  [[noreturn]] static void fail(const char* expected) {
    throw Error(Status::invalid_arguments, join("the program is damaged: ", expected, " was expected"));
  }

 private:
  static constexpr size_t kReserved = 1024;  // so that a wrong count takes no memory

  std::string_view take(size_t size) {
    if (size > rest_.size()) fail("more data");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  int64_t read_integer(int64_t least, int64_t most) {
    uint64_t bits = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1).front());
      if (shift == 63 && byte > 1) fail("a number of 64 bits");
      bits |= uint64_t{byte & 127U} << shift;
      if (byte < 128) break;
    }
    const auto value = static_cast<int64_t>((bits >> 1) ^ (~(bits & 1) + 1));
    if (value < least || value > most) fail("a smaller number");
    return value;
  }
  uint64_t read_word(size_t size) {
    uint64_t word = 0;
    const std::string_view bytes = take(size);
    for (size_t i = 0; i < size; ++i) word |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
    return word;
  }

  std::string_view rest_;
};

}  // namespace lamina::cpu
