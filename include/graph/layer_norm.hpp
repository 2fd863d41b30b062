// lamina, C++ interface of layer normalisation by descriptor: thin RAII over graph/layer_norm.h, which documents it.
//
//   lamina::layer_norm norm({.tensors = {{arg::src, src}, {arg::dst, dst}}}, engine);          // scale, shift, last axis
//   std::vector<std::byte> workspace(norm.get_workspace_size());
//   norm.execute(stream, {{arg::src, x}, {arg::scale, g}, {arg::shift, b}, {arg::dst, y}}, workspace.data(), workspace.size());
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <utility>

#include "graph/lamina.hpp"
#include "graph/layer_norm.h"

namespace lamina {

class layer_norm : public detail::handle<lamina_layer_norm, lamina_layer_norm_destroy> {
 public:
  enum class pass : int { forward = lamina_layer_norm_forward, backward = lamina_layer_norm_backward };
  enum class stats_kind : int {
    variance = lamina_layer_norm_stats_variance,
    rstd = lamina_layer_norm_stats_rstd,
    std = lamina_layer_norm_stats_std,
  };
  enum class arg : int {
    src = lamina_layer_norm_src,
    dst = lamina_layer_norm_dst,
    diff_dst = lamina_layer_norm_diff_dst,
    diff_src = lamina_layer_norm_diff_src,
    mean = lamina_layer_norm_mean,
    variance = lamina_layer_norm_variance,
    scale = lamina_layer_norm_scale,
    shift = lamina_layer_norm_shift,
    diff_scale = lamina_layer_norm_diff_scale,
    diff_shift = lamina_layer_norm_diff_shift,
    src_scale = lamina_layer_norm_src_scale,
    dst_scale = lamina_layer_norm_dst_scale,
  };

  // The counterpart of lamina_layer_norm_desc_t; `flags` and `outputs` are or-ed from the enumerators of the C interface.
  struct description {
    pass direction = pass::forward;
    std::uint32_t flags = lamina_layer_norm_use_scale | lamina_layer_norm_use_shift;
    std::uint32_t outputs = lamina_layer_norm_output_all;
    stats_kind stats = stats_kind::variance;
    float epsilon = 1e-5f;
    std::int64_t begin_norm_axis = -1;
    std::map<arg, graph::logical_tensor> tensors;
  };

  layer_norm() = default;
  layer_norm(const description& what, const engine& aengine) {
    lamina_layer_norm_desc_t desc{};
    desc.struct_size = sizeof desc;
    desc.pass = static_cast<lamina_layer_norm_pass_t>(what.direction);
    desc.flags = what.flags;
    desc.outputs = what.outputs;
    desc.stats_kind = static_cast<lamina_layer_norm_stats_kind_t>(what.stats);
    desc.epsilon = what.epsilon;
    desc.begin_norm_axis = what.begin_norm_axis;
    for (const auto& [position, tensor] : what.tensors) desc.tensors[static_cast<int>(position)] = &tensor.data;
    lamina_layer_norm_t created = nullptr;
    error::wrap_c_api(lamina_layer_norm_create(&created, &desc, aengine.get()));
    reset(created);
  }

  std::size_t get_workspace_size() const {
    std::size_t size = 0;
    error::wrap_c_api(lamina_layer_norm_get_workspace_size(get(), &size));
    return size;
  }
  graph::logical_tensor query(arg position) const {
    lamina_graph_logical_tensor_t tensor;
    error::wrap_c_api(lamina_layer_norm_query(get(), static_cast<lamina_layer_norm_arg_t>(position), &tensor));
    return graph::logical_tensor(tensor);
  }
  bool may_share(arg input, arg output) const {
    std::uint8_t result = 0;
    error::wrap_c_api(lamina_layer_norm_may_share(get(), static_cast<lamina_layer_norm_arg_t>(input),
                                                  static_cast<lamina_layer_norm_arg_t>(output), &result));
    return result != 0;
  }

  // Without a workspace, lamina uses memory that it keeps.
  void execute(const stream& astream, std::initializer_list<std::pair<arg, const void*>> memory, void* workspace = nullptr,
               std::size_t workspace_size = 0) const {
    std::array<void*, lamina_layer_norm_arg_count> positions{};
    for (const auto& [position, address] : memory) positions[static_cast<std::size_t>(position)] = const_cast<void*>(address);
    error::wrap_c_api(lamina_layer_norm_execute(get(), astream.get(), positions.data(), workspace, workspace_size));
  }
};

}  // namespace lamina
