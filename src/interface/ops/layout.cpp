// Ops that move values: reshape, transpose, reorder, concatenation, slice, expand; and GenIndex, whose values are positions.
#include <algorithm>

#include "interface/ops/parts.h"

namespace lamina {

using namespace parts;

namespace {

OpSchema layout(OpKind kind, LoopNest nest, std::string formula) {
  return {.kind = kind,
          .op_class = OpClass::layout,
          .nest = nest,
          .formula = std::move(formula),
          .inputs = {port("src", "T")},
          .outputs = {port("dst", "T")},
          .types = {{"T", all_types()}},
          .traits = {.copies = true}};
}

// ---- StaticReshape

std::string reshape_target(const Attribute& value) {
  const auto& shape = std::get<std::vector<int64_t>>(value);
  const auto deduced = std::count(shape.begin(), shape.end(), -1);
  const bool legal = std::all_of(shape.begin(), shape.end(), [](int64_t dim) { return dim >= -1; });
  if (!legal || deduced > 1) return "entries of -1 or more, at most one of them -1";
  return shape.size() <= static_cast<size_t>(kMaxRank) ? "" : join("at most ", kMaxRank, " entries");
}

// The target shape; with special_zero, its zeros are replaced by the extents of src.
Dims copied_target(const OpView& view, const Dims& src) {
  Dims target = view.attribute<std::vector<int64_t>>("shape");
  if (!view.attribute<bool>("special_zero")) return target;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] != 0) continue;
    if (i >= src.size())
      view.fail(join("attribute shape is ", describe(target), ", allowed is a 0 only where src ", describe(src),
                     " has an axis, because special_zero is true"));
    target[i] = src[i];
  }
  return target;
}

// The extent that makes the element counts equal; kUnknownDim if it cannot be determined.
int64_t deduced_extent(const OpView& view, const Dims& src, const Dims& target, size_t place) {
  Dims others = target;
  others[place] = 1;
  const int64_t rest = product_or_unknown(others);
  const int64_t count = product_or_unknown(src);
  if (rest == kUnknownDim || count == kUnknownDim) return kUnknownDim;
  if (rest == 0 || count % rest != 0)
    view.fail(join("attribute shape is ", describe(target), ", allowed is a shape of the ", count, " elements of src ",
                   describe(src)));
  return count / rest;
}

ShapeMap reshape_shapes(const OpView& view) {
  const Dims& src = view.shape("src");
  Dims target = copied_target(view, src);
  const auto place = std::find(target.begin(), target.end(), -1);
  if (place != target.end()) *place = deduced_extent(view, src, target, static_cast<size_t>(place - target.begin()));
  const int64_t count = product_or_unknown(src);
  const int64_t reshaped = product_or_unknown(target);
  if (!dims_agree(count, reshaped))
    view.fail(join("attribute shape is ", describe(target), ", allowed is a shape of the ", count, " elements of src ",
                   describe(src)));
  return {{"dst", target}};
}

// ---- StaticTranspose

// The permutation with negative axes wrapped; an empty `order` reverses the axes.
std::vector<int> permutation(const OpView& view, int rank) {
  const auto& order = view.attribute<std::vector<int64_t>>("order");
  std::vector<int> axes;
  if (order.empty())
    for (int axis = rank - 1; axis >= 0; --axis) axes.push_back(axis);
  for (int64_t axis : order) axes.push_back(axis >= -rank && axis < rank ? wrap_axis(axis, rank) : -1);
  std::vector<int> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  bool legal = sorted.size() == static_cast<size_t>(rank);
  for (size_t i = 0; i < sorted.size(); ++i) legal = legal && sorted[i] == static_cast<int>(i);
  if (!legal)
    view.fail(
        join("attribute order is ", to_string(Attribute(order)), ", allowed is a permutation of the ", rank, " axes of src"));
  return axes;
}

ShapeMap transpose_shapes(const OpView& view) {
  const Dims& src = view.shape("src");
  Dims dst;
  for (int axis : permutation(view, static_cast<int>(src.size()))) dst.push_back(src[static_cast<size_t>(axis)]);
  return {{"dst", dst}};
}

// ---- Concat

constexpr size_t kMaxConcatInputs = 64;

void check_concat(const OpView& view) {
  if (view.input_count() > kMaxConcatInputs)
    view.fail(join(view.input_count(), " inputs are given, allowed is 1..", kMaxConcatInputs));
  if (const Dims* first = known_shape(view, "src_i")) normalized_axis(view, "axis", static_cast<int>(first->size()));
}

// An input may start at any element of the result, which for four-bit types need not be a byte boundary.
std::vector<DataType> types_of_whole_bytes() {
  std::vector<DataType> types = all_types();
  std::erase_if(types, [](DataType dtype) { return bits_of(dtype) < 8; });
  return types;
}

// Extends the joined shape by one more input.
void append_along(const OpView& view, size_t input, size_t axis, Dims& joined) {
  const Dims& next = *view.input_at(input)->shape;
  Dims expected = joined;
  if (axis < next.size() && next.size() == joined.size()) expected[axis] = next[axis];
  if (!dims_agree(expected, next))
    view.fail_shape(join("input ", input, " has shape ", describe(next), ", allowed is ", describe(joined),
                         " with any extent on axis ", axis));
  const bool unknown = joined[axis] == kUnknownDim || next[axis] == kUnknownDim;
  int64_t sum = kUnknownDim;
  if (!unknown && __builtin_add_overflow(joined[axis], next[axis], &sum))
    view.fail_shape("the sum of the extents along the axis does not fit 64 bits");
  joined = joined_dims(expected, next);
  joined[axis] = sum;
}

ShapeMap concat_shapes(const OpView& view) {
  Dims joined = *view.input_at(0)->shape;
  const auto axis = static_cast<size_t>(normalized_axis(view, "axis", static_cast<int>(joined.size())));
  for (size_t i = 1; i < view.input_count(); ++i) append_along(view, i, axis, joined);
  return {{"dst", joined}};
}

// ---- Slice

AttributeSpec optional_list(std::string name, std::string (*check)(const Attribute&), std::string meaning) {
  AttributeSpec spec = required_list(std::move(name), check, std::move(meaning));
  spec.required = false;
  spec.default_value = std::vector<int64_t>{};
  return spec;
}

void check_slice(const OpView& view) {
  const size_t count = view.attribute<std::vector<int64_t>>("starts").size();
  for (const char* const name : {"ends", "axes", "steps"}) {
    const size_t given = view.attribute<std::vector<int64_t>>(name).size();
    if (given == count || (given == 0 && std::string_view(name) != "ends")) continue;
    view.fail(join("attribute ", name, " has ", given, " entries, allowed is ", count, ", as many as starts"));
  }
  if (const Dims* src = known_shape(view, "src")) slices_of(view, *src);
}

ShapeMap slice_shapes(const OpView& view) {
  Dims dst;
  for (const AxisSlice& slice : slices_of(view, view.shape("src"))) dst.push_back(slice.extent);
  return {{"dst", dst}};
}

// ---- Expand

std::string expand_target(const Attribute& value) {
  const auto& shape = std::get<std::vector<int64_t>>(value);
  if (!std::all_of(shape.begin(), shape.end(), [](int64_t dim) { return dim >= -1; })) return "entries of -1 or more";
  return shape.size() <= static_cast<size_t>(kMaxRank) ? "" : join("at most ", kMaxRank, " entries");
}

ShapeMap expand_shapes(const OpView& view) {
  Dims target = view.attribute<std::vector<int64_t>>("shape");
  std::replace(target.begin(), target.end(), int64_t{-1}, int64_t{1});  // -1 and 1 both keep an extent of src
  return {{"dst", broadcast_shapes(view, view.shape("src"), target)}};
}

}  // namespace
}  // namespace lamina

LAMINA_SCHEMA(StaticReshape) {
  OpSchema schema =
      layout(OpKind::StaticReshape, LoopNest::reshaped, "dst = the elements of src in row-major order under a new shape");
  schema.outputs.front().meaning = "attribute shape, as many elements as src";
  schema.attributes = {required_list("shape", reshape_target, "target; one -1 is deduced"),
                       required_flag("special_zero", "true: a 0 in shape copies the extent of src")};
  schema.infer_shapes = reshape_shapes;
  schema.inplace = {{"src", "dst"}};
  schema.example = {.attributes = {{"shape", std::vector<int64_t>{3, 2}}, {"special_zero", false}}};
  return schema;
}

LAMINA_SCHEMA(StaticTranspose) {
  OpSchema schema = layout(OpKind::StaticTranspose, LoopNest::transposed, "axis i of dst is axis order[i] of src");
  schema.outputs.front().meaning = "extents of src in the order of attribute order";
  schema.attributes = {required_list("order", nullptr, "permutation of the axes; empty reverses them")};
  schema.check = [](const OpView& view) {
    if (const Dims* src = known_shape(view, "src")) permutation(view, static_cast<int>(src->size()));
  };
  schema.infer_shapes = transpose_shapes;
  schema.inplace = {{"src", "dst"}};
  schema.example = {.attributes = {{"order", std::vector<int64_t>{1, 0}}}};
  return schema;
}

LAMINA_SCHEMA(Reorder) {
  OpSchema schema = layout(OpKind::Reorder, LoopNest::elementwise, "dst = src in another memory layout");
  schema.outputs.front().meaning = "shape of src";
  schema.infer_shapes = [](const OpView& view) { return outputs_like(view, "src", {"dst"}); };
  return schema;
}

LAMINA_SCHEMA(BitCast) {
  OpSchema schema = layout(OpKind::BitCast, LoopNest::reinterpreted, "dst = the bits of src as elements of another type");
  schema.source = "ONNX BitCast-26";
  schema.inputs = {port("src", "T1")};
  schema.outputs = {port("dst", "T2", "shape of src")};
  std::vector<DataType> numbers = types_of_whole_bytes();
  std::erase(numbers, DataType::boolean);
  schema.types = {{"T1", types_of_whole_bytes()}, {"T2", std::move(numbers)}};
  schema.check_types = [](const TypeOf& type_of) -> std::string {
    const DataType from = type_of("T1"), to = type_of("T2");
    return from != to && bits_of(from) == bits_of(to) ? "" : "two different types of as many bits";
  };
  schema.type_rule_text = "two different types of as many bits";
  schema.infer_shapes = [](const OpView& view) { return outputs_like(view, "src", {"dst"}); };
  schema.traits = {.jumps = true};
  schema.error = 0;
  return schema;
}

LAMINA_SCHEMA(Concat) {
  OpSchema schema = layout(OpKind::Concat, LoopNest::concatenated, "dst = the inputs joined along axis");
  schema.inputs = {{.name = "src_i", .type = "T", .presence = Presence::variadic, .meaning = "1 to 64 tensors"}};
  schema.outputs.front().meaning = "shape of the inputs, their extents along axis added up";
  schema.attributes = {parts::axis(std::nullopt)};
  schema.types = {{"T", types_of_whole_bytes()}};
  schema.check = check_concat;
  schema.infer_shapes = concat_shapes;
  schema.example = {.inputs = {{2, 3}, {2, 4}}, .attributes = {{"axis", int64_t{1}}}};
  return schema;
}

LAMINA_SCHEMA(Slice) {
  OpSchema schema = layout(OpKind::Slice, LoopNest::sliced, "dst[i] = src[starts + i * steps], along each of axes");
  schema.source = "ONNX Slice-13 with constant bounds, steps forward only";
  schema.outputs.front().meaning =
      "extents of src; along each of axes the elements from starts to before ends, in steps of steps";
  schema.attributes = {
      required_list("starts", nullptr, "first element along each axis; negative counts from the end; clamped to the axis"),
      required_list("ends", nullptr, "one past the last element, counted and clamped like starts"),
      optional_list("axes", nullptr, "axes of the entries of starts and ends; empty: the first axes, in order"),
      optional_list("steps", at_least_one, "from one element to the next along each axis; empty: 1")};
  schema.types = {{"T", types_of_whole_bytes()}};
  schema.check = check_slice;
  schema.infer_shapes = slice_shapes;
  schema.example = {.attributes = {{"starts", std::vector<int64_t>{1}},
                                   {"ends", std::vector<int64_t>{3}},
                                   {"axes", std::vector<int64_t>{1}}}};
  return schema;
}

LAMINA_SCHEMA(Expand) {
  OpSchema schema = layout(OpKind::Expand, LoopNest::repeated, "dst = src, repeated along axes where its extent is 1");
  schema.source = "ONNX Expand-13 with a constant shape";
  schema.outputs.front().meaning = "src and attribute shape broadcast to each other by numpy's rule";
  schema.attributes = {required_list("shape", expand_target, "target; 1 or -1 leaves the extent of src")};
  schema.types = {{"T", types_of_whole_bytes()}};
  schema.infer_shapes = expand_shapes;
  schema.example = {.inputs = {{1, 3}}, .attributes = {{"shape", std::vector<int64_t>{2, 3}}}};
  return schema;
}

LAMINA_SCHEMA(GenIndex) {
  return {.kind = OpKind::GenIndex,
          .op_class = OpClass::elementwise,
          .formula = "dst = index of the element along axis; values of src are not read",
          .inputs = {port("src", "T1")},
          .outputs = {port("dst", "T2", "shape of src")},
          .attributes = {parts::axis(std::nullopt)},
          .types = {{"T1", floats_and_f64()}, {"T2", {DataType::s32}}},
          .check =
              [](const OpView& view) {
                if (const Dims* src = known_shape(view, "src")) normalized_axis(view, "axis", static_cast<int>(src->size()));
              },
          .infer_shapes = [](const OpView& view) { return outputs_like(view, "src", {"dst"}); },
          .traits = {.shape_only = true},
          .error = 0,
          .example = {.attributes = {{"axis", int64_t{1}}}}};
}
