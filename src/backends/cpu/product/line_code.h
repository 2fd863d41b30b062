// The function from which convolutions are made that go along lines of an image (LineTileFunction).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backends/cpu/product/result_map.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

// Which channels of src a column of dst multiplies.
enum class LineKind {
  depthwise,     // its own, or one that it shares with neighbours: columns_of_channel together
  few_channels,  // all
  dense          // all, which are many: pixels outside of the image are left out; the next weights are prefetched
};

// What the code depends on. Its sums stay in registers: for each pixel, those of some vectors of columns (channels of dst).
struct LineTile {
  kernel::Type type = kernel::Type::f32;  // of all elements: f32 or f64
  int vector_bits = 512;
  int vectors = 1;
  int last_lanes = 0;  // src, dst and the bias have only these first columns of the last vector; 0: all
  int pixels = 1, terms = 1;
  LineKind kind = LineKind::depthwise;
  int channels = 1;            // of src, where they are few; of dense tiles LineStrides has them
  int columns_of_channel = 1;  // a divisor of the lanes
  // Of depthwise tiles: the terms from the first one of a pixel to that of the next pixel, if each pixel of src is loaded once
  // for all its terms; else 0.
  int pixel_terms = 0;
  // For each pixel, and then for each term: whether it is inside of the image. Else a 0 is multiplied.
  std::vector<bool> inside = {};
  ResultMap map = {};

  bool is_depthwise() const { return kind == LineKind::depthwise; }
  bool is_dense() const { return kind == LineKind::dense; }
  bool is_inside(int pixel, int term) const { return inside[static_cast<size_t>(pixel * terms + term)]; }
};

std::string describe(const LineTile& tile);

}  // namespace lamina::cpu
