#include "interface/ops/window_attributes.h"

#include <algorithm>

namespace lamina::parts {

AttributeSpec auto_pad() {
  return choice(
      "auto_pad", "None", {"None", "SAME_UPPER", "SAME_LOWER", "VALID"},
      "a value other than None replaces the pads: VALID sets them to 0; SAME makes the output extent / stride, with an "
      "odd pixel at the end (UPPER) or at the beginning (LOWER)");
}

std::vector<AttributeSpec> strides_and_pads() {
  return {required_list("strides", at_least_one, "one entry per spatial axis"),
          required_list("pads_begin", not_negative, "one entry per spatial axis"),
          required_list("pads_end", not_negative, "one entry per spatial axis"), auto_pad(), data_format()};
}

BatchAndChannels batch_and_channels(const OpView& view, std::string_view port, const Dims& shape) {
  if (shape.size() < 3)
    view.fail_shape(
        join(port, " has shape ", describe(shape), ", allowed is rank 3 or more: batch, channels and spatial axes"));
  return {shape.front(), shape[static_cast<size_t>(channel_axis(view, static_cast<int>(shape.size())))]};
}

std::optional<Dims> given_shape(const OpView& view, std::string_view port, std::string_view attribute) {
  const LogicalTensor* output = view.output(port);
  if (output != nullptr && output->shape) return output->shape;
  const auto& listed = view.attribute<std::vector<int64_t>>(attribute);
  const bool untouched = std::all_of(listed.begin(), listed.end(), [](int64_t dim) { return dim == 0; });
  return untouched ? std::nullopt : std::optional(listed);
}

}  // namespace lamina::parts
