#include "passes/inner_layouts.h"

#include <algorithm>
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

  // Whether an elementwise op can use both values together: the other one has the same layout or is broadcast.
  bool lies_with(ValueIndex index, ValueIndex other) const {
    return other == kNoValue || chosen_[static_cast<size_t>(other)] ||
           graph_.tensor(other).element_count() < graph_.tensor(index).element_count();
  }

  void put_channels_last(ValueIndex index) {
    LogicalTensor tensor = graph_.tensor(index);
    const Dims& shape = *tensor.shape;
    tensor.strides[1] = 1;
    int64_t stride = shape[1];
    for (size_t axis = shape.size(); axis-- > 2; stride *= shape[axis]) tensor.strides[axis] = stride;
    tensor.strides[0] = stride;
    tensor.layout = LayoutType::strided;
    graph_.set_tensor(index, std::move(tensor));
  }

  Graph& graph_;
  std::vector<bool> chosen_;
};

}  // namespace

void put_inner_channels_last(Graph& graph, std::span<const ValueIndex> outputs) { LayoutChooser(graph, outputs).run(); }

}  // namespace lamina
