#include "backends/cpu/dispatch/windows/window_tiles.h"

#include <algorithm>

namespace lamina::cpu {

namespace {

constexpr int64_t kTileBytes = 512 << 10;   // that a tile reads and writes: they stay in a second-level cache
constexpr int64_t kTileChannels = 256;      // per tile, if channels are contiguous
constexpr int64_t kTurnedChannels = 64;     // per tile, if they are transposed
constexpr int64_t kThreadBytes = 64 << 10;  // of work that justifies another thread

template <typename Property>
bool all_tensors(const WindowWork& work, const Property& property) {
  return property(work.input.tensor) && property(work.output.tensor) && (!work.has_image() || property(work.image.tensor));
}

int64_t channels_of_a_block(const WindowWork& work) {
  const bool together = all_tensors(work, [](const ImageTensor& tensor) { return tensor.channel_stride == 1; });
  return together ? kTileChannels : kTurnedChannels;
}

Box inputs_of(const Taps& taps, const Box& outputs) {
  return {taps[0].inputs_of(outputs[0]), taps[1].inputs_of(outputs[1]), taps[2].inputs_of(outputs[2])};
}

Slab slab_of(const WindowWork& work, const Box& output) {
  Slab slab{output, inputs_of(work.taps, output), {}};
  if (work.has_image()) slab.image = inputs_of(work.windows, slab.input);
  return slab;
}

int64_t channel_bytes(const Slab& slab) {
  return (pixel_count(slab.output) + pixel_count(slab.input) + pixel_count(slab.image)) * int64_t{sizeof(float)};
}

// Whole windows for a gradient, if possible: windows that two slabs read are searched for their maximum twice.
int64_t slab_thickness(const WindowWork& work, size_t axis, int64_t image_bytes) {
  const int64_t extent = work.output.tensor.extents[axis],
                step = std::max<int64_t>(1, extent / work.input.tensor.extents[axis]);
  const int64_t most = extent * kTileBytes / image_bytes;
  return std::clamp(most / step * step, std::min(step, extent), extent);
}

}  // namespace

bool has_lanes(const WindowWork& work) {
  const DataType dtype = work.output.tensor.dtype;
  return all_tensors(work, [&](const ImageTensor& tensor) { return has_lanes(tensor) && tensor.dtype == dtype; });
}

WindowTiles::WindowTiles(const WindowWork& work, bool in_place)
    : images_(work.output.tensor.images),
      channels_(work.output.tensor.channels),
      block_channels_(std::min(channels_of_a_block(work), channels_)),
      blocks_(in_place ? channels_ / block_channels_ : (channels_ + block_channels_ - 1) / block_channels_),
      most_channels_(in_place ? channels_ - (blocks_ - 1) * block_channels_ : block_channels_) {
  const Box whole = work.output.tensor.whole();
  const size_t axis = whole[0].size() > 1 ? 0 : whole[1].size() > 1 ? 1 : 2;
  const int64_t bytes = channel_bytes(slab_of(work, whole)), extent = whole[axis].size();
  const int64_t thickness = slab_thickness(work, axis, bytes * block_channels_);
  for (int64_t begin = 0; begin < extent; begin += thickness) {
    Box output = whole;
    output[axis] = {begin, std::min(begin + thickness, extent)};
    slabs_.push_back(slab_of(work, output));
  }
  worthwhile_threads_ = 1 + bytes * channels_ * images_ / kThreadBytes;
}

WindowTile WindowTiles::at(int64_t index) const {
  const auto slabs = static_cast<int64_t>(slabs_.size());
  const int64_t block = index / slabs % blocks_, first = block * block_channels_;
  const int64_t channels = block == blocks_ - 1 ? channels_ - first : block_channels_;
  return {{index / slabs / blocks_, first, channels}, slabs_[static_cast<size_t>(index % slabs)]};
}

}  // namespace lamina::cpu
