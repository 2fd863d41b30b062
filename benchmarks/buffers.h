// The tensors of one problem with rows x columns elements. Inputs are filled once and shared by all contenders. Each
// contender has separate outputs, so that results can be compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace bench {

enum class Type { f32, bf16, f16, f64, s8 };
size_t bytes_of(Type type);
const char* name_of(Type type);

struct Problem {
  int64_t rows, columns;
  Type type;
  size_t count() const { return static_cast<size_t>(rows * columns); }
  size_t bytes() const { return count() * bytes_of(type); }                      // of one big tensor
  Type small_type() const { return type == Type::f64 ? Type::f64 : Type::f32; }  // of gamma, beta, statistics, column sums
  size_t column_bytes() const { return static_cast<size_t>(columns) * bytes_of(small_type()); }  // of gamma, beta, a column sum
};
std::string describe(const Problem& problem);  // "f32 4096x768"

// The placement of tensors in memory. Caches and prefetchers treat these cases differently, and all of them occur.
enum class Memory {
  as_given,     // starts at a multiple of 2 MiB; page size by the system's policy (reported by machine.h)
  huge_pages,   // the same, and requests pages of 2 MiB
  small_pages,  // pages of 4 KiB; each tensor starts at one
  lines,        // pages of 4 KiB; each tensor starts at some cache line in a page, as memory from an allocator does
};
inline constexpr Memory kMemories[] = {Memory::as_given, Memory::huge_pages, Memory::small_pages, Memory::lines};
const char* name_of(Memory memory);

struct Unmap {
  size_t bytes = 0;
  void operator()(void* memory) const;
};

// The threads that will use the memory touch it first. Throws std::system_error if the system refuses such pages.
class Buffer {
 public:
  explicit Buffer(size_t bytes, Memory memory = Memory::as_given);
  void* data() const { return data_; }

 private:
  std::unique_ptr<void, Unmap> mapping_;
  void* data_;
};

// The inputs of all contenders.
struct Inputs {
  explicit Inputs(const Problem& problem, Memory memory = Memory::as_given);
  Buffer src, other, diff_dst, gamma, beta, mean, variance;
};

// The outputs of one contender.
struct Outputs {
  explicit Outputs(const Problem& problem, Memory memory = Memory::as_given);
  Buffer big, sum;                   // dst or diff_src; the sum that a residual Add stores
  Buffer first_small, second_small;  // mean, variance; or diff_gamma, diff_beta
};

// The largest |a - b| / max(1, |b|) of `count` elements. A NaN on only one side counts as infinite.
double largest_difference(Type type, const Buffer& a, const Buffer& b, size_t count);
// The largest |a - b| divided by the largest |b|, for column sums, whose size grows with the number of rows.
double difference_in_norm(Type type, const Buffer& a, const Buffer& b, size_t count);

// Fills every cache with other data, so that the next run reads from memory.
class Evictor {
 public:
  Evictor();
  void operator()();

 private:
  size_t bytes_;  // twice the last-level cache
  Buffer buffer_;
  float sum_ = 0;
};

}  // namespace bench
