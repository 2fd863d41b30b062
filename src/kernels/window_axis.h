// The dims of a convolution as a product (windowed_contraction.h).
#pragma once

#include <algorithm>
#include <cstdint>

namespace lamina::kernel {

// A dim and its stride in each tensor, in elements.
struct WindowDim {
  int64_t extent = 1;
  int64_t left = 0, right = 0, dst = 0, bias = 0;

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.extent), visit(self.left), visit(self.right), visit(self.dst), visit(self.bias);
  }
};

// A spatial axis is a dim of the rows and one of the terms. Both determine the pixel of left:
//   (row * per_row + term * per_term + first) / divisor
// There is none if the division leaves a remainder or the result is not in 0..pixels-1.
struct WindowAxis {
  int64_t rows = 1, terms = 1, pixels = 1;
  int64_t per_row = 1, per_term = 1, first = 0, divisor = 1;
  int64_t left = 0, right = 0, dst = 0;  // strides: per pixel, per term, per row

  // -1: none.
  int64_t pixel(int64_t row, int64_t term) const {
    const int64_t place = row * per_row + term * per_term + first;
    return place >= 0 && place % divisor == 0 && place / divisor < pixels ? place / divisor : -1;
  }
  // Of the dividends.
  int64_t lowest() const {
    return first + std::min<int64_t>(per_row * (rows - 1), 0) + std::min<int64_t>(per_term * (terms - 1), 0);
  }
  int64_t highest() const {
    return first + std::max<int64_t>(per_row * (rows - 1), 0) + std::max<int64_t>(per_term * (terms - 1), 0);
  }

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.rows), visit(self.terms), visit(self.pixels), visit(self.per_row), visit(self.per_term), visit(self.first);
    visit(self.divisor), visit(self.left), visit(self.right), visit(self.dst);
  }
};

}  // namespace lamina::kernel
