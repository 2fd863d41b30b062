// Reductions along listed axes.
#include <algorithm>

#include "interface/ops/parts.h"

namespace lamina {

using namespace parts;

namespace {

void check_axes(const OpView& view) {
  const bool by_attribute = !view.attribute<std::vector<int64_t>>("axes").empty();
  const bool by_input = view.input("axes") != nullptr;
  if (by_attribute == by_input)
    view.fail(join("axes are ", by_input ? "given twice" : "not given",
                   ", allowed is exactly one of attribute axes (not empty) and input axes"));
  if (const Dims* axes = known_shape(view, "axes"); axes != nullptr && axes->size() > 1)
    view.fail_shape(join("input axes has shape ", describe(*axes), ", allowed is rank 0 or 1"));
  if (const Dims* src = known_shape(view, "src")) reduced_axes(view, static_cast<int>(src->size()));
}

// For axes given as an input at run time: keep_dims keeps the rank; without it the rank is reduced by the number of axes.
ShapeMap shapes_by_input(const OpView& view) {
  const size_t rank = view.shape("src").size();
  if (view.attribute<bool>("keep_dims")) return {{"dst", Dims(rank, kUnknownDim)}};
  const Dims& axes = view.shape("axes");
  const int64_t count = axes.empty() ? 1 : axes.front();
  if (count == kUnknownDim) return {};
  if (count < 0 || count > static_cast<int64_t>(rank))
    view.fail_shape(join("input axes has ", count, " entries, allowed is 1..", rank));
  return {{"dst", Dims(rank - static_cast<size_t>(count), kUnknownDim)}};
}

ShapeMap reduce_shapes(const OpView& view) {
  if (view.input("axes") != nullptr) return shapes_by_input(view);
  const Dims& src = view.shape("src");
  const bool keep_dims = view.attribute<bool>("keep_dims");
  const std::vector<int> axes = reduced_axes(view, static_cast<int>(src.size()));
  Dims dst;
  for (size_t i = 0; i < src.size(); ++i) {
    const bool reduced = std::find(axes.begin(), axes.end(), static_cast<int>(i)) != axes.end();
    if (!reduced) dst.push_back(src[i]);
    if (reduced && keep_dims) dst.push_back(1);
  }
  return {{"dst", dst}};
}

OpSchema reduction(OpKind kind, std::string formula, std::optional<double> error = std::nullopt) {
  return {.kind = kind,
          .op_class = OpClass::inner_reduction,
          .nest = LoopNest::listed_axes,
          .formula = std::move(formula),
          .inputs = {port("src", "T1"), optional_port("axes", "T2", "axes to reduce, instead of the attribute")},
          .outputs = {port("dst", "T1", "listed axes have extent 1 with keep_dims, else they are removed")},
          .attributes = {{.name = "axes",
                          .type = AttributeType::s64_list,
                          .default_value = std::vector<int64_t>{},
                          .meaning = "axes to reduce; negative counts from the end"},
                         flag("keep_dims", false, "true: reduced axes stay with extent 1")},
          .types = {{"T1", floats_and_f64()}, {"T2", {DataType::s32}}},
          .check = check_axes,
          .infer_shapes = reduce_shapes,
          .traits = {.reduces = true},
          .error = error,
          .example = {.attributes = {{"axes", std::vector<int64_t>{1}}}}};
}

OpSchema sum(OpKind kind, std::string formula) {
  OpSchema schema = reduction(kind, std::move(formula));
  schema.traits.sums = true;
  return schema;
}

}  // namespace
}  // namespace lamina

LAMINA_SCHEMA(ReduceL1) { return reduction(OpKind::ReduceL1, "dst = sum of |src|"); }

LAMINA_SCHEMA(ReduceL2) {
  OpSchema schema = reduction(OpKind::ReduceL2, "dst = sqrt(sum of src^2)");
  schema.traits.squares = true;
  return schema;
}

LAMINA_SCHEMA(ReduceMax) { return reduction(OpKind::ReduceMax, "dst = max of src", 0); }

LAMINA_SCHEMA(ReduceMean) { return sum(OpKind::ReduceMean, "dst = mean of src"); }

LAMINA_SCHEMA(ReduceMin) { return reduction(OpKind::ReduceMin, "dst = min of src", 0); }

LAMINA_SCHEMA(ReduceProd) {
  OpSchema schema = reduction(OpKind::ReduceProd, "dst = product of src", 4e-6);
  schema.inputs.front().domain = always(suits(0.9, 1.1));  // products of many elements stay in range
  return schema;
}

LAMINA_SCHEMA(ReduceSum) {
  OpSchema schema = sum(OpKind::ReduceSum, "dst = sum of src");
  schema.traits.only_sums = true;
  return schema;
}
