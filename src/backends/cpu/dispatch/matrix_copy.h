// Copies matrices of floats, and converts their elements.
#pragma once

#include <cstdint>
#include <utility>

#include "backends/cpu/program/compiled_code.h"

namespace lamina::cpu {

// Distances between elements, in bytes.
struct Steps {
  int64_t row, column;
};

class MatrixCopy {
 public:
  MatrixCopy() = default;
  // Bytes of an element. `convert`: a RowConversionFunction; none if the types are equal.
  MatrixCopy(int64_t from_bytes, int64_t to_bytes, CompiledCode convert)
      : from_bytes_(from_bytes), to_bytes_(to_bytes), convert_(std::move(convert)) {}

  // If the types differ, the columns of the wider matrix are contiguous. If that is `from`, its memory is overwritten.
  void operator()(char* from, Steps from_steps, char* to, Steps to_steps, int64_t rows, int64_t columns) const;
  // If the elements do not become narrower.
  void operator()(const char* from, Steps from_steps, char* to, Steps to_steps, int64_t rows, int64_t columns) const {
    (*this)(const_cast<char*>(from), from_steps, to, to_steps, rows, columns);
  }

  void write(ProgramWriter& to) const;
  static MatrixCopy read(ProgramReader& from);

 private:
  int64_t from_bytes_ = 0, to_bytes_ = 0;  // of an element
  CompiledCode convert_;                   // none if the types are equal
};

// Copies sums of integers to dst.
class ScaledCopy {
 public:
  ScaledCopy() = default;
  // `scale`: a ScaledRowFunction.
  ScaledCopy(int64_t to_bytes, CompiledCode scale) : to_bytes_(to_bytes), scale_(std::move(scale)) {}

  // `bias`: a row per row, `bias_row` bytes apart; or null. Overwrites the sums.
  void operator()(char* sums, int64_t sums_row, const float* scales, const char* bias, int64_t bias_row, char* to,
                  Steps to_steps, int64_t rows, int64_t columns) const;

  void write(ProgramWriter& to) const;
  static ScaledCopy read(ProgramReader& from);

 private:
  int64_t to_bytes_ = 0;
  CompiledCode scale_;
};

}  // namespace lamina::cpu
