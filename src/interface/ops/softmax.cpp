// SoftMax, LogSoftmax and their gradients.
#include "interface/ops/parts.h"

namespace lamina {

using namespace parts;

namespace {

int checked_axis(const OpView& view, std::string_view input) {
  return normalized_axis(view, "axis", static_cast<int>(view.shape(input).size()));
}

void check_forward(const OpView& view) {
  if (known_shape(view, "src") != nullptr) checked_axis(view, "src");
}

void check_backward(const OpView& view) {
  if (known_shape(view, "dst") != nullptr) checked_axis(view, "dst");
  require_same_shape(view, "diff_dst", "dst");
}

ShapeMap softmax_shapes(const OpView& view) {
  Dims stats = view.shape("src");
  stats[static_cast<size_t>(checked_axis(view, "src"))] = 1;
  return {{"dst", view.shape("src")}, {"stats", stats}};
}

OpSchema softmax_backward(OpKind kind, std::string formula, int64_t default_axis, Domain::Form of_dst) {
  return {.kind = kind,
          .op_class = OpClass::inner_reduction,
          .nest = LoopNest::axis_rows,
          .formula = std::move(formula),
          .inputs = {port("diff_dst", "T"), within(needs(of_dst), port("dst", "T", "the forward output"))},
          .outputs = {port("diff_src", "T", "shape of dst")},
          .attributes = {parts::axis(default_axis)},
          .types = {{"T", floats_and_f64()}},
          .check = check_backward,
          .infer_shapes = [](const OpView& view) { return outputs_like(view, "diff_dst", {"diff_src"}); },
          .inplace = {{"diff_dst", "diff_src"}},
          .error = 4.8e-6};
}

}  // namespace
}  // namespace lamina

LAMINA_SCHEMA(SoftMax) {
  std::vector<DataType> stats{DataType::f32, DataType::f64};
  return {.kind = OpKind::SoftMax,
          .op_class = OpClass::inner_reduction,
          .nest = LoopNest::axis_rows,
          .formula = "dst = exp(src - max) / sum exp(src - max) along axis; stats = max + ln(sum exp(src - max))",
          .inputs = {within(suits(-4, 4), port("src", "T1"))},
          .outputs = {port("dst", "T2", "shape of src"),
                      as(PortRole::statistic, optional_port("stats", "T3", "shape of src with extent 1 on axis"))},
          .attributes = {parts::axis(1), choice("mode", "none", {"none", "inf_as_zero"},
                                                "inf_as_zero: for a slice of -inf only, dst and stats are 0 instead of NaN")},
          .types = {{"T1", floats_and_f64()}, {"T2", floats_and_f64()}, {"T3", stats}},
          .check_types = all_of({f64_stays_alone({"T1", "T2", "T3"}), equal_or_f32("T2", "T1", true)}),
          .type_rule_text = "src and dst are equal or one of them is f32; f64 with f64 only",
          .check = check_forward,
          .infer_shapes = softmax_shapes,
          .inplace = {{"src", "dst"}},
          .error = 1.2e-6};
}

LAMINA_SCHEMA(SoftMaxBackward) {
  OpSchema schema = softmax_backward(OpKind::SoftMaxBackward, "diff_src = dst * (diff_dst - sum(diff_dst * dst)) along axis", 1,
                                     Domain::Form::softmax);
  for (PortSpec& input : schema.inputs) input.type = "T1";
  schema.outputs = {port("diff_src", "T2", "shape of dst")};
  schema.types = {{"T1", floats_and_f64()}, {"T2", floats_and_f64()}};
  schema.check_types = all_of({f64_stays_alone({"T1", "T2"}), equal_or_f32("T2", "T1")});
  schema.type_rule_text = "diff_src has the type of diff_dst, or f32; f64 with f64 only";
  return schema;
}

LAMINA_SCHEMA(LogSoftmax) {
  return {.kind = OpKind::LogSoftmax,
          .op_class = OpClass::inner_reduction,
          .nest = LoopNest::axis_rows,
          .formula = "dst = src - max - ln(sum exp(src - max)) along axis",
          .inputs = {within(suits(-4, 4), port("src", "T"))},
          .outputs = {port("dst", "T", "shape of src")},
          .attributes = {parts::axis(-1)},
          .types = {{"T", floats_and_f64()}},
          .check = check_forward,
          .infer_shapes = [](const OpView& view) { return outputs_like(view, "src", {"dst"}); },
          .inplace = {{"src", "dst"}},
          .error = 1.2e-6};
}

LAMINA_SCHEMA(LogSoftmaxBackward) {
  return softmax_backward(OpKind::LogSoftmaxBackward, "diff_src = diff_dst - exp(dst) * sum(diff_dst) along axis", -1,
                          Domain::Form::log_softmax);
}
