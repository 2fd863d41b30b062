// Batch normalisation: statistics per channel over all other axes.
#include <cmath>

#include "interface/ops/parts.h"

namespace lamina {

using namespace parts;

namespace {

int64_t channels_of(const OpView& view, const Dims& src) {
  if (src.size() < 2) view.fail_shape(join("input src has shape ", describe(src), ", allowed is rank 2 or more"));
  return src[static_cast<size_t>(channel_axis(view, static_cast<int>(src.size())))];
}

void check_per_channel(const OpView& view, const std::vector<std::string>& inputs) {
  const Dims* src = known_shape(view, "src");
  if (src == nullptr) return;
  const int64_t channels = channels_of(view, *src);
  for (const std::string& input : inputs) require_shape(view, input, {channels}, "the channels of src");
}

std::string fraction(const Attribute& value) {
  const double number = *number_of(value);
  return std::isfinite(number) && number >= 0 && number <= 1 ? "" : "a number from 0 to 1";
}

std::vector<TypeVariable> types() { return {{"T1", floats_and_f64()}, {"T2", {DataType::f32, DataType::bf16, DataType::f64}}}; }

TypeRule type_rule() { return all_of({f64_stays_alone({"T1", "T2"}), only_with_same(DataType::bf16, "T2", "T1")}); }

const char* const kTypeRuleText = "gamma, beta and statistics are f32, or bf16 with bf16 data; f64 with f64 only";

// Statistics of earlier batches, independent of src.
PortSpec earlier_mean() { return within(suits(-0.5, 0.5), as(PortRole::mean, port("mean", "T2", "[C]"))); }
PortSpec earlier_variance() { return within(needs(0.5, 2), as(PortRole::variance, port("variance", "T2", "[C]"))); }

}  // namespace
}  // namespace lamina

LAMINA_SCHEMA(BatchNormInference) {
  return {.kind = OpKind::BatchNormInference,
          .op_class = OpClass::elementwise,
          .nest = LoopNest::per_channel,
          .formula = "dst = gamma * (src - mean) / sqrt(variance + epsilon) + beta, per channel",
          .inputs = {as(PortRole::normalized, port("src", "T1")), as(PortRole::gamma, port("gamma", "T2", "[C]")),
                     as(PortRole::beta, port("beta", "T2", "[C]")), earlier_mean(), earlier_variance()},
          .outputs = {port("dst", "T1", "shape of src")},
          .attributes = {epsilon(true), data_format()},
          .types = types(),
          .check_types = type_rule(),
          .type_rule_text = kTypeRuleText,
          .check = [](const OpView& view) { check_per_channel(view, {"gamma", "beta", "mean", "variance"}); },
          .infer_shapes = [](const OpView& view) { return outputs_like(view, "src", {"dst"}); },
          .inplace = {{"src", "dst"}},
          .error = 6e-7,
          .example = {.inputs = {{2, 4, 3}, {3}, {3}, {3}, {3}}}};
}

LAMINA_SCHEMA(BatchNormForwardTraining) {
  return {.kind = OpKind::BatchNormForwardTraining,
          .op_class = OpClass::inner_reduction,
          .nest = LoopNest::channel_rows,
          .formula =
              "dst = gamma * (src - batch_mean) / sqrt(batch_variance + epsilon) + beta, per channel; "
              "running = momentum * given + (1 - momentum) * batch; momentum is 0.5 when absent",
          .inputs = {as(PortRole::normalized, port("src", "T1")), earlier_mean(), earlier_variance(),
                     as(PortRole::gamma, optional_port("gamma", "T2", "[C]")),
                     as(PortRole::beta, optional_port("beta", "T2", "[C]"))},
          .outputs = {port("dst", "T1", "shape of src"), as(PortRole::mean, port("running_mean", "T2", "[C]")),
                      as(PortRole::variance, port("running_variance", "T2", "[C]")),
                      as(PortRole::mean, port("batch_mean", "T2", "[C]")),
                      as(PortRole::variance, port("batch_variance", "T2", "[C]; biased"))},
          .attributes =
              {epsilon(true),
               {.name = "momentum", .type = AttributeType::f32, .check = fraction, .meaning = "weight of the given statistics"},
               data_format()},
          .types = types(),
          .check_types = type_rule(),
          .type_rule_text = kTypeRuleText,
          .check = [](const OpView& view) { check_per_channel(view, {"mean", "variance", "gamma", "beta"}); },
          .infer_shapes =
              [](const OpView& view) {
                const Dims statistics{channels_of(view, view.shape("src"))};
                return ShapeMap{{"dst", view.shape("src")},
                                {"running_mean", statistics},
                                {"running_variance", statistics},
                                {"batch_mean", statistics},
                                {"batch_variance", statistics}};
              },
          .inplace = {{"src", "dst"}},
          .traits = {.squares = true},
          .example = {.inputs = {{2, 4, 3}, {3}, {3}, {3}, {3}}}};
}

LAMINA_SCHEMA(BatchNormTrainingBackward) {
  return {.kind = OpKind::BatchNormTrainingBackward,
          .op_class = OpClass::inner_reduction,
          .nest = LoopNest::channel_rows,
          .formula = "gradients of BatchNormForwardTraining; diff_gamma and diff_beta are sums per channel",
          .inputs = {as(PortRole::normalized, port("src", "T1")), port("diff_dst", "T1", "shape of src"),
                     as(PortRole::mean, port("mean", "T2", "[C]")),
                     as(PortRole::variance, port("variance", "T2", "[C]; stats_kind selects its form")),
                     as(PortRole::gamma, optional_port("gamma", "T2", "[C]"))},
          .outputs = {port("diff_src", "T1", "shape of src"),
                      as(PortRole::affine_gradient, optional_port("diff_gamma", "T2", "[C]")),
                      as(PortRole::affine_gradient, optional_port("diff_beta", "T2", "[C]"))},
          .attributes = {epsilon(true), data_format(),
                         choice("stats_kind", "variance", {"variance", "rstd"},
                                "form of input variance; rstd: 1 / sqrt(variance + epsilon)")},
          .types = types(),
          .check_types = type_rule(),
          .type_rule_text = kTypeRuleText,
          .check =
              [](const OpView& view) {
                require_same_shape(view, "src", "diff_dst");
                check_per_channel(view, {"mean", "variance", "gamma"});
              },
          .infer_shapes =
              [](const OpView& view) {
                const Dims statistics{channels_of(view, view.shape("src"))};
                return ShapeMap{{"diff_src", view.shape("src")}, {"diff_gamma", statistics}, {"diff_beta", statistics}};
              },
          .inplace = {{"diff_dst", "diff_src"}},
          .error = 2e-6,
          .example = {.inputs = {{2, 4, 3}, {2, 4, 3}, {3}, {3}, {3}}}};
}
