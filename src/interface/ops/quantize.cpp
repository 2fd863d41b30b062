// Conversions between types: TypeCast, and quantisation with constant or with run-time scales.
#include <algorithm>
#include <cmath>

#include "interface/ops/parts.h"

namespace lamina {

using namespace parts;

namespace {

// ---- constant scales and zero points

std::string finite_and_not_zero(const Attribute& value) {
  for (float scale : std::get<std::vector<float>>(value))
    if (!std::isfinite(scale) || scale == 0) return "finite numbers other than 0";
  return std::get<std::vector<float>>(value).empty() ? "one entry or more" : "";
}

AttributeSpec quantized_axis() { return parts::axis(1); }

std::vector<AttributeSpec> static_attributes() {
  return {choice("qtype", "per_tensor", {"per_tensor", "per_channel"}, "one scale for all, or one for each element of axis"),
          quantized_axis(),
          {.name = "scales",
           .type = AttributeType::f32_list,
           .required = true,
           .check = finite_and_not_zero,
           .meaning = "one entry, or one for each element of axis",
           .example = std::vector<float>{0.25F}},
          {.name = "zps", .type = AttributeType::s64_list, .meaning = "zero points, as many as scales; absent: 0"}};
}

const LogicalTensor* quantized_tensor(const OpView& view) {
  return view.op().kind == OpKind::Quantize ? view.output("dst") : view.input("src");
}

void check_zero_points(const OpView& view, size_t scale_count) {
  if (!view.op().has_attribute("zps")) return;
  const auto& zps = view.attribute<std::vector<int64_t>>("zps");
  const LogicalTensor* quantized = quantized_tensor(view);
  if (zps.empty()) return;
  if (is_floating(quantized->dtype))
    view.fail(join("attribute zps is given, allowed is none with ", name_of(quantized->dtype)));
  if (zps.size() != scale_count)
    view.fail(join("attribute zps has ", zps.size(), " entries, allowed is ", scale_count, ", as many as scales"));
  const bool is_signed = quantized->dtype == DataType::s8;
  const int64_t low = is_signed ? -128 : 0;
  const int64_t high = is_signed ? 127 : 255;
  for (int64_t zero_point : zps)
    if (zero_point < low || zero_point > high)
      view.fail(join("attribute zps contains ", zero_point, ", allowed is ", low, "..", high, ", the range of ",
                     name_of(quantized->dtype)));
}

void check_static(const OpView& view) {
  const size_t scale_count = view.attribute<std::vector<float>>("scales").size();
  const bool per_tensor = view.attribute<std::string>("qtype") == "per_tensor";
  if (per_tensor && scale_count != 1)
    view.fail(join("attribute scales has ", scale_count, " entries, allowed is 1 because qtype is per_tensor"));
  check_zero_points(view, scale_count);
  const Dims* src = known_shape(view, "src");
  if (per_tensor || src == nullptr) return;
  const int64_t extent = (*src)[static_cast<size_t>(normalized_axis(view, "axis", static_cast<int>(src->size())))];
  // Weights of a grouped ConvTranspose have one scale per group and channel, on an axis that the groups share; only that op
  // can use them (see fault_of_scales).
  const bool grouped = extent == 1 && scale_count > 1;
  if (!grouped && !dims_agree(extent, static_cast<int64_t>(scale_count)))
    view.fail(join("attribute scales has ", scale_count, " entries, allowed is ", extent, ", the extent of axis ",
                   view.attribute<int64_t>("axis")));
}

OpSchema like_src(OpKind kind, std::string formula) {
  return {.kind = kind,
          .op_class = OpClass::elementwise,
          .formula = std::move(formula),
          .inputs = {port("src", "T1")},
          .outputs = {port("dst", "T2", "shape of src")},
          .infer_shapes = [](const OpView& view) { return outputs_like(view, "src", {"dst"}); }};
}

// Exceeds the range of dst by a tenth at both ends, so that saturation occurs. f8's range exceeds what data need.
std::optional<Domain> quantizable(const OpView& view, const LogicalTensor&) {
  const auto& scales = view.attribute<std::vector<float>>("scales");
  const double scale = std::abs(static_cast<double>(*std::max_element(scales.begin(), scales.end())));
  const DataType type = view.output("dst")->dtype;
  if (is_floating(type)) return suits(-8 * scale, 8 * scale);
  const double low = type == DataType::s8 ? -128 : 0, high = type == DataType::s8 ? 127 : 255;
  double zero_point = 0;
  if (view.op().has_attribute("zps") && !view.attribute<std::vector<int64_t>>("zps").empty())
    zero_point = static_cast<double>(view.attribute<std::vector<int64_t>>("zps").front());
  const double margin = 0.1 * (high - low);
  return suits(scale * (low - zero_point - margin), scale * (high - zero_point + margin));
}

std::vector<DataType> quantized_types() {
  std::vector<DataType> types{DataType::u8, DataType::s8};
  const std::vector<DataType> floats = small_floats_of(8);
  types.insert(types.end(), floats.begin(), floats.end());
  return types;
}

// ---- run-time scales and zero points

std::vector<AttributeSpec> dynamic_attributes(std::vector<std::string> qtypes) {
  return {choice("qtype", "per_tensor", std::move(qtypes), "elements that share a scale"), quantized_axis()};
}

PortSpec scales(std::string type, std::string meaning) {
  return within(needs(0.01, 0.02), port("scales", std::move(type), std::move(meaning)));
}

// The middle of the type's range.
std::optional<Domain> middling(const OpView&, const LogicalTensor& tensor) {
  switch (tensor.dtype) {
    case DataType::u8: return needs(100, 150);
    case DataType::u4: return needs(4, 11);
    case DataType::s4: return needs(-3, 3);
    default: return needs(-8, 8);
  }
}

PortSpec zero_points(std::string type, std::string meaning) {
  return within({"in the middle of the range of the type", middling},
                optional_port("zps", std::move(type), std::move(meaning)));
}

void require_single(const OpView& view, std::string_view input) {
  const Dims* shape = known_shape(view, input);
  if (shape == nullptr || shape->empty() || dims_agree(*shape, {1})) return;
  view.fail_shape(join("input ", input, " has shape ", describe(*shape), ", allowed is [1] because qtype is per_tensor"));
}

void require_per_channel(const OpView& view, std::string_view input, int64_t extent, bool one_is_fine) {
  const Dims* shape = known_shape(view, input);
  if (shape == nullptr || dims_agree(*shape, {extent}) || (one_is_fine && dims_agree(*shape, {1}))) return;
  view.fail_shape(join("input ", input, " has shape ", describe(*shape), ", allowed is [", extent,
                       "], the extent of the axis, because qtype is per_channel"));
}

// Entry i of the group sizes divides extent i of src; scales has one entry per group.
void check_groups(const OpView& view, const Dims& src) {
  const bool given = view.op().has_attribute("group_shape");
  const Dims group = given ? view.attribute<std::vector<int64_t>>("group_shape") : Dims{};
  if (group.size() != src.size())
    view.fail(join("attribute group_shape has ", group.size(), " entries, allowed is ", src.size(), ", one per axis of src"));
  Dims expected(src.size());
  for (size_t i = 0; i < src.size(); ++i) {
    if (src[i] != kUnknownDim && src[i] % group[i] != 0)
      view.fail(join("attribute group_shape is ", describe(group), ", allowed is divisors of src ", describe(src)));
    expected[i] = src[i] == kUnknownDim ? kUnknownDim : src[i] / group[i];
  }
  for (const char* input : {"scales", "zps"}) require_shape(view, input, expected, "the groups of src");
}

void check_dynamic(const OpView& view) {
  const auto& qtype = view.attribute<std::string>("qtype");
  if (qtype == "per_tensor") {
    for (const char* input : {"scales", "zps"}) require_single(view, input);
    return;
  }
  const Dims* src = known_shape(view, "src");
  if (src == nullptr) return;
  if (qtype == "per_group") return check_groups(view, *src);
  const int64_t extent = (*src)[static_cast<size_t>(normalized_axis(view, "axis", static_cast<int>(src->size())))];
  require_per_channel(view, "scales", extent, false);
  require_per_channel(view, "zps", extent, true);
}

}  // namespace
}  // namespace lamina

LAMINA_SCHEMA(TypeCast) {
  OpSchema schema = like_src(OpKind::TypeCast, "dst = src in another type");
  std::vector<DataType> types = numbers();
  const std::vector<DataType> bytes = small_floats_of(8);
  types.insert(types.end(), bytes.begin(), bytes.end());
  types.push_back(DataType::boolean);
  schema.types = {{"T1", types}, {"T2", types}};
  schema.check_types = [](const TypeOf& type_of) -> std::string {
    const DataType from = type_of("T1");
    const DataType to = type_of("T2");
    if (from == to) return "two different types";
    const auto narrow = [](DataType type) { return is_floating(type) && bits_of(type) <= 16; };
    return narrow(from) && narrow(to) ? "no float of 16 or 8 bits to another one" : "";
  };
  schema.type_rule_text =
      "two different types; not a float of 16 or 8 bits to another one. To an integer: fractions are cut off, values outside "
      "of its range "
      "become its nearest end, NaN becomes 0; other integers wrap around; boolean is 1 for all values but 0";
  schema.traits = {.copies = true, .converts = true};
  return schema;
}

LAMINA_SCHEMA(Quantize) {
  OpSchema schema = like_src(OpKind::Quantize, "dst = saturate(round(src / scale + zp)), or src / scale as f8");
  schema.inputs.front().domain = DomainRule{"the range of dst, extended by a tenth at both ends", quantizable};
  schema.traits.jumps = true;
  schema.attributes = static_attributes();
  schema.types = {{"T1", {DataType::f32}}, {"T2", quantized_types()}};
  schema.check = check_static;
  return schema;
}

LAMINA_SCHEMA(Dequantize) {
  OpSchema schema = like_src(OpKind::Dequantize, "dst = (src - zp) * scale");
  schema.attributes = static_attributes();
  schema.types = {{"T1", quantized_types()}, {"T2", {DataType::f32}}};
  schema.check = check_static;
  return schema;
}

LAMINA_SCHEMA(DynamicQuantize) {
  OpSchema schema = like_src(OpKind::DynamicQuantize, "dst = saturate(round(src / scale + zp))");
  schema.nest = LoopNest::scales;
  schema.inputs = {within(suits(-2, 2), port("src", "T1")), scales("T1", "[1] or [extent of axis]"),
                   zero_points("T2", "[1] or [extent of axis]")};
  schema.traits.jumps = true;
  schema.outputs = {port("dst", "T3", "shape of src")};
  schema.attributes = dynamic_attributes({"per_tensor", "per_channel"});
  schema.types = {
      {"T1", {DataType::f32}}, {"T2", {DataType::u8, DataType::s8, DataType::s32}}, {"T3", {DataType::u8, DataType::s8}}};
  schema.check = check_dynamic;
  schema.example = {.inputs = {{2, 3}, {1}}};
  return schema;
}

LAMINA_SCHEMA(DynamicDequantize) {
  OpSchema schema = like_src(OpKind::DynamicDequantize, "dst = (src - zp) * scale");
  schema.nest = LoopNest::scales;
  schema.inputs = {port("src", "T1"), scales("T2", "[1], [extent of axis], or one entry a group"),
                   zero_points("T3", "shape of scales")};
  schema.attributes = dynamic_attributes({"per_tensor", "per_channel", "per_group"});
  schema.attributes.push_back({.name = "group_shape",
                               .type = AttributeType::s64_list,
                               .check = at_least_one,
                               .meaning = "per_group: the size of a group along each axis of src"});
  schema.types = {{"T1", {DataType::u8, DataType::s8, DataType::s4, DataType::u4}},
                  {"T2", floats_of_opset()},
                  {"T3", {DataType::u4, DataType::s4, DataType::u8, DataType::s8, DataType::s32}}};
  schema.check = check_dynamic;
  schema.example = {.inputs = {{2, 3}, {1}}};
  return schema;
}
