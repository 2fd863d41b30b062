// The function from which weight gradients of convolutions of each channel by itself are made (TapTileFunction).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/kernel_ir.h"

namespace lamina::cpu {

// What the code depends on. Its sums stay in registers: for each tap of some rows of taps, those of some vectors of channels.
struct TapTile {
  kernel::Type type = kernel::Type::f32;  // of all elements: f32 or f64
  int vector_bits = 512;
  int vectors = 1;
  int last_lanes = 0;  // both tensors have only these first channels of the last vector; 0: all
  int rows = 1, taps = 1;
  int before = 0, after = 0;  // positions at the ends of a line for which some taps are outside of the image
  // For each of these positions, and then for each tap: whether it is inside of the image. Else nothing is added.
  std::vector<bool> inside = {};

  bool is_inside(int position, int tap) const { return inside[static_cast<size_t>(position * taps + tap)]; }
};

std::string describe(const TapTile& tile);

}  // namespace lamina::cpu
