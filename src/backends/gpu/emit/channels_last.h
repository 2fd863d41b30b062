// Copies of a convolution's factors in scratch memory with their channels last.
//
// Matrix instructions take factors from local memory, to which chunks of eight neighbours are copied at once
// (window_factors.h). In NCX the channels of a pixel are no neighbours, nor are the input channels of a tap in OIX. Then a
// program may begin with a function that copies the factor to scratch memory as [sample][pixel][channel], by tiles through
// local memory, so that it reads neighbouring pixels and writes neighbouring channels. The sums read the copy in place of the
// factor. They are the same sums in the same order, so a copy decides no bits.
//
// A *pixel* is a place along the axes, and of weights a tap; a *sample* is an entry along the remaining dim.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/gpu/emit/library_program.h"
#include "backends/gpu/emit/text.h"
#include "kernels/windowed_contraction.h"

namespace lamina::gpu {

// Which factors are copied.
struct FactorCopies {
  bool left = false, right = false;
  bool operator==(const FactorCopies&) const = default;
};

// Those whose chunks are copied at once from the copy only.
FactorCopies copies_that_make_chunks(const kernel::WindowedContraction& contraction);

// Of these, those that take less time than sums in `tile` take longer without.
FactorCopies copies_that_save_time(const kernel::WindowedContraction& contraction, int tile_rows, int tile_columns);

// The sums that read the copies.
kernel::WindowedContraction with_copies(const kernel::WindowedContraction& contraction, const FactorCopies& copies);

class ChannelsLastCopy {
 public:
  ChannelsLastCopy(const kernel::WindowedContraction& contraction, bool of_left);

  int64_t elements() const { return sample_count_ * bytes_of_sample() / 2; }
  int64_t bytes() const { return sample_count_ * bytes_of_sample(); }
  // The same in the text, where the number of samples of a batch is a word.
  std::string bytes_in_text() const;
  Launch launch() const;
  static int resident_groups();  // on a multiprocessor, at least

  bool of_left() const { return of_left_; }
  std::string symbol(const std::string& of_program) const {
    return of_program + (of_left_ ? "_copy_of_left" : "_copy_of_right");
  }
  // The function's statements. `from`, `to`: pointers to bytes, as text.
  void emit(Text& out, const std::string& from, const std::string& to) const;
  // Replaces the strides of the factor by those of its copy.
  void apply(kernel::WindowedContraction& contraction) const;

 private:
  struct Pixels {
    int64_t extent, stride;
  };

  int64_t pixel_count() const;
  int64_t bytes_of_sample() const { return pixel_count() * channels_ * 2; }
  // Of a tile: chunks of the channels, and pixels.
  int tile_chunks() const;
  int tile_pixels() const;
  std::string place_in_tile(const char* pixel, const char* chunk) const;

  bool of_left_;
  std::string samples_;  // their number, as text
  int64_t sample_count_, stride_of_samples_;
  std::vector<Pixels> pixels_;
  int64_t channels_, stride_of_channels_;  // of all groups
};

}  // namespace lamina::gpu
