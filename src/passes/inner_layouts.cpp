#include "passes/inner_layouts.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "interface/op_schema.h"

namespace lamina {
namespace {

class LayoutChooser {
 public:
  LayoutChooser(Graph& graph, std::span<const ValueIndex> outputs) : graph_(graph), chosen_(graph.values().size(), false) {
    for (size_t i = 0; i < chosen_.size(); ++i) {
      const Value& value = graph.values()[i];
      const bool is_output = std::find(outputs.begin(), outputs.end(), static_cast<ValueIndex>(i)) != outputs.end();
      chosen_[i] = value.producer.op >= 0 && !is_output && value.tensor.rank() >= kMinRank;
      find_rearrangements(static_cast<ValueIndex>(i));
    }
  }

  void run() {
    bool changed = true;
    while (changed) {
      changed = false;
      for (size_t i = 0; i < chosen_.size(); ++i) {
        if (!chosen_[i] || suits(static_cast<ValueIndex>(i))) continue;
        chosen_[i] = false;
        changed = true;
      }
    }
    for (size_t i = 0; i < chosen_.size(); ++i)
      if (chosen_[i]) put_channels_last(static_cast<ValueIndex>(i));
    for (const auto& [first, image] : rearranged_to_)
      if (chosen_[static_cast<size_t>(image)] && chosen_[static_cast<size_t>(rearranged_from_.at(image))])
        put_channels_last_between(first, image);
    // From the last join on, since a result may be a part of a later one.
    for (size_t op = graph_.ops().size(); op-- > 0;) put_parts_in_result(graph_.ops()[op]);
  }

 private:
  static constexpr int kMinRank = 3;  // batch, channels, space

  bool suits(ValueIndex index) const {
    const Value& value = graph_.value(index);
    return suits(index, value.producer, false) && std::all_of(value.consumers.begin(), value.consumers.end(),
                                                              [&](const Port& port) { return suits(index, port, true); });
  }

  // Whether the op at that port is at least as fast with the channels of this value last as with them in order.
  bool suits(ValueIndex index, const Port& port, bool is_input) const {
    const Op& op = graph_.op(port.op);
    const OpSchema& schema = schema_of(op.kind);
    if (schema.op_class == OpClass::library) return is_image(op, schema, port.port, is_input);
    if (is_input && sums_over_space(op)) return true;
    if (const ValueIndex other = is_input ? end_of_chain(port.op) : start_of_chain(index); other != kNoValue)
      return chosen_[static_cast<size_t>(other)];
    if (joins_channels(op)) {
      return chosen_[static_cast<size_t>(op.outputs[0])] &&
             std::all_of(op.inputs.begin(), op.inputs.end(),
                         [&](ValueIndex part) { return chosen_[static_cast<size_t>(part)]; });
    }
    if (schema.op_class != OpClass::elementwise) return false;
    return std::all_of(op.inputs.begin(), op.inputs.end(), [&](ValueIndex other) { return lies_with(index, other); }) &&
           std::all_of(op.outputs.begin(), op.outputs.end(), [&](ValueIndex other) { return lies_with(index, other); });
  }

  // Whether the port is an image, or positions in one, of an op whose channels come after the batch. Weights are not.
  static bool is_image(const Op& op, const OpSchema& schema, int port, bool is_input) {
    if (!op.has_attribute("data_format") || has_channels_last(op)) return false;
    const auto ports = is_input ? existing_inputs(schema, op.attributes) : existing_outputs(schema, op.attributes);
    return ports.at(static_cast<size_t>(port))->role != PortRole::weights;
  }

  // Chains of ops that only move channels, as a channel shuffle does, read and write whole pixels:
  //   image [N, g*c, H, W] ── StaticReshape [N, g, c, H, W] ── StaticTranspose [N, c, g, H, W] ── StaticReshape ── image
  // Values in between have the channels last too, in several axes.
  void find_rearrangements(ValueIndex image) {
    const int rank = graph_.tensor(image).rank();
    if (rank < kMinRank) return;
    for (const Port& reader : graph_.value(image).consumers) {
      int op = reader.op;
      while (op >= 0 && moves_only_channels(graph_.op(op), rank - 2)) {
        const ValueIndex made = graph_.op(op).outputs[0];
        if (graph_.tensor(made).rank() == rank) {
          rearranged_to_[reader.op] = made;
          rearranged_from_[made] = image;
          break;
        }
        const auto& readers = graph_.value(made).consumers;
        op = readers.size() == 1 ? readers[0].op : -1;
      }
    }
  }
  bool moves_only_channels(const Op& op, int spatial) const {
    const LoopNest nest = schema_of(op.kind).nest;
    if (nest != LoopNest::reshaped && nest != LoopNest::transposed) return false;
    const Dims &src = *graph_.tensor(op.inputs[0]).shape, &dst = *graph_.tensor(op.outputs[0]).shape;
    if (std::ssize(dst) < spatial + 2 || src[0] != dst[0] || !std::equal(src.end() - spatial, src.end(), dst.end() - spatial))
      return false;
    if (nest == LoopNest::reshaped) return true;
    const auto& order = op.attribute<std::vector<int64_t>>("order");
    for (size_t axis = 0; axis < order.size(); ++axis) {
      const bool is_channel = axis > 0 && axis < order.size() - static_cast<size_t>(spatial);
      if (!is_channel && wrap_axis(order[axis], static_cast<int>(order.size())) != static_cast<int>(axis)) return false;
    }
    return true;
  }
  void put_channels_last_between(int first, ValueIndex image) {
    for (ValueIndex value = graph_.op(first).outputs[0]; value != image;) {
      put_channels_last(value, graph_.tensor(image).rank() - 2);
      value = graph_.op(graph_.value(value).consumers[0].op).outputs[0];
    }
  }

  // The image at the end of the chain that starts with this op, or at the start of the chain that makes this image.
  ValueIndex end_of_chain(int first) const {
    const auto found = rearranged_to_.find(first);
    return found == rearranged_to_.end() ? kNoValue : found->second;
  }
  ValueIndex start_of_chain(ValueIndex image) const {
    const auto found = rearranged_from_.find(image);
    return found == rearranged_from_.end() ? kNoValue : found->second;
  }

  bool joins_channels(const Op& op) const {
    return schema_of(op.kind).nest == LoopNest::concatenated &&
           wrap_axis(op.attribute<int64_t>("axis"), graph_.tensor(op.outputs[0]).rank()) == 1;
  }

  // Whether the op reduces all spatial axes and no other one: it then computes a vector of channels at once.
  bool sums_over_space(const Op& op) const {
    const OpSchema& schema = schema_of(op.kind);
    if (!schema.traits.reduces || schema.nest != LoopNest::listed_axes || !op.has_attribute("axes")) return false;
    const int rank = graph_.tensor(op.inputs[0]).rank();
    std::set<int> axes;
    for (const int64_t axis : op.attribute<std::vector<int64_t>>("axes")) axes.insert(wrap_axis(axis, rank));
    return std::ssize(axes) == rank - 2 && !axes.contains(0) && !axes.contains(1);
  }

  // Whether an elementwise op can use both values together: the other one has the same layout or is broadcast.
  bool lies_with(ValueIndex index, ValueIndex other) const {
    return other == kNoValue || chosen_[static_cast<size_t>(other)] ||
           graph_.tensor(other).element_count() < graph_.tensor(index).element_count();
  }

  void put_channels_last(ValueIndex index) { put_channels_last(index, graph_.tensor(index).rank() - 2); }
  // All axes between the batch and the spatial ones are channels.
  void put_channels_last(ValueIndex index, int spatial) {
    LogicalTensor tensor = graph_.tensor(index);
    const Dims& shape = *tensor.shape;
    const size_t first_spatial = shape.size() - static_cast<size_t>(spatial);
    int64_t stride = 1;
    for (size_t axis = first_spatial; axis-- > 1; stride *= shape[axis]) tensor.strides[axis] = stride;
    for (size_t axis = shape.size(); axis-- > first_spatial; stride *= shape[axis]) tensor.strides[axis] = stride;
    tensor.strides[0] = stride;
    tensor.layout = LayoutType::strided;
    graph_.set_tensor(index, std::move(tensor));
  }

  void put_parts_in_result(const Op& op) {
    if (!joins_channels(op) || !chosen_[static_cast<size_t>(op.outputs[0])]) return;
    const Dims strides = graph_.tensor(op.outputs[0]).strides;
    for (const ValueIndex part : op.inputs) {
      if (!is_part_.insert(part).second) continue;  // of another result
      LogicalTensor tensor = graph_.tensor(part);
      tensor.strides = strides;
      graph_.set_tensor(part, std::move(tensor));
    }
  }

  Graph& graph_;
  std::vector<bool> chosen_;
  std::set<ValueIndex> is_part_;
  std::map<int, ValueIndex> rearranged_to_;           // by the first op of a chain
  std::map<ValueIndex, ValueIndex> rearranged_from_;  // by the image that it makes
};

}  // namespace

void put_inner_channels_last(Graph& graph, std::span<const ValueIndex> outputs) { LayoutChooser(graph, outputs).run(); }

}  // namespace lamina
