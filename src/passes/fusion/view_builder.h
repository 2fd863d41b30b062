// Builds the views of ops, with one member function per family of ops. iteration_view.cpp selects the family;
// view_elementwise, view_layout and view_rows implement the families, and view_maps the shared parts. No other file includes
// this one.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "interface/status.h"
#include "interface/windows.h"
#include "passes/fusion/iteration_view.h"

namespace lamina {

inline constexpr AxisRun kNoRun{0, 0};

DimMap identity_map(size_t rank);

// Builds the view of one op. Each family fills `view_` with every dim as an iteration dim. finish() drops those of extent 1.
class ViewBuilder {
 public:
  ViewBuilder(const Graph& graph, const Op& op) : graph_(graph), op_(op) {
    view_.inputs.resize(op.inputs.size());
    view_.outputs.resize(op.outputs.size());
    view_.column_outputs.assign(op.outputs.size(), false);
    view_.reads_a_part.assign(op.inputs.size(), false);
  }

  IterationView build();
  // Runs over `positions`, whose windows read the images among the inputs.
  IterationView build_windows(const Dims& positions, const Windows& windows);

 private:
  using Family = void (ViewBuilder::*)();
  Family family() const;

  // ---- families
  void elementwise();
  void per_channel();
  void slope();
  void scales();
  void transposed();
  void reshaped();
  void concatenated();
  void reinterpreted();
  void sliced();
  void gathered();
  void scattered();
  void windows();
  void trailing_axes();
  void group_rows();
  void channel_rows();
  void axis_rows();
  void listed_axes();

  // ---- shared functions
  void refuse(std::string why) {
    if (view_.why_not.empty()) view_.why_not = std::move(why);
  }
  void loop_over_windows(const Dims& positions, const Windows* windows);
  void unknown_rank();
  bool all_ranks_unknown() const;
  bool some_rank_unknown() const;
  void loop_over(const Dims& extents) {
    view_.extents = extents;
    view_.inner.assign(extents.size(), false);
  }
  void normalize_dims(size_t begin) { std::fill(view_.inner.begin() + static_cast<long>(begin), view_.inner.end(), true); }
  void finish();

  const Dims& shape(ValueIndex value) const { return *graph_.tensor(value).shape; }
  const Dims& input_shape(size_t port) const { return shape(op_.inputs[port]); }
  const Dims& output_shape(size_t port) const { return shape(op_.outputs[port]); }
  bool has_input(size_t port) const { return port < op_.inputs.size() && op_.inputs[port] != kNoValue; }
  bool has_output(size_t port) const { return port < op_.outputs.size() && op_.outputs[port] != kNoValue; }
  size_t first_output() const;

  DimMap broadcast_map(const Dims& operand);
  DimMap leading_map(const Dims& statistics, size_t count);
  DimMap trailing_map(const Dims& affine, size_t begin);
  DimMap channel_map(const Dims& operand, AxisRun channel);
  size_t channel_axis(size_t rank) const;
  using PortMap = std::function<DimMap(const Dims&)>;
  void set_norm_ports(const PortMap& data, const PortMap& statistics, const PortMap& affine);

  const Graph& graph_;
  const Op& op_;
  IterationView view_;
  bool has_rows_ = false;  // some axes are normalised or reduced, possibly of extent 1
};

}  // namespace lamina
