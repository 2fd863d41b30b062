// The tensors of one problem: rows x columns, filled once and shared by all contenders; each contender has outputs of its own,
// so that results can be compared.
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

// Where tensors lie. Caches and prefetchers treat them differently, and users have all of these.
enum class Memory {
  as_given,     // they begin at a multiple of 2 MiB; pages as the system's policy has it (machine.h tells it)
  huge_pages,   // the same, and pages of 2 MiB are asked for
  small_pages,  // pages of 4 KiB, and each begins one
  lines,        // pages of 4 KiB, and each begins somewhere in one, with a line of 64 bytes, as an allocator's memory does
};
inline constexpr Memory kMemories[] = {Memory::as_given, Memory::huge_pages, Memory::small_pages, Memory::lines};
const char* name_of(Memory memory);

struct Unmap {
  size_t bytes = 0;
  void operator()(void* memory) const;
};

// Touched by the threads that will work on it. Throws std::system_error where the system refuses such pages.
class Buffer {
 public:
  explicit Buffer(size_t bytes, Memory memory = Memory::as_given);
  void* data() const { return data_; }

 private:
  std::unique_ptr<void, Unmap> mapping_;
  void* data_;
};

// What all contenders read.
struct Inputs {
  explicit Inputs(const Problem& problem, Memory memory = Memory::as_given);
  Buffer src, other, diff_dst, gamma, beta, mean, variance;
};

// What each writes.
struct Outputs {
  explicit Outputs(const Problem& problem, Memory memory = Memory::as_given);
  Buffer big, sum;                   // dst or diff_src; the sum that a residual Add keeps
  Buffer first_small, second_small;  // mean, variance; or diff_gamma, diff_beta
};

// Largest |a - b| / max(1, |b|) of `count` elements; a NaN on one side alone counts as infinite.
double largest_difference(Type type, const Buffer& a, const Buffer& b, size_t count);
// Largest |a - b| over the largest |b|: for column sums, whose size grows with the rows.
double difference_in_norm(Type type, const Buffer& a, const Buffer& b, size_t count);

// Puts other data than the tensors' into every cache, so that the next run has to fetch from memory.
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
