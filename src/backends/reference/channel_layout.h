// A tensor of batch, channels and everything else ("space", row-major) by attribute data_format: NCX channels second, NXC last.
#pragma once

#include "backends/reference/op_run.h"

namespace lamina::reference {

struct ChannelLayout {
  int64_t batch = 0, channels = 0, space = 0;
  bool channels_last = false;

  int64_t at(int64_t n, int64_t c, int64_t s) const {
    return channels_last ? (n * space + s) * channels + c : (n * channels + c) * space + s;
  }
};

inline ChannelLayout channel_layout(const OpRun& run, const Tensor& tensor) {
  const size_t dim = channel_dim(run, tensor.rank());
  int64_t space = 1;
  for (size_t i = 1; i < tensor.shape.size(); ++i)
    if (i != dim) space *= tensor.shape[i];
  return {tensor.shape[0], tensor.shape[dim], space, dim + 1 == tensor.shape.size()};
}

}  // namespace lamina::reference
