// Ops along one axis whose elements depend on all elements of their row: TopK, which also sorts, CumSum and CumProd.
#include <string>
#include <utility>

#include "interface/ops/parts.h"

namespace lamina {

using namespace parts;

namespace {

std::string not_below_zero(const Attribute& value) { return std::get<int64_t>(value) >= 0 ? "" : "0 or more"; }

void check_axis(const OpView& view) {
  if (const Dims* src = known_shape(view, "src")) normalized_axis(view, "axis", static_cast<int>(src->size()));
}

ShapeMap top_k_shapes(const OpView& view) {
  Dims shape = view.shape("src");
  int64_t& extent = shape[static_cast<size_t>(normalized_axis(view, "axis", static_cast<int>(shape.size())))];
  const auto k = view.attribute<int64_t>("k");
  if (extent != kUnknownDim && k > extent) view.fail(join("attribute k is ", k, ", allowed is 0..", extent), "attribute k");
  extent = k;
  return {{"dst", shape}, {"indices", shape}};
}

ShapeMap like_src(const OpView& view) { return outputs_like(view, "src", {"dst"}); }

// Each element is a sum or a product of the elements up to it.
OpSchema running(OpKind kind, std::string formula, std::string source, PortSpec src) {
  return {.kind = kind,
          .op_class = OpClass::library,
          .formula = std::move(formula),
          .source = std::move(source),
          .inputs = {std::move(src)},
          .outputs = {port("dst", "T", "shape of src")},
          .attributes = {parts::axis(-1), flag("exclusive", false, "true: without the element itself"),
                         flag("reverse", false, "true: from the last element to the first")},
          .types = {{"T", floats_and_integers()}},
          .check = check_axis,
          .infer_shapes = like_src,
          .error = 1e-6};
}

}  // namespace
}  // namespace lamina

LAMINA_SCHEMA(TopK) {
  return {.kind = OpKind::TopK,
          .op_class = OpClass::library,
          .formula =
              "dst[.., i, ..] = src[.., indices[.., i, ..], ..], the k largest (or smallest) elements of each row along "
              "axis, in order",
          .source =
              "ONNX TopK-11 with sorted 1; of equal elements the one with the lower index comes first. NaN is the largest "
              "element, as in torch. With k equal to the extent it is a stable sort",
          .inputs = {port("src", "T", "rank 1 or more")},
          .outputs = {optional_port("dst", "T", "shape of src with k entries along axis"),
                      optional_port("indices", "I", "shape of dst: positions along axis")},
          .attributes = {parts::axis(-1),
                         {.name = "k",
                          .type = AttributeType::s64,
                          .required = true,
                          .check = not_below_zero,
                          .meaning = "elements of each row, at most the extent of axis",
                          .example = int64_t{2}},
                         flag("largest", true, "false: the smallest elements")},
          .types = {{"T", floats_and_integers()}, {"I", {DataType::s64}}},
          .check = check_axis,
          .infer_shapes = top_k_shapes,
          .traits = {.jumps = true},
          .error = 0};
}

LAMINA_SCHEMA(CumSum) {
  return running(OpKind::CumSum,
                 "dst[.., i, ..] = src[.., 0, ..] + ... + src[.., i, ..] along axis, added in this order in f64; integers "
                 "wrap around",
                 "ONNX CumSum-14", port("src", "T", "rank 1 or more"));
}

LAMINA_SCHEMA(CumProd) {
  return running(OpKind::CumProd,
                 "dst[.., i, ..] = src[.., 0, ..] * ... * src[.., i, ..] along axis, multiplied in this order in f64; integers "
                 "wrap around",
                 "ONNX CumProd-26", within(suits(0.9, 1.1), port("src", "T", "rank 1 or more")));
}
