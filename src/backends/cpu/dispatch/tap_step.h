// The weight gradient of a convolution of each channel by itself (depthwise) as a step: the sum of each tap over all positions,
// for vectors of channels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/dispatch/matrix_copy.h"
#include "backends/cpu/dispatch/primitive.h"
#include "backends/cpu/program/compiled_code.h"
#include "backends/cpu/program/program_writer.h"
#include "backends/cpu/program/window_program.h"
#include "backends/cpu/threads/executor.h"

namespace lamina::cpu {

// The functions for a number of rows of taps (TapTileFunction).
struct TapCode {
  CompiledCode whole;  // TapProgram::vectors; none if there are fewer channels
  CompiledCode last;   // the channels after those; none if there are none
};

struct TapCopies {
  MatrixCopy left, right, dst;
};

class TapStep final : public Primitive {
 public:
  // `code`: of TapProgram::rows rows of taps, then of those that are left if there are any.
  TapStep(TapProgram program, std::vector<TapCode> code, TapCopies copies, std::string name);
  // Of a step with this number of args.
  static std::unique_ptr<const TapStep> read(ProgramReader& from, size_t args);

  const std::string& name() const override { return name_; }
  size_t scratch_bytes() const override { return static_cast<size_t>(c_.threads) * thread_bytes_; }
  void run(std::span<void* const> args, void* scratch, const Executor& executor) const override;
  void write(ProgramWriter& to) const override;

  // The elements of an image, or its positions, of one channel: extents and strides, in elements.
  struct Grid {
    std::vector<int64_t> extents, strides;
  };

 private:
  // Memory of a thread: the sums, copies of an image and its positions.
  struct Scratch {
    char *sums, *image, *positions;
  };
  struct Channels {
    int64_t first, count;
  };
  struct Image {
    const char *left, *right;
  };
  Scratch scratch_of(void* scratch, int thread) const;
  int64_t width() const { return c_.vectors * c_.lanes; }
  int64_t bytes_of_sums(int64_t channels) const;  // of a tap, in tiles of this number of channels
  Image copied(Image given, int64_t channels, const Scratch& own) const;
  void add(Image image, int64_t channels, char* sums) const;
  int64_t pixel_of(int64_t row, int64_t line) const;
  void store(const Channels& channels, char* sums, char* dst) const;

  const TapProgram c_;
  const std::vector<TapCode> code_;
  const TapCopies copies_;
  const std::string name_;
  int64_t rows_ = 1, lines_ = 1;        // of taps, of positions
  std::vector<int64_t> pixel_strides_;  // along each axis, in bytes, as tiles read it
  Grid image_, places_;                 // that are copied
  std::vector<int64_t> pixels_;         // TapTileFunction's, of all tiles of rows
  int64_t line_ = 0, position_ = 0;     // distances of positions, in bytes, as tiles read them
  size_t sums_bytes_ = 0, image_bytes_ = 0, positions_bytes_ = 0, thread_bytes_ = 0;
};

}  // namespace lamina::cpu
