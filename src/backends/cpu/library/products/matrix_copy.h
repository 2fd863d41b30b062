// Copies matrices of floats, and converts their elements.
#pragma once

#include <cstdint>

#include "backends/cpu/code/jit.h"
#include "backends/cpu/schedule/machine.h"
#include "interface/data_type.h"

namespace lamina::cpu {

// Distances between elements, in bytes.
struct Steps {
  int64_t row, column;
};

class MatrixCopy {
 public:
  MatrixCopy() = default;
  // The types are equal, or one of them is f32 and the other one has 16 bits.
  MatrixCopy(DataType from, DataType to, const Machine& machine, int vector_bits);
  // From u8 or s8 to integers of 16 bits, without the zero point.
  static MatrixCopy of_integers(DataType from, int32_t zero_point, const Machine& machine, int vector_bits);

  // If the types differ, the columns of the wider matrix are contiguous. If that is `from`, its memory is overwritten.
  void operator()(char* from, Steps from_steps, char* to, Steps to_steps, int64_t rows, int64_t columns) const;
  // If the elements do not become narrower.
  void operator()(const char* from, Steps from_steps, char* to, Steps to_steps, int64_t rows, int64_t columns) const {
    (*this)(const_cast<char*>(from), from_steps, to, to_steps, rows, columns);
  }

 private:
  int64_t from_bytes_ = 0, to_bytes_ = 0;  // of an element
  CompiledCode convert_;                   // null if the types are equal
};

// Copies sums of integers to dst.
class ScaledCopy {
 public:
  ScaledCopy() = default;
  ScaledCopy(DataType to, bool has_one_scale, const Machine& machine, int vector_bits);

  // `bias`: a row per row, `bias_row` bytes apart; or null. Overwrites the sums.
  void operator()(char* sums, int64_t sums_row, const float* scales, const char* bias, int64_t bias_row, char* to,
                  Steps to_steps, int64_t rows, int64_t columns) const;

 private:
  int64_t to_bytes_ = 0;
  CompiledCode scale_;
};

}  // namespace lamina::cpu
