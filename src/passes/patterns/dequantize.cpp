#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interface/data_type.h"
#include "passes/patterns/all.h"

namespace lamina::pattern {
namespace {

//   src ──> (StaticReshape) ──> cast ──> Subtract <── cast <── (StaticReshape) <── zps
//                                            └──> Multiply <── (StaticReshape) <── scales
//                                                    └──> (StaticReshape) ──> dst
// The reshapes divide axes of src into groups, and put them together. The differences of integers of 8 bits are exact in every
// float type, so the formula rounds once, as DynamicDequantize does.
Term reshaped(std::string name) { return maybe(OpKind::StaticReshape, value(std::move(name))); }

// A cast of integers is a TypeCast, or a Dequantize that changes no number.
bool changes_nothing(const Op& op) {
  const auto& scales = op.attribute<std::vector<float>>("scales");
  if (scales.size() != 1 || scales.front() != 1) return false;
  if (!op.has_attribute("zps")) return true;
  const auto& zero_points = op.attribute<std::vector<int64_t>>("zps");
  return std::all_of(zero_points.begin(), zero_points.end(), [](int64_t zero_point) { return zero_point == 0; });
}

Term cast(const Term& integers) {
  const Term once = either({op(OpKind::Dequantize, {integers}).where(changes_nothing), op(OpKind::TypeCast, {integers})});
  return maybe(OpKind::TypeCast, once);
}

Term written_out() {
  const Term src = cast(reshaped("src"));
  const Term difference = op(OpKind::Subtract, {src, cast(reshaped("zps"))}).named("difference");
  return maybe(OpKind::StaticReshape, (either({difference, src}) * reshaped("scales")).named("product"));
}

bool is_reshape(const Graph& /*graph*/, const Op& op) { return op.kind == OpKind::StaticReshape; }

const Dims* shape_of(const Graph& graph, ValueIndex value) {
  const LogicalTensor& tensor = graph.tensor(value);
  return tensor.shape && std::count(tensor.shape->begin(), tensor.shape->end(), kUnknownDim) == 0 ? &*tensor.shape : nullptr;
}

// Whether a value is this source, or a reshape of it.
bool is_reshape_of(const Graph& graph, ValueIndex value, ValueIndex source) {
  while (value != source) {
    const int producer = graph.value(value).producer.op;
    if (producer < 0 || !is_reshape(graph, graph.op(producer))) return false;
    value = graph.op(producer).inputs[0];
  }
  return true;
}

// Along each axis of src, the number of groups. The product has the shape `divided`, with the axes of src or two for each of
// them; the factor that scales it has one entry per group.
std::optional<Dims> groups_along(const Dims& src, const Dims& divided, Dims factor) {
  if (factor.size() < divided.size()) factor.insert(factor.begin(), divided.size() - factor.size(), 1);
  Dims groups;
  size_t at = 0;
  for (const int64_t extent : src) {
    if (at >= divided.size()) return std::nullopt;
    if (divided[at] == extent && (factor[at] == extent || factor[at] == 1)) {
      groups.push_back(factor[at++]);
      continue;
    }
    if (at + 1 >= divided.size() || divided[at] * divided[at + 1] != extent) return std::nullopt;
    if (factor[at] != divided[at] || factor[at + 1] != 1) return std::nullopt;
    groups.push_back(divided[at]);
    at += 2;
  }
  return at == divided.size() ? std::optional(groups) : std::nullopt;
}

const std::vector<ValueIndex>& inputs_of(const Match& match, std::string_view made) {
  const Graph& graph = match.graph();
  return graph.op(graph.value(match.made(made).front()).producer.op).inputs;
}

// The groups of the scales. Zero points must have the same.
std::optional<Dims> groups_of(const Match& match) {
  const Graph& graph = match.graph();
  const Dims *const src = shape_of(graph, match.value("src")), *const dst = shape_of(graph, match.root_op().outputs[0]);
  const Dims* const divided = shape_of(graph, match.made("product").front());
  if (src == nullptr || divided == nullptr || dst == nullptr || *src != *dst) return std::nullopt;
  const auto groups_in = [&](ValueIndex factor) {
    const Dims* const shape = shape_of(graph, factor);
    return shape == nullptr ? std::nullopt : groups_along(*src, *divided, *shape);
  };
  const std::vector<ValueIndex>& factors = inputs_of(match, "product");
  const size_t scales = is_reshape_of(graph, factors[0], match.value("scales")) ? 0 : 1;
  const std::optional<Dims> groups = groups_in(factors[scales]);
  if (match.has("zps") && groups_in(inputs_of(match, "difference")[1]) != groups) return std::nullopt;
  return groups;
}

// The attributes with which DynamicDequantize takes scales of this shape.
std::optional<Attributes> attributes_for(const Dims& src, const Dims& groups, const Dims& scales) {
  const auto is_divided = [](int64_t count) { return count != 1; };
  const auto divided = std::count_if(groups.begin(), groups.end(), is_divided);
  if (divided == 0 && (scales.empty() || scales == Dims{1})) return Attributes{{"qtype", std::string("per_tensor")}};
  const auto axis = std::find_if(groups.begin(), groups.end(), is_divided) - groups.begin();
  if (divided == 1 && groups[static_cast<size_t>(axis)] == src[static_cast<size_t>(axis)] && scales.size() == 1 &&
      scales.front() == src[static_cast<size_t>(axis)])
    return Attributes{{"qtype", std::string("per_channel")}, {"axis", static_cast<int64_t>(axis)}};
  if (scales != groups) return std::nullopt;
  Dims group = src;
  for (size_t i = 0; i < group.size(); ++i) group[i] /= groups[i];
  return Attributes{{"qtype", std::string("per_group")}, {"group_shape", group}};
}

std::optional<Attributes> attributes_of(const Match& match) {
  const Graph& graph = match.graph();
  const std::optional<Dims> groups = groups_of(match);
  const Dims* const scales = shape_of(graph, match.value("scales"));
  if (!groups || scales == nullptr) return std::nullopt;
  if (match.has("zps")) {  // wider integers need not be exact as floats
    const Dims* const zero_points = shape_of(graph, match.value("zps"));
    if (zero_points == nullptr || *zero_points != *scales) return std::nullopt;
    if (bits_of(graph.tensor(match.value("zps")).dtype) > 8) return std::nullopt;
  }
  return attributes_for(*shape_of(graph, match.value("src")), *groups, *scales);
}

}  // namespace

Decomposition dequantize() {
  return {{"dequantize", written_out(), is_reshape, [](const Match& match) { return attributes_of(match).has_value(); }},
          [](const Match& match) {
            RaisedOp op{OpKind::DynamicDequantize,
                        *attributes_of(match),
                        {{"src", match.value("src")}, {"scales", match.value("scales")}}};
            if (match.has("zps")) op.inputs.emplace_back("zps", match.value("zps"));
            return op;
          }};
}

}  // namespace lamina::pattern
