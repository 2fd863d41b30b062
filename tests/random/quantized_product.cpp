#include "random/quantized_product.h"

#include <algorithm>
#include <cmath>

#include "interface/op_schema.h"
#include "interface/type_rules.h"
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

std::string granularity(const std::vector<std::string>& allowed, const Dims& shape, Rng& rng) {
  return shape.empty() ? "per_tensor" : rng.pick(allowed);
}

int64_t zero_point(DataType dtype, Rng& rng) {
  switch (dtype) {
    case DataType::u8: return rng.pick({int64_t{0}, int64_t{128}, int64_t{255}, int64_t{3}});
    case DataType::s8: return rng.pick({int64_t{0}, int64_t{0}, int64_t{-128}, int64_t{7}});
    default: return 0;
  }
}

// Dequantizes `source` with scales from attributes.
std::optional<uint64_t> by_constant_scales(RecipeBuilder& graph, uint64_t source, Rng& rng) {
  const LogicalTensor tensor = graph.tensor(source);
  Attributes attributes{{"qtype", granularity({"per_tensor", "per_tensor", "per_channel"}, *tensor.shape, rng)}};
  const int64_t axis = tensor.shape->empty() ? 0 : rng.below(static_cast<int64_t>(tensor.shape->size()));
  const bool by_channel = std::get<std::string>(attributes["qtype"]) == "per_channel";
  const auto count = static_cast<size_t>(by_channel ? (*tensor.shape)[static_cast<size_t>(axis)] : 1);
  std::vector<float> scales(count);
  for (float& scale : scales) scale = rng.pick({0.02F, 0.05F, 0.1F, 0.5F});
  attributes["axis"] = axis;
  attributes["scales"] = scales;
  if (!is_floating(tensor.dtype) && !rng.one_in(4))
    attributes["zps"] = std::vector<int64_t>(count, zero_point(tensor.dtype, rng));
  return graph.add(OpKind::Dequantize, attributes, {source}, f32);
}

// Dequantizes `source` with scales from a tensor.
std::optional<uint64_t> by_given_scales(RecipeBuilder& graph, uint64_t source, DataType as, Rng& rng) {
  const OpSchema& schema = schema_of(OpKind::DynamicDequantize);
  const LogicalTensor tensor = graph.tensor(source);
  Attributes attributes{{"qtype", granularity({"per_tensor", "per_channel", "per_group"}, *tensor.shape, rng)},
                        {"axis", rng.below(static_cast<int64_t>(std::max<size_t>(tensor.shape->size(), 1)))}};
  if (std::get<std::string>(attributes["qtype"]) == "per_group") attributes["group_shape"] = random_groups(*tensor.shape, rng);
  const Dims shape = operand_shape(schema, schema.inputs[1], attributes, *tensor.shape, rng);
  std::vector<uint64_t> inputs = {source, graph.input(as, shape, true)};
  if (rng.one_in(2)) inputs.push_back(graph.input(tensor.dtype, shape, true));
  return graph.add(OpKind::DynamicDequantize, attributes, inputs, as);
}

// Returns one factor of the product in type `as`.
std::optional<uint64_t> factor(RecipeBuilder& graph, const Dims& shape, DataType as, bool is_weights, Rng& rng) {
  if (rng.one_in(is_weights ? 12 : 6)) return graph.input(as, shape, is_weights);
  if (rng.one_in(is_weights ? 3 : 6)) {
    const DataType dtype = rng.pick({u8, s8, DataType::u4, DataType::s4});
    return by_given_scales(graph, graph.input(dtype, shape, is_weights), as, rng);
  }
  const DataType dtype = rng.one_in(8) ? rng.pick(small_floats_of(8)) : rng.pick({u8, s8});
  const std::optional<uint64_t> value = by_constant_scales(graph, graph.input(dtype, shape, is_weights), rng);
  return !value || as == f32 ? value : graph.add(OpKind::TypeCast, {}, {*value}, as);
}

std::optional<uint64_t> product(RecipeBuilder& graph, Rng& rng) {
  const OpSchema& schema = schema_of(rng.one_in(2) ? OpKind::MatMul : rng.pick(kinds_that_contract()));
  Dims shape = random_shape(schema, rng);
  if (rng.one_in(2)) shape.back() = rng.pick({int64_t{32}, int64_t{64}, int64_t{128}, int64_t{256}});
  const Attributes attributes = random_attributes(schema, shape, rng);
  const DataType as = rng.one_in(2) ? f32 : rng.pick({DataType::bf16, DataType::f16});
  const auto src = factor(graph, shape, as, false, rng);
  if (!src) return std::nullopt;
  const auto weights = factor(graph, operand_shape(schema, schema.inputs[1], attributes, shape, rng), as, true, rng);
  if (!weights) return std::nullopt;
  return graph.add(schema.kind, attributes, {*src, *weights}, as);
}

bool add_factors_and_product(RecipeBuilder& graph, Rng& rng) {
  std::optional<uint64_t> dst = product(graph, rng);
  if (!dst) return false;
  if (rng.one_in(3)) dst = graph.add(OpKind::ReLU, {}, {*dst}, graph.tensor(*dst).dtype);
  if (rng.one_in(2) || !dst) return true;
  if (graph.tensor(*dst).dtype != f32) dst = graph.add(OpKind::TypeCast, {}, {*dst}, f32);
  if (!dst) return true;
  const float scale = rng.pick({0.05F, 0.3F, 1.0F});
  const DataType as = rng.pick({u8, s8});
  graph.add(OpKind::Quantize,
            {{"qtype", std::string("per_tensor")},
             {"scales", std::vector<float>{scale}},
             {"zps", std::vector<int64_t>{zero_point(as, rng)}}},
            {*dst}, as);
  return true;
}

}  // namespace

bool add_quantized_product(RecipeBuilder& graph, Rng& rng) {
  const RecipeBuilder::State before = graph.state();
  for (int tries = 0; tries < 5; ++tries) {
    if (add_factors_and_product(graph, rng)) return true;
    graph.restore(before);
  }
  return false;
}

}  // namespace lamina::testing
