// Views of ops that compute element by element, including those with tables along the channels or per group.
#include "interface/op_schema.h"
#include "passes/fusion/view_builder.h"

namespace lamina {

void ViewBuilder::elementwise() {
  loop_over(output_shape(first_output()));
  for (size_t i = 0; i < op_.outputs.size(); ++i)
    if (has_output(i)) view_.outputs[i] = broadcast_map(output_shape(i));
  for (size_t i = 0; i < op_.inputs.size(); ++i)
    if (has_input(i)) view_.inputs[i] = broadcast_map(input_shape(i));
}

// BiasAdd, PReLU, BatchNormInference: the inputs after the first are tables along the channels.
void ViewBuilder::per_channel() {
  const Dims& src = input_shape(0);
  loop_over(src);
  view_.inputs[0] = view_.outputs[0] = identity_map(src.size());
  const AxisRun channel{static_cast<int>(channel_axis(src.size())), 1};
  const bool aligned = op_.has_attribute("per_channel_broadcast") && !op_.attribute<bool>("per_channel_broadcast");
  for (size_t i = 1; i < op_.inputs.size(); ++i) {
    if (!has_input(i)) continue;
    const Dims& table = input_shape(i);
    view_.inputs[i] = aligned || table.size() != 1 ? broadcast_map(table) : channel_map(table, channel);
  }
}

// diff_slope sums over every dim that the slope does not have. If the slope has all dims, there is no sum.
void ViewBuilder::slope() {
  const Dims& src = input_shape(0);
  loop_over(src);
  const AxisRun channel{static_cast<int>(channel_axis(src.size())), 1};
  const Dims& slope = input_shape(1);
  const DimMap slope_map = slope.size() == 1 ? channel_map(slope, channel) : broadcast_map(slope);
  view_.inputs = {identity_map(src.size()), slope_map, broadcast_map(input_shape(2))};
  if (has_output(0)) view_.outputs[0] = identity_map(src.size());
  if (!has_output(1)) return;
  view_.outputs[1] = slope_map;
  size_t covered = 0;
  for (const AxisRun& run : slope_map) covered += static_cast<size_t>(run.count);
  const auto not_unit = std::count_if(src.begin(), src.end(), [](int64_t extent) { return extent != 1; });
  if (covered == static_cast<size_t>(not_unit)) return;
  view_.column_outputs[1] = true;
  // Along the last axis the sums are columns of the same loop nest. Along any other axis they need a second walk.
  const int last = static_cast<int>(src.size()) - 1;
  const bool along_last =
      std::any_of(slope_map.begin(), slope_map.end(), [&](const AxisRun& run) { return run == AxisRun{last, 1}; });
  for (const AxisRun& run : slope_map)
    if (along_last && run.count > 0) view_.inner[static_cast<size_t>(run.first)] = true;
}

// Scales and zero points per group split a dim of src into (groups, members of a group).
void ViewBuilder::scales() {
  const Dims src = input_shape(0);
  const std::string& qtype = op_.attribute<std::string>("qtype");
  if (qtype != "per_group") {
    loop_over(src);
    view_.inputs[0] = view_.outputs[0] = identity_map(src.size());
    const int axis = wrap_axis(op_.attribute<int64_t>("axis"), static_cast<int>(src.size()));
    for (size_t i = 1; i < op_.inputs.size(); ++i)
      if (has_input(i)) view_.inputs[i] = channel_map(input_shape(i), qtype == "per_channel" ? AxisRun{axis, 1} : kNoRun);
    return;
  }
  const Dims scales = input_shape(1);
  if (scales.size() != src.size()) return refuse(join("scales ", describe(scales), " do not fit ", describe(src)));
  Dims extents;
  DimMap full, groups;
  for (size_t i = 0; i < src.size(); ++i) {
    const int first = static_cast<int>(extents.size());
    const bool split = scales[i] != src[i] && scales[i] != 1;
    if (split && (src[i] <= 0 || scales[i] <= 0 || src[i] % scales[i] != 0))
      return refuse(join("scales ", describe(scales), " do not divide ", describe(src)));
    extents.push_back(split ? scales[i] : src[i]);
    if (split) extents.push_back(src[i] / scales[i]);
    full.push_back({first, split ? 2 : 1});
    groups.push_back(scales[i] == 1 ? kNoRun : AxisRun{first, 1});
  }
  loop_over(extents);
  view_.inputs[0] = view_.outputs[0] = full;
  for (size_t i = 1; i < op_.inputs.size(); ++i) {
    if (!has_input(i)) continue;
    if (input_shape(i) == scales)
      view_.inputs[i] = groups;
    else if (checked_product(input_shape(i), "zps") == 1)
      view_.inputs[i].assign(input_shape(i).size(), kNoRun);
    else
      return refuse(join("zero points ", describe(input_shape(i)), " do not fit scales ", describe(scales)));
  }
}

}  // namespace lamina
