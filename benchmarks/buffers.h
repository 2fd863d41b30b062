// The tensors of one problem: rows x columns, f32 or bf16, filled once and shared by all contenders; each contender has outputs
// of its own, so that results can be compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace bench {

enum class Type { f32, bf16 };
inline size_t bytes_of(Type type) { return type == Type::f32 ? 4 : 2; }

struct Problem {
  int64_t rows, columns;
  Type type;
  size_t count() const { return static_cast<size_t>(rows * columns); }
  size_t bytes() const { return count() * bytes_of(type); }  // of one big tensor
};
std::string describe(const Problem& problem);  // "f32 4096x768"

// Memory on a huge-page-friendly boundary, touched by the threads that will work on it.
class Buffer {
 public:
  explicit Buffer(size_t bytes);
  void* data() const { return memory_.get(); }
  float* floats() const { return static_cast<float*>(memory_.get()); }

 private:
  struct Release {
    void operator()(void* memory) const;
  };
  std::unique_ptr<void, Release> memory_;
};

// What all contenders read. gamma, beta, mean and variance are f32.
struct Inputs {
  explicit Inputs(const Problem& problem);
  Buffer src, other, diff_dst, gamma, beta, mean, variance;
};

// What each writes.
struct Outputs {
  explicit Outputs(const Problem& problem);
  Buffer big, first_small, second_small;  // dst, mean, variance; or diff_src, diff_gamma, diff_beta
};

// Largest |a - b| / max(1, |b|) over the big tensors.
double difference(const Problem& problem, const Outputs& a, const Outputs& b);

}  // namespace bench
