// Which values fit the use of a graph input: what its readers are decides.
#pragma once

#include "interface/graph.h"

namespace lamina::driver {

struct FillRule {
  enum class Kind {
    uniform,      // real numbers from [low, high); integers from low..high
    off_zero,     // magnitude from [low, high), either sign
    rectified,    // max(0, uniform)
    clamped,      // uniform from twice the interval, then clamped to [low, high]
    constant,     // low
    causal_mask,  // 0 on and below the diagonal of the last two axes, -inf above
    mean,         // of `source`, over the axes that `per_channel` and `axis` say
    variance,     // of `source`, the same
    rstd,         // 1 / sqrt(variance + low)
    deviation,    // sqrt(variance + low)
    softmax,      // a softmax along `axis`
    log_softmax,  // its logarithm
  };
  Kind kind = Kind::uniform;
  double low = -1;
  double high = 1;
  // How much the reader insists: the most insistent of several readers is served. 0 no wish, 1 a range that suits, 2 a range
  // that is needed, 3 values that must belong to another tensor.
  int insistence = 0;
  ValueIndex source = kNoValue;
  int axis = 0;              // statistics: the first axis reduced; per channel: the channel axis; softmax: its axis
  bool per_channel = false;  // statistics of every axis but `axis`
  int64_t groups = 0;        // not 0: statistics per sample and group of channels, the channels on `axis`
};

bool needs_source(const FillRule& rule);

// The rule for a graph input of a finalized graph.
FillRule fill_rule(const Graph& graph, ValueIndex input);

}  // namespace lamina::driver
