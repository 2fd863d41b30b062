#include "passes/patterns/all.h"

namespace lamina::pattern {

const std::vector<Decomposition>& decompositions() {
  static const std::vector<Decomposition> all{
      layer_norm_with_affine(),
      layer_norm(),
      rms_norm_with_gamma(),  // after LayerNorm, which contains the RMSNorm of x - mean
      rms_norm(),
      softmax(),
      log_softmax(),  // after SoftMax, which may be written as Exp on top of it
      gelu(),
      swish(),
      dequantize(),
  };
  return all;
}

}  // namespace lamina::pattern
