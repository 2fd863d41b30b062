// Layer normalisation as its users describe it (include/graph/layer_norm.h) becomes a graph of ops.
//
// In:    which pass, what is given, what is wanted, and the tensors with their types, shapes and strides.
// Out:   a partition that holds all ops of the graph; the ids of its ports are the positions of the arguments.
// Keeps: the mathematics in the ops. Types that LayerNorm and LayerNormBackward do not join are joined by TypeCast, s8 and u8
//        by (Dynamic)Quantize and (Dynamic)Dequantize, scale without shift and shift without scale by Multiply and Add.
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

// The descriptor, checked and completed: every used argument has its tensor, of full shape, strided, with the argument's
// position as id; the others are empty.
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

// Throws Error naming the argument.
LayerNormProblem checked_problem(const lamina_layer_norm_desc_t& desc);

// Inputs of the graph that no argument stands for, one element each, broadcast: a scale of ones where only the gradient of the
// shift is wanted, a mean of zero where a gradient is divided by the deviation.
inline constexpr uint64_t kOne = kLayerNormArgs, kZero = kLayerNormArgs + 1;
inline constexpr size_t kLayerNormConstants = 2;
inline bool is_constant(uint64_t id) { return id >= kLayerNormArgs; }
inline double constant_value(uint64_t id) { return id == kOne ? 1 : 0; }

// Throws Error(unimplemented) naming the op that `backend` does not run.
Partition layer_norm_partition(const LayerNormProblem& problem, const Backend& backend);

}  // namespace lamina::api
