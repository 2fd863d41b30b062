// How the work is divided: a tile is some channels of one image and a slab of the output's pixels along its first axis. A
// pixel's bits depend only on its own taps, so any tiles give the same results; these depend on the shapes.
#pragma once

#include <vector>

#include "backends/cpu/dispatch/windows/image_tensor.h"
#include "backends/cpu/program/window_work.h"

namespace lamina::cpu {

// Whether all tensors are pixels of lanes of one type and can be used in place.
bool has_lanes(const WindowWork& work);

struct Slab {
  Box output, input, image;  // the pixels that are written, and those that are read for them
};

struct WindowTile {
  ChannelBlock block;
  const Slab& slab;
};

class WindowTiles {
 public:
  WindowTiles(const WindowWork& work, bool in_place);

  int64_t count() const { return images_ * blocks_ * static_cast<int64_t>(slabs_.size()); }
  WindowTile at(int64_t index) const;
  int64_t most_channels() const { return most_channels_; }  // of one block
  const std::vector<Slab>& slabs() const { return slabs_; }
  int64_t worthwhile_threads() const { return worthwhile_threads_; }

 private:
  int64_t images_, channels_;
  int64_t block_channels_, blocks_, most_channels_;  // the last block has the rest
  std::vector<Slab> slabs_;
  int64_t worthwhile_threads_ = 1;
};

}  // namespace lamina::cpu
