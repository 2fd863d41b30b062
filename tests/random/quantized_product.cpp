#include "random/quantized_product.h"

#include <algorithm>
#include <cmath>

#include "interface/op_schema.h"
#include "random/random_op.h"

namespace lamina::testing {

namespace {

constexpr DataType f32 = DataType::f32, u8 = DataType::u8, s8 = DataType::s8;

std::vector<OpKind> kinds_that_contract() {
  std::vector<OpKind> kinds;
  for (const OpKind kind : all_op_kinds()) {
    const OpSchema& schema = schema_of(kind);
    if (schema.traits.contracts && schema.inputs.size() > 1 && schema.inputs[1].name == "weights") kinds.push_back(kind);
  }
  return kinds;
}

std::string granularity(const std::vector<std::string>& allowed, const Dims& shape, Dice& dice) {
  return shape.empty() ? "per_tensor" : dice.pick(allowed);
}

int64_t zero_point(DataType dtype, Dice& dice) {
  switch (dtype) {
    case DataType::u8: return dice.pick({int64_t{0}, int64_t{128}, int64_t{255}, int64_t{3}});
    case DataType::s8: return dice.pick({int64_t{0}, int64_t{0}, int64_t{-128}, int64_t{7}});
    default: return 0;
  }
}

// Scales that attributes hold.
std::optional<uint64_t> by_constant_scales(RecipeBuilder& graph, uint64_t source, Dice& dice) {
  const LogicalTensor tensor = graph.tensor(source);
  Attributes attributes{{"qtype", granularity({"per_tensor", "per_tensor", "per_channel"}, *tensor.shape, dice)}};
  const int64_t axis = tensor.shape->empty() ? 0 : dice.below(static_cast<int64_t>(tensor.shape->size()));
  const bool by_channel = std::get<std::string>(attributes["qtype"]) == "per_channel";
  const auto count = static_cast<size_t>(by_channel ? (*tensor.shape)[static_cast<size_t>(axis)] : 1);
  std::vector<float> scales(count);
  for (float& scale : scales) scale = dice.pick({0.02F, 0.05F, 0.1F, 0.5F});
  attributes["axis"] = axis;
  attributes["scales"] = scales;
  if (!is_floating(tensor.dtype) && !dice.one_in(4))
    attributes["zps"] = std::vector<int64_t>(count, zero_point(tensor.dtype, dice));
  return graph.add(OpKind::Dequantize, attributes, {source}, f32);
}

// Scales that a tensor holds.
std::optional<uint64_t> by_given_scales(RecipeBuilder& graph, uint64_t source, DataType as, Dice& dice) {
  const OpSchema& schema = schema_of(OpKind::DynamicDequantize);
  const LogicalTensor tensor = graph.tensor(source);
  Attributes attributes{{"qtype", granularity({"per_tensor", "per_channel", "per_group"}, *tensor.shape, dice)},
                        {"axis", dice.below(static_cast<int64_t>(std::max<size_t>(tensor.shape->size(), 1)))}};
  if (std::get<std::string>(attributes["qtype"]) == "per_group") attributes["group_shape"] = random_groups(*tensor.shape, dice);
  const Dims shape = operand_shape(schema, schema.inputs[1], attributes, *tensor.shape, dice);
  std::vector<uint64_t> inputs = {source, graph.input(as, shape, true)};
  if (dice.one_in(2)) inputs.push_back(graph.input(tensor.dtype, shape, true));
  return graph.add(OpKind::DynamicDequantize, attributes, inputs, as);
}

// A factor of type `as`.
std::optional<uint64_t> factor(RecipeBuilder& graph, const Dims& shape, DataType as, bool is_weights, Dice& dice) {
  if (dice.one_in(is_weights ? 12 : 6)) return graph.input(as, shape, is_weights);
  if (dice.one_in(is_weights ? 3 : 6)) {
    const DataType dtype = dice.pick({u8, s8, DataType::u4, DataType::s4});
    return by_given_scales(graph, graph.input(dtype, shape, is_weights), as, dice);
  }
  const DataType dtype = dice.one_in(8) ? dice.pick({DataType::f8_e4m3, DataType::f8_e5m2}) : dice.pick({u8, s8});
  const std::optional<uint64_t> value = by_constant_scales(graph, graph.input(dtype, shape, is_weights), dice);
  return !value || as == f32 ? value : graph.add(OpKind::TypeCast, {}, {*value}, as);
}

std::optional<uint64_t> product(RecipeBuilder& graph, Dice& dice) {
  const OpSchema& schema = schema_of(dice.one_in(2) ? OpKind::MatMul : dice.pick(kinds_that_contract()));
  Dims shape = random_shape(schema, dice);
  if (dice.one_in(2)) shape.back() = dice.pick({int64_t{32}, int64_t{64}, int64_t{128}, int64_t{256}});
  const Attributes attributes = random_attributes(schema, shape, dice);
  const DataType as = dice.one_in(2) ? f32 : dice.pick({DataType::bf16, DataType::f16});
  const auto src = factor(graph, shape, as, false, dice);
  if (!src) return std::nullopt;
  const auto weights = factor(graph, operand_shape(schema, schema.inputs[1], attributes, shape, dice), as, true, dice);
  if (!weights) return std::nullopt;
  return graph.add(schema.kind, attributes, {*src, *weights}, as);
}

bool add_factors_and_product(RecipeBuilder& graph, Dice& dice) {
  std::optional<uint64_t> dst = product(graph, dice);
  if (!dst) return false;
  if (dice.one_in(3)) dst = graph.add(OpKind::ReLU, {}, {*dst}, graph.tensor(*dst).dtype);
  if (dice.one_in(2) || !dst) return true;
  if (graph.tensor(*dst).dtype != f32) dst = graph.add(OpKind::TypeCast, {}, {*dst}, f32);
  if (!dst) return true;
  const float scale = dice.pick({0.05F, 0.3F, 1.0F});
  const DataType as = dice.pick({u8, s8});
  graph.add(OpKind::Quantize,
            {{"qtype", std::string("per_tensor")},
             {"scales", std::vector<float>{scale}},
             {"zps", std::vector<int64_t>{zero_point(as, dice)}}},
            {*dst}, as);
  return true;
}

}  // namespace

bool add_quantized_product(RecipeBuilder& graph, Dice& dice) {
  const RecipeBuilder::State before = graph.state();
  for (int tries = 0; tries < 5; ++tries) {
    if (add_factors_and_product(graph, dice)) return true;
    graph.restore(before);
  }
  return false;
}

}  // namespace lamina::testing
