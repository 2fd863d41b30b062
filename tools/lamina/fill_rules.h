// The values that suit a graph input, determined by its consumers.
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
    mean,         // of `source`, over the axes that `per_channel` and `axis` select
    variance,     // of `source`, over the same axes
    rstd,         // 1 / sqrt(variance + low)
    deviation,    // sqrt(variance + low)
    softmax,      // a softmax along `axis`
    log_softmax,  // its logarithm
  };
  Kind kind = Kind::uniform;
  double low = -1;
  double high = 1;
  // The priority of the requirement; that of the highest consumer wins. 0: none; 1: a suitable range; 2: a required range; 3:
  // values derived from another tensor.
  int insistence = 0;
  ValueIndex source = kNoValue;
  int axis = 0;              // statistics: the first reduced axis; per channel: the channel axis; softmax: its axis
  bool per_channel = false;  // statistics over every axis except `axis`
  int64_t groups = 0;        // if not 0: statistics per sample and group of channels, with the channels on `axis`
};

bool needs_source(const FillRule& rule);

// The rule for a graph input of a finalized graph.
FillRule fill_rule(const Graph& graph, ValueIndex input);

}  // namespace lamina::driver
