// The function from which convolutions are made that go along lines of an image (LineTileFunction).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backends/cpu/product/result_map.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

// What the code depends on. Its sums stay in registers: for each pixel, those of some vectors of columns (channels of dst).
struct LineTile {
  kernel::Type type = kernel::Type::f32;  // of all elements: f32 or f64
  int vector_bits = 512;
  int vectors = 1;
  int last_lanes = 0;  // src, dst and the bias have only these first columns of the last vector; 0: all
  int pixels = 1, terms = 1;
  int channels = 1;            // of src, for each term of a line; of dense tiles LineStrides has them
  bool is_shared = false;      // all columns of dst multiply the same elements of src
  int columns_of_channel = 1;  // else the number of successive ones with the same channel of src; a divisor of the lanes
  bool is_dense = false;       // of many channels: pixels outside of the image are left out; the next weights are prefetched
  // For each pixel, and then for each term: whether it is inside of the image. Else a 0 is multiplied.
  std::vector<bool> inside = {};
  ResultMap map = {};

  bool is_inside(int pixel, int term) const { return inside[static_cast<size_t>(pixel * terms + term)]; }
};

std::string describe(const LineTile& tile);

}  // namespace lamina::cpu
