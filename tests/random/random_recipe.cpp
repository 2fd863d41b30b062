#include "random/random_recipe.h"

#include <algorithm>
#include <optional>

#include "interface/op_schema.h"
#include "random/quantized_product.h"
#include "random/random_op.h"
#include "random/recipe_builder.h"

namespace lamina::testing {

namespace {

// Ops whose first input is the output of a forward op: its shape is the shape of the forward op's dst.
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

// Ports whose values would have to match other shapes. An attribute can supply the same information.
bool says_a_shape(const PortSpec& port) { return port.name == "axes" || port.name == "sizes" || port.name.ends_with("_shape"); }

// An axis of extent 0 has no valid index, and computed values are rarely valid indices, so indices are graph inputs.
bool reads_by_index(const OpSchema& schema) {
  return std::any_of(schema.inputs.begin(), schema.inputs.end(), [](const PortSpec& port) { return port.name == "indices"; });
}

// The sign of a NaN that an op computes is that of the processor (docs/decisions/0018-a-nan-is-one-value.md), so an op that
// reads the bits of floats reads an input of the graph.
bool shows_sign_of_nan(const OpSchema& schema, DataType dtype) {
  return schema.nest == LoopNest::reinterpreted && is_floating(dtype);
}

// A library op that has a domain multiplies many of these values with each other. Beyond the domain that overflows in f32, but
// not in the reference, so the values are graph inputs.
bool multiplies_many(const OpSchema& schema, const PortSpec& port) {
  return schema.op_class == OpClass::library && port.domain.has_value();
}

class RecipeMaker {
 public:
  RecipeMaker(uint64_t seed, const RandomGraphs& wanted)
      : seed_(seed), rng_(seed), wanted_(wanted), graph_(rng_, wanted.most_elements) {
    for (const OpKind kind : all_op_kinds()) {
      if (kind != OpKind::Wildcard && kind != OpKind::End) kinds_.push_back(kind);
    }
  }

  Recipe make() {
    const auto ops = static_cast<size_t>(rng_.from(1, wanted_.most_ops));
    add_first_op();
    if (rng_.one_in(3)) add_quantized_product(graph_, rng_);
    for (int tries = 0; graph_.op_count() < ops && tries < 400; ++tries) add_op(rng_.pick(kinds_), std::nullopt);
    return graph_.finish();
  }

 private:
  // Consecutive seeds start with consecutive kinds. After each round of all kinds, the next round uses the next type
  // combination of the schema.
  void add_first_op() {
    const OpSchema& schema = schema_of(kinds_[seed_ % kinds_.size()]);
    const std::vector<Types> combinations = type_combinations(schema);
    const Types types = combinations[seed_ / kinds_.size() % combinations.size()];
    for (int tries = 0; graph_.op_count() == 0 && tries < 200; ++tries) add_op(schema.kind, types);
  }

  // Adds nothing if the schema rejects these types, shapes and attributes. Without `types`, they are drawn.
  void add_op(OpKind kind, const std::optional<Types>& types) {
    RecipeBuilder::State before = graph_.state();
    if (!try_op(schema_of(kind), types)) graph_.restore(std::move(before));
  }

  bool try_op(const OpSchema& schema, const std::optional<Types>& wanted_types) {
    Types types = wanted_types ? *wanted_types : random_types(schema, rng_);
    if (types.empty() && !schema.types.empty()) return false;
    const std::optional<uint64_t> first = wanted_types || rng_.one_in(4) ? std::nullopt : made_for(schema, types);
    const Dims shape = first ? *graph_.tensor(*first).shape : random_shape(schema, rng_);
    if (shape.empty() || (reads_by_index(schema) && std::count(shape.begin(), shape.end(), 0) > 0)) return false;
    Step step{schema.kind, random_attributes(schema, shape, rng_), {}, {}};
    for (const PortSpec* port : existing_inputs(schema, step.attributes)) {
      const DataType dtype = port->type == "any" ? DataType::f32 : types.find(port->type)->second;
      if (port->presence == Presence::optional && (says_a_shape(*port) || rng_.one_in(2))) {
        step.inputs.push_back(kNoTensor);
        continue;
      }
      const bool is_first = step.inputs.empty();
      const int64_t times = port->presence == Presence::variadic ? rng_.from(1, 3) : 1;
      for (int64_t i = 0; i < times; ++i)
        step.inputs.push_back(is_first && i == 0 && first ? *first
                                                          : operand(schema, *port, step, shape, dtype, is_first && i == 0));
    }
    while (!step.inputs.empty() && step.inputs.back() == kNoTensor) step.inputs.pop_back();
    if (forward_of(schema.kind) && !take_shapes_of_forward(schema, step, shape)) return false;
    for (const PortSpec* port : existing_outputs(schema, step.attributes)) {
      const bool is_left_out = port->presence == Presence::optional && rng_.one_in(2);
      step.outputs.push_back(is_left_out ? kNoTensor : graph_.new_tensor(types.find(port->type)->second));
    }
    return graph_.add(step);
  }

  // Returns a value whose type the first input accepts, and completes `types` to match.
  std::optional<uint64_t> made_for(const OpSchema& schema, Types& types) {
    const std::vector<uint64_t>& made = graph_.made();
    if (made.empty() || schema.inputs.empty() || multiplies_many(schema, schema.inputs.front())) return std::nullopt;
    const auto size = static_cast<int64_t>(made.size());
    for (int tries = 0; tries < 20; ++tries) {
      const int64_t back = rng_.below(rng_.one_in(3) ? size : std::min<int64_t>(3, size));  // usually a recent one
      const uint64_t id = made[static_cast<size_t>(size - 1 - back)];
      Types fitting = random_types(schema, rng_);
      const auto type = fitting.find(schema.inputs.front().type);
      const DataType dtype = graph_.tensor(id).dtype;
      if ((type != fitting.end() && type->second != dtype) || shows_sign_of_nan(schema, dtype)) continue;
      if (fitting.size() == types.size()) types = std::move(fitting);
      return id;
    }
    return std::nullopt;
  }

  uint64_t operand(const OpSchema& schema, const PortSpec& port, const Step& step, const Dims& shape, DataType dtype,
                   bool is_first) {
    const Dims wanted = is_first ? shape : operand_shape(schema, port, step.attributes, shape, rng_);
    std::vector<uint64_t> fitting;
    for (const uint64_t id : graph_.made()) {
      const LogicalTensor& tensor = graph_.tensor(id);
      if (tensor.dtype == dtype && *tensor.shape == wanted) fitting.push_back(id);
    }
    const bool may_be_any = !is_parameter(port.role) && port.name != "indices" && !shows_sign_of_nan(schema, dtype) &&
                            !multiplies_many(schema, port);
    if (!fitting.empty() && may_be_any && rng_.one_in(2)) return rng_.pick(fitting);
    return graph_.input(dtype, wanted, schema.traits.contracts && !is_first);
  }

  // diff_dst has the shape of the forward op's output for a src of `shape`.
  bool take_shapes_of_forward(const OpSchema& schema, Step& step, const Dims& shape) {
    const OpSchema& forward = schema_of(*forward_of(schema.kind));
    Recipe alone;
    Step op{forward.kind, {}, {}, {1000}};
    for (const auto& [name, value] : step.attributes) {
      if (forward.find_attribute(name) != nullptr) op.attributes[name] = value;
    }
    if (forward.find_attribute("rounding_type") != nullptr) op.attributes["rounding_type"] = std::string("floor");
    const DataType dtype = graph_.tensor(step.inputs.front()).dtype;
    const auto add = [&](uint64_t id, const Dims& dims) {
      alone.tensors[id] = {id, dtype, dims, LayoutType::strided, dense_strides(dims), PropertyType::undef};
      op.inputs.push_back(id);
    };
    add(1, shape);
    const PortSpec weights{.name = "weights", .type = "T"};
    const bool has_weights = forward.inputs.size() > 1 && forward.inputs[1].name == "weights";
    const Dims filter = has_weights ? operand_shape(forward, weights, op.attributes, shape, rng_) : Dims{};
    if (has_weights) add(2, filter);
    alone.tensors[1000] = {1000, dtype, std::nullopt, LayoutType::undef, {}, PropertyType::undef};
    alone.steps.push_back(op);
    const std::optional<Dims> dst = RecipeBuilder::shape_made(alone, 1000);
    if (!dst) return false;
    for (size_t port = 0; port < step.inputs.size(); ++port) {
      const std::string& name = schema.inputs[port].name;
      if (step.inputs[port] == kNoTensor) continue;
      const DataType own = graph_.tensor(step.inputs[port]).dtype;
      if (name == "diff_dst") step.inputs[port] = graph_.input(own, *dst);
      if (name == "src") step.inputs[port] = graph_.input(own, shape);
      if (name == "weights") step.inputs[port] = graph_.input(own, filter, true);
    }
    for (const auto& [attribute, dims] : {std::pair{"src_shape", shape}, {"weights_shape", filter}, {"dst_shape", shape}}) {
      if (schema.find_attribute(attribute) != nullptr) step.attributes[attribute] = dims;
    }
    return true;
  }

  uint64_t seed_;
  Rng rng_;
  const RandomGraphs& wanted_;
  RecipeBuilder graph_;
  std::vector<OpKind> kinds_;
};

}  // namespace

Recipe random_recipe(uint64_t seed, const RandomGraphs& wanted) { return RecipeMaker(seed, wanted).make(); }

}  // namespace lamina::testing
