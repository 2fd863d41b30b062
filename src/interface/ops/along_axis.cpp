// Ops along one axis whose elements depend on all elements of their row: TopK, which also sorts, CumSum, CumProd and linear
// recurrences.
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

void check_factors(const OpView& view) {
  require_same_shape(view, "src", "factors");
  check_axis(view);
}

void check_states(const OpView& view) {
  require_same_shape(view, "factors", "dst");
  require_same_shape(view, "diff_dst", "dst");
  if (const Dims* dst = known_shape(view, "dst")) normalized_axis(view, "axis", static_cast<int>(dst->size()));
}

const char* const kRecurrences =
    "E. Martin, C. Cundy: Parallelizing Linear Recurrent Neural Nets Over Sequence Length, 2018; the states of a selective "
    "state-space model in A. Gu, T. Dao: Mamba, 2023, equation 2a";

std::vector<AttributeSpec> along_recurrence() {
  return {parts::axis(-1), flag("reverse", false, "true: from the last element to the first")};
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

LAMINA_SCHEMA(LinearRecurrence) {
  return {.kind = OpKind::LinearRecurrence,
          .op_class = OpClass::library,
          .formula =
              "dst[.., i, ..] = factors[.., i, ..] * dst[.., i - 1, ..] + src[.., i, ..] along axis, where the state before "
              "the first element is 0. States of f64 are in f64, others in f32; the product is rounded before the addition",
          .source = kRecurrences,
          .inputs = {within(suits(-1, 1), port("factors", "T", "shape of src")), port("src", "T", "rank 1 or more")},
          .outputs = {port("dst", "T", "shape of src")},
          .attributes = along_recurrence(),
          .types = {{"T", floats_and_f64()}},
          .check = check_factors,
          .infer_shapes = like_src,
          .error = 4e-6};
}

LAMINA_SCHEMA(LinearRecurrenceBackward) {
  return {
      .kind = OpKind::LinearRecurrenceBackward,
      .op_class = OpClass::library,
      .formula =
          "diff_src[.., i, ..] = diff_dst[.., i, ..] + factors[.., i + 1, ..] * diff_src[.., i + 1, ..]; "
          "diff_factors[.., i, ..] = diff_src[.., i, ..] * dst[.., i - 1, ..]; along axis, elements outside of a row are 0. "
          "Types and rounding as in LinearRecurrence",
      .source = kRecurrences,
      .inputs = {port("diff_dst", "T", "shape of dst"), within(suits(-1, 1), port("factors", "T", "shape of dst")),
                 port("dst", "T", "the forward output")},
      .outputs = {port("diff_factors", "T", "shape of dst"), port("diff_src", "T", "shape of dst")},
      .attributes = along_recurrence(),
      .types = {{"T", floats_and_f64()}},
      .check = check_states,
      .infer_shapes = [](const OpView& view) { return outputs_like(view, "dst", {"diff_factors", "diff_src"}); },
      .error = 4e-6};
}
