// Converts a layer norm descriptor (include/graph/layer_norm.h) to a graph of ops.
//
// Input: the pass, flags and requested outputs, and the tensors with their types, shapes and strides. Output: a partition
// with all ops of the graph; the ids of its ports are the positions of the arguments.
//
// The mathematics remain in the ops. TypeCast converts between types that LayerNorm and LayerNormBackward do not mix, and
// (Dynamic)Quantize and (Dynamic)Dequantize convert s8 and u8. Multiply implements scale without shift, Add shift without
// scale.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "graph/layer_norm.h"
#include "interface/partition.h"

namespace lamina::api {

inline constexpr size_t kLayerNormArgs = lamina_layer_norm_arg_count;
std::string_view name_of(lamina_layer_norm_arg_t arg);

// The descriptor, checked and completed: every used argument has a strided tensor of known shape whose id is the argument's
// position; the others are empty.
struct LayerNormProblem {
  lamina_layer_norm_pass_t pass = lamina_layer_norm_forward;
  uint32_t flags = 0, outputs = 0;
  lamina_layer_norm_stats_kind_t stats_kind = lamina_layer_norm_stats_variance;
  float epsilon = 0;
  int64_t begin_norm_axis = 0;  // 0..rank - 1
  std::array<std::optional<LogicalTensor>, kLayerNormArgs> tensors;

  bool has(lamina_layer_norm_flags_t flag) const { return (flags & flag) != 0; }
  bool wants(lamina_layer_norm_outputs_t output) const { return (outputs & output) != 0; }
  const std::optional<LogicalTensor>& operator[](lamina_layer_norm_arg_t arg) const { return tensors[arg]; }
  bool is_output(lamina_layer_norm_arg_t arg) const;
};

// Throws Error(invalid_arguments) for a size that no version of the descriptor has.
void check_struct_size(size_t struct_size);

// Throws Error with the argument's name in the sentence.
LayerNormProblem checked_problem(const lamina_layer_norm_desc_t& desc);

// Constant inputs of the graph that are not arguments, one element each, broadcast: a scale of ones if only the gradient of
// the shift is requested, and a mean of zero where a gradient is divided by the standard deviation.
inline constexpr uint64_t kOne = kLayerNormArgs, kZero = kLayerNormArgs + 1;
inline constexpr size_t kLayerNormConstants = 2;
inline bool is_constant(uint64_t id) { return id >= kLayerNormArgs; }
inline double constant_value(uint64_t id) { return id == kOne ? 1 : 0; }

// Throws Error(unimplemented) with the op that `backend` cannot run.
Partition layer_norm_partition(const LayerNormProblem& problem, const Backend& backend);

}  // namespace lamina::api
