// Views of ops that normalise or reduce some axes.
#include "interface/op_schema.h"
#include "passes/fusion/view_builder.h"

namespace lamina {

// Sets every port's map by its role, and marks the gradients of gamma and beta as column sums.
void ViewBuilder::set_norm_ports(const PortMap& data, const PortMap& statistics, const PortMap& affine) {
  const auto map_for = [&](PortRole role) -> const PortMap& {
    switch (role) {
      case PortRole::mean:
      case PortRole::variance: return statistics;
      case PortRole::gamma:
      case PortRole::beta:
      case PortRole::affine_gradient: return affine;
      default: return data;
    }
  };
  const OpSchema& schema = schema_of(op_.kind);
  const auto inputs = existing_inputs(schema, op_.attributes), outputs = existing_outputs(schema, op_.attributes);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (has_input(i)) view_.inputs[i] = map_for(inputs[i]->role)(input_shape(i));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!has_output(i)) continue;
    view_.outputs[i] = map_for(outputs[i]->role)(output_shape(i));
    view_.column_outputs[i] = outputs[i]->role == PortRole::affine_gradient;
  }
}

void ViewBuilder::trailing_axes() {
  const Dims& src = input_shape(0);
  const auto begin = static_cast<size_t>(wrap_axis(op_.attribute<int64_t>("begin_norm_axis"), static_cast<int>(src.size())));
  if (begin >= src.size()) return refuse("it normalises no axis");
  has_rows_ = true;
  loop_over(src);
  normalize_dims(begin);
  set_norm_ports([this](const Dims& dims) { return broadcast_map(dims); },
                 [this, begin](const Dims& dims) { return leading_map(dims, begin); },
                 [this, begin](const Dims& dims) { return trailing_map(dims, begin); });
}

// Iteration dims: the batch, then in the order of data_format the spatial dims and the channels as (groups, channels per
// group).
void ViewBuilder::group_rows() {
  const Dims& src = input_shape(0);
  const auto groups = op_.attribute<int64_t>("groups");
  const size_t axis = channel_axis(src.size());
  if (src.size() < 2 || src[axis] == kUnknownDim || groups <= 0 || src[axis] % groups != 0)
    return refuse(join("its ", describe(src), " has no channels that ", groups, " groups divide"));
  Dims extents = src;
  extents[axis] = groups;
  extents.insert(extents.begin() + static_cast<long>(axis) + 1, src[axis] / groups);
  has_rows_ = true;
  loop_over(extents);
  normalize_dims(1);
  view_.inner[axis] = false;  // the groups
  DimMap full;
  for (size_t i = 0; i < src.size(); ++i) full.push_back({static_cast<int>(i <= axis ? i : i + 1), i == axis ? 2 : 1});
  const int channel = static_cast<int>(axis);
  set_norm_ports([&full](const Dims&) { return full; }, [channel](const Dims&) { return DimMap{{0, 1}, {channel, 1}}; },
                 [this, channel](const Dims& dims) { return channel_map(dims, {channel, 2}); });
}

void ViewBuilder::channel_rows() {
  const Dims& src = input_shape(0);
  has_rows_ = true;
  loop_over(src);
  normalize_dims(0);
  const size_t axis = channel_axis(src.size());
  view_.inner[axis] = false;
  const AxisRun channel{static_cast<int>(axis), 1};
  const auto map_of = [&](const Dims& dims) {
    return dims.size() == src.size() ? identity_map(src.size()) : channel_map(dims, channel);
  };
  for (size_t i = 0; i < op_.inputs.size(); ++i)
    if (has_input(i)) view_.inputs[i] = map_of(input_shape(i));
  for (size_t i = 0; i < op_.outputs.size(); ++i)
    if (has_output(i)) view_.outputs[i] = map_of(output_shape(i));
}

void ViewBuilder::axis_rows() {
  const Dims& src = input_shape(0);
  if (src.empty()) return refuse("its tensor has rank 0");
  const auto axis = static_cast<size_t>(wrap_axis(op_.attribute<int64_t>("axis"), static_cast<int>(src.size())));
  has_rows_ = true;
  loop_over(src);
  view_.inner[axis] = true;
  for (size_t i = 0; i < op_.inputs.size(); ++i)
    if (has_input(i)) view_.inputs[i] = identity_map(src.size());
  for (size_t i = 0; i < op_.outputs.size(); ++i)
    if (has_output(i)) view_.outputs[i] = identity_map(src.size());
  if (has_output(1)) view_.outputs[1][axis] = kNoRun;
}

void ViewBuilder::listed_axes() {
  if (has_input(1)) return refuse("its axes are an input");
  const Dims& src = input_shape(0);
  has_rows_ = true;
  loop_over(src);
  view_.inputs[0] = identity_map(src.size());
  for (const int64_t axis : op_.attribute<std::vector<int64_t>>("axes"))
    view_.inner[static_cast<size_t>(wrap_axis(axis, static_cast<int>(src.size())))] = true;
  const bool keep_dims = op_.attribute<bool>("keep_dims");
  for (size_t i = 0; i < src.size(); ++i) {
    if (!view_.inner[i])
      view_.outputs[0].push_back({static_cast<int>(i), 1});
    else if (keep_dims)
      view_.outputs[0].push_back(kNoRun);
  }
}

}  // namespace lamina
