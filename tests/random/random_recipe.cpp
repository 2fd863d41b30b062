#include "random/random_recipe.h"

#include <algorithm>
#include <optional>

#include "interface/op_schema.h"
#include "interface/status.h"
#include "random/random_op.h"

namespace lamina::testing {

namespace {

// Ops whose first input is what a forward op makes: its shape is that of the forward op's dst.
std::optional<OpKind> forward_of(OpKind kind) {
  switch (kind) {
    case OpKind::AvgPoolBackward: return OpKind::AvgPool;
    case OpKind::MaxPoolBackward: return OpKind::MaxPool;
    case OpKind::InterpolateBackward: return OpKind::Interpolate;
    case OpKind::ConvolutionBackwardData:
    case OpKind::ConvolutionBackwardWeights: return OpKind::Convolution;
    case OpKind::ConvTransposeBackwardData:
    case OpKind::ConvTransposeBackwardWeights: return OpKind::ConvTranspose;
    default: return std::nullopt;
  }
}

// Its values would have to be what shapes say; attributes say it as well.
bool says_a_shape(const PortSpec& port) { return port.name == "axes" || port.name == "sizes" || port.name.ends_with("_shape"); }

// No index is right where there are no entries, and of what ops compute few are: indices are inputs of the graph.
bool reads_by_index(const OpSchema& schema) {
  return std::any_of(schema.inputs.begin(), schema.inputs.end(), [](const PortSpec& port) { return port.name == "indices"; });
}

class RecipeMaker {
 public:
  RecipeMaker(uint64_t seed, const RandomGraphs& wanted) : dice_(seed), wanted_(wanted) {
    for (const OpKind kind : all_op_kinds()) {
      if (kind != OpKind::Wildcard && kind != OpKind::End) kinds_.push_back(kind);
    }
  }

  Recipe make() {
    const auto ops = static_cast<size_t>(dice_.from(1, wanted_.most_ops));
    for (int tries = 0; recipe_.steps.size() < ops && tries < 400; ++tries) add_op(dice_.pick(kinds_));
    for (const uint64_t id : made_) {
      if (dice_.one_in(4)) recipe_.kept.insert(id);
    }
    std::set<uint64_t> read;
    for (const Step& step : recipe_.steps) read.insert(step.inputs.begin(), step.inputs.end());
    std::erase_if(recipe_.kept, [&](uint64_t id) { return !read.contains(id); });
    return recipe_;
  }

 private:
  // An op that its schema refuses with these types, shapes and attributes is not added.
  void add_op(OpKind kind) {
    const Recipe before = recipe_;
    const uint64_t next = next_;
    if (try_op(schema_of(kind))) return;
    recipe_ = before;
    next_ = next;
  }

  bool try_op(const OpSchema& schema) {
    Types types = random_types(schema, dice_);
    if (types.empty() && !schema.types.empty()) return false;
    const std::optional<uint64_t> first = dice_.one_in(4) ? std::nullopt : made_for(schema, types);
    const Dims shape = first ? *recipe_.tensors.at(*first).shape : random_shape(schema, dice_);
    if (shape.empty() || (reads_by_index(schema) && std::count(shape.begin(), shape.end(), 0) > 0)) return false;
    Step step{schema.kind, random_attributes(schema, shape, dice_), {}, {}};
    for (const PortSpec* port : existing_inputs(schema, step.attributes)) {
      const DataType dtype = port->type == "any" ? DataType::f32 : types.find(port->type)->second;
      if (port->presence == Presence::optional && (says_a_shape(*port) || dice_.one_in(2))) {
        step.inputs.push_back(kNoTensor);
        continue;
      }
      const bool is_first = step.inputs.empty();
      const int64_t times = port->presence == Presence::variadic ? dice_.from(1, 3) : 1;
      for (int64_t i = 0; i < times; ++i)
        step.inputs.push_back(
            is_first && i == 0 && first ? *first : operand(schema, *port, step.attributes, shape, dtype, is_first && i == 0));
    }
    while (!step.inputs.empty() && step.inputs.back() == kNoTensor) step.inputs.pop_back();
    if (forward_of(schema.kind) && !take_shapes_of_forward(schema, step, shape)) return false;
    for (const PortSpec* port : existing_outputs(schema, step.attributes)) {
      const bool is_left_out = port->presence == Presence::optional && dice_.one_in(2);
      step.outputs.push_back(is_left_out ? kNoTensor : new_tensor(types.find(port->type)->second));
    }
    const bool makes_something =
        std::any_of(step.outputs.begin(), step.outputs.end(), [](uint64_t id) { return id != kNoTensor; });
    return makes_something && is_legal(step) && keep(step);
  }

  // A value of the graph whose type is one that the first input may have, with the other types to go with it.
  std::optional<uint64_t> made_for(const OpSchema& schema, Types& types) {
    if (made_.empty() || schema.inputs.empty()) return std::nullopt;
    const auto size = static_cast<int64_t>(made_.size());
    for (int tries = 0; tries < 20; ++tries) {
      const int64_t back = dice_.below(dice_.one_in(3) ? size : std::min<int64_t>(3, size));  // mostly a late one
      const uint64_t id = made_[static_cast<size_t>(size - 1 - back)];
      Types fitting = random_types(schema, dice_);
      const auto type = fitting.find(schema.inputs.front().type);
      if (type != fitting.end() && type->second != recipe_.tensors.at(id).dtype) continue;
      if (fitting.size() == types.size()) types = std::move(fitting);
      return id;
    }
    return std::nullopt;
  }

  uint64_t operand(const OpSchema& schema, const PortSpec& port, const Attributes& attributes, const Dims& shape,
                   DataType dtype, bool is_first) {
    const Dims wanted = is_first ? shape : operand_shape(schema, port, attributes, shape, dice_);
    std::vector<uint64_t> fitting;
    for (const uint64_t id : made_) {
      const LogicalTensor& tensor = recipe_.tensors.at(id);
      if (tensor.dtype == dtype && *tensor.shape == wanted) fitting.push_back(id);
    }
    const bool may_be_any = !is_parameter(port.role) && port.name != "indices";
    if (!fitting.empty() && may_be_any && dice_.one_in(2)) return dice_.pick(fitting);
    return graph_input(dtype, wanted);
  }

  uint64_t new_tensor(DataType dtype) {
    LogicalTensor tensor;
    tensor.id = next_;
    tensor.dtype = dtype;
    recipe_.tensors[next_] = tensor;
    return next_++;
  }

  // Dense, or with the axes in another order, or rows with gaps between them, or nothing between them.
  uint64_t graph_input(DataType dtype, const Dims& shape) {
    const uint64_t id = new_tensor(dtype);
    LogicalTensor& tensor = recipe_.tensors.at(id);
    tensor.shape = shape;
    tensor.strides = dense_strides(shape);
    tensor.layout = LayoutType::strided;
    const bool has_choice = !shape.empty() && bits_of(dtype) >= 8;
    if (has_choice && dice_.one_in(4)) {
      std::vector<size_t> order(shape.size());
      for (size_t axis = 0; axis < order.size(); ++axis) order[axis] = axis;
      dice_.shuffle(order);
      int64_t step = 1;
      for (const size_t axis : order) {
        tensor.strides[axis] = step;
        step *= std::max<int64_t>(shape[axis], 1);
      }
    } else if (has_choice && shape.size() > 1 && dice_.one_in(4)) {
      const int64_t gap = dice_.from(1, 5);
      for (size_t axis = 0; axis + 1 < shape.size(); ++axis)
        tensor.strides[axis] =
            tensor.strides[axis] / std::max<int64_t>(shape.back(), 1) * (std::max<int64_t>(shape.back(), 1) + gap);
    }
    if (dice_.one_in(6)) tensor.property = PropertyType::constant;
    return id;
  }

  // diff_dst has the shape of what the forward op makes of src, which is `shape`.
  bool take_shapes_of_forward(const OpSchema& schema, Step& step, const Dims& shape) {
    const OpSchema& forward = schema_of(*forward_of(schema.kind));
    Recipe alone;
    Step op{forward.kind, {}, {}, {1000}};
    for (const auto& [name, value] : step.attributes) {
      if (forward.find_attribute(name) != nullptr) op.attributes[name] = value;
    }
    if (forward.find_attribute("rounding_type") != nullptr) op.attributes["rounding_type"] = std::string("floor");
    const DataType dtype = recipe_.tensors.at(step.inputs.front()).dtype;
    const auto add = [&](uint64_t id, const Dims& dims) {
      alone.tensors[id] = {id, dtype, dims, LayoutType::strided, dense_strides(dims), PropertyType::undef};
      op.inputs.push_back(id);
    };
    add(1, shape);
    const PortSpec weights{.name = "weights", .type = "T"};
    const bool has_weights = forward.inputs.size() > 1 && forward.inputs[1].name == "weights";
    const Dims filter = has_weights ? operand_shape(forward, weights, op.attributes, shape, dice_) : Dims{};
    if (has_weights) add(2, filter);
    alone.tensors[1000] = {1000, dtype, std::nullopt, LayoutType::undef, {}, PropertyType::undef};
    alone.steps.push_back(op);
    const std::optional<Dims> dst = shape_made(alone, 1000);
    if (!dst) return false;
    for (size_t port = 0; port < step.inputs.size(); ++port) {
      const std::string& name = schema.inputs[port].name;
      if (step.inputs[port] == kNoTensor) continue;
      if (name == "diff_dst") step.inputs[port] = graph_input(dtype, *dst);
      if (name == "src") step.inputs[port] = graph_input(dtype, shape);
      if (name == "weights") step.inputs[port] = graph_input(dtype, filter);
    }
    for (const auto& [attribute, dims] : {std::pair{"src_shape", shape}, {"weights_shape", filter}, {"dst_shape", shape}}) {
      if (schema.find_attribute(attribute) != nullptr) step.attributes[attribute] = dims;
    }
    return true;
  }

  static std::optional<Dims> shape_made(const Recipe& recipe, uint64_t id) {
    try {
      const Graph graph = recipe.build();
      const LogicalTensor& tensor = graph.tensor(*graph.find_value(id));
      return tensor.has_full_shape() ? tensor.shape : std::nullopt;
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  // Whether the schema takes the op, and every output's shape follows. Gives the outputs their shapes.
  bool is_legal(const Step& step) {
    Recipe alone;
    for (const auto* ids : {&step.inputs, &step.outputs}) {
      for (const uint64_t id : *ids) {
        if (id != kNoTensor) alone.tensors[id] = recipe_.tensors.at(id);
      }
    }
    alone.steps.push_back(step);
    for (const uint64_t id : step.outputs) {
      if (id == kNoTensor) continue;
      const std::optional<Dims> shape = shape_made(alone, id);
      if (!shape) return false;
      LogicalTensor& tensor = recipe_.tensors.at(id);
      tensor.shape = shape;
    }
    return std::all_of(alone.tensors.begin(), alone.tensors.end(), [&](const auto& known) {
      const LogicalTensor& tensor = recipe_.tensors.at(known.first);
      return checked_product(*tensor.shape, "a tensor") <= wanted_.most_elements;
    });
  }

  bool keep(const Step& step) {
    recipe_.steps.push_back(step);
    for (const uint64_t id : step.outputs) {
      if (id != kNoTensor) made_.push_back(id);
    }
    if (!step.inputs.empty() && dice_.one_in(6)) made_.push_back(step.inputs.front());
    return true;
  }

  Dice dice_;
  const RandomGraphs& wanted_;
  std::vector<OpKind> kinds_;
  Recipe recipe_;
  std::vector<uint64_t> made_;  // values that ops may read
  uint64_t next_ = 0;
};

}  // namespace

Recipe random_recipe(uint64_t seed, const RandomGraphs& wanted) { return RecipeMaker(seed, wanted).make(); }

}  // namespace lamina::testing
