// Tensors as pixels of lanes. A tensor whose channels are contiguous is used in place. Others are copied, as f32.
#pragma once

#include <array>
#include <cstdint>

#include "backends/cpu/dispatch/windows/lane_kernels.h"
#include "backends/cpu/program/window_work.h"

namespace lamina::cpu {

// Some channels of an image.
struct ChannelBlock {
  int64_t image, first, channels;
};

// Pixels of lanes in memory. Strides and `origin` are in elements.
struct LanePixels {
  char* data = nullptr;
  int64_t element_bytes = sizeof(float);
  std::array<int64_t, 3> strides{};
  int64_t origin = 0;  // is subtracted: the offset of the first pixel that exists

  int64_t line(int64_t d, int64_t h) const { return d * strides[0] + h * strides[1] - origin; }
  void* pixel(int64_t d, int64_t h, int64_t w) const { return data + (line(d, h) + w * strides[2]) * element_bytes; }
};

// Whether the tensor has pixels of f32 or bf16 with contiguous channels, and enough of them for kernels.
bool has_lanes(const ImageTensor& tensor);
LanePixels lanes_in_place(const ImageTensor& tensor, void* memory, const ChannelBlock& block);

// Copies have whole groups of lanes.
inline int64_t lanes_of_copy(int64_t channels) { return (channels + kMinLanes - 1) / kMinLanes * kMinLanes; }

// Contiguous pixels of a box, with `lanes` 32-bit numbers each.
inline LanePixels dense_lanes(void* data, const Box& box, int64_t lanes) {
  const int64_t rows = box[2].size() * lanes, planes = box[1].size() * rows;
  const int64_t origin = box[0].begin * planes + box[1].begin * rows + box[2].begin * lanes;
  return {static_cast<char*>(data), sizeof(float), {planes, rows, lanes}, origin};
}

// Copy between the tensor and a dense copy with lanes_of_copy(channels) lanes of f32 each. Lanes without a channel are 0.
void copy_to_lanes(const ImageTensor& tensor, const void* memory, const ChannelBlock& block, const Box& box, float* copy);
void copy_from_lanes(const ImageTensor& tensor, void* memory, const ChannelBlock& block, const Box& box, const float* copy);

}  // namespace lamina::cpu
