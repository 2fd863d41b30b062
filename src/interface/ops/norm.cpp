// LayerNorm, RMSNorm, GroupNorm and their gradients.
//
// LayerNorm's statistics are mean and biased variance over the axes from begin_norm_axis to the last; their shape is the
// leading dims of src. The two older forms of the gradient compute the same. Their documents contain mistakes:
// LayerNormBackprop's omits the incoming gradient, and LayerNormGrad's prints 1 / (variance + epsilon) without the square
// root and does not list epsilon. The schemas declare the correct mathematics.
#include <algorithm>

#include "interface/ops/parts.h"

namespace lamina {

using namespace parts;

namespace {

const char* const kOlderDocument = "LayerNormBackprop-1 of the older op set, with the incoming gradient, which it omits";

// The axes that a norm normalises, for a known rank.
struct NormShape {
  Dims leading;     // shape of the statistics
  Dims normalized;  // shape of gamma and beta
};

NormShape split_at(const Dims& src, size_t axis) {
  const auto middle = src.begin() + static_cast<int64_t>(axis);
  return {{src.begin(), middle}, {middle, src.end()}};
}

NormShape norm_shape(const OpView& view, const Dims& src) {
  return split_at(src, static_cast<size_t>(normalized_axis(view, "begin_norm_axis", static_cast<int>(src.size()))));
}

// Requires gamma or beta to have the shape of the normalised axes, or one axis with the product of their extents.
void require_affine(const OpView& view, std::string_view input, const Dims& normalized) {
  const Dims* shape = known_shape(view, input);
  if (shape == nullptr) return;
  const Dims flat{product_or_unknown(normalized)};
  if (!dims_agree(*shape, flat)) require_shape(view, input, normalized, "the normalised axes of the data");
}

void check_norm(const OpView& view, std::string_view data, const std::vector<std::string>& affine,
                const std::vector<std::string>& statistics) {
  const Dims* src = known_shape(view, data);
  if (src == nullptr) return;
  const NormShape shape = norm_shape(view, *src);
  for (const std::string& input : affine) require_affine(view, input, shape.normalized);
  for (const std::string& input : statistics) {
    const Dims* given = known_shape(view, input);
    Dims with_ones = shape.leading;  // LayerNormGrad's form: extent 1 for each normalised axis
    with_ones.resize(src->size(), 1);
    if (given != nullptr && dims_agree(*given, with_ones)) continue;
    require_shape(view, input, shape.leading, "the axes of the data before begin_norm_axis");
  }
}

// T1: data. T2: gamma, beta and their gradients. T3: statistics. Frameworks mix types: T2 and T3 each equal T1 or are f32.
std::vector<TypeVariable> norm_types() {
  return {{"T1", floats_and_f64()}, {"T2", floats_and_f64()}, {"T3", floats_and_f64()}};
}

TypeRule norm_rule() {
  return all_of({f64_stays_alone({"T1", "T2", "T3"}), equal_or_f32("T2", "T1"), equal_or_f32("T3", "T1")});
}

const char* const kNormRuleText =
    "gamma and beta have the type of the data or f32; so have the statistics, independently; f64 with f64 only";

AttributeSpec stats_kind() {
  return choice("stats_kind", "variance", {"variance", "rstd"},
                "form of input or output variance; rstd: 1 / sqrt(variance + epsilon)");
}

// If the op computes its statistics, they are variances.
void require_given_unless_variance(const OpView& view) {
  const auto& kind = view.attribute<std::string>("stats_kind");
  if (!view.attribute<bool>("use_stats") && kind != "variance")
    view.fail(join("attribute stats_kind is \"", kind, "\", allowed is \"variance\" when use_stats is false"));
}

ShapeMap layer_norm_shapes(const OpView& view) {
  const Dims& src = view.shape("src");
  const Dims leading = norm_shape(view, src).leading;
  return {{"dst", src}, {"mean", leading}, {"variance", leading}};
}

// ---- LayerNormBackward and its older forms

// The shape of diff_gamma and diff_beta: gamma's, or that of the normalised axes if gamma is omitted.
Dims affine_gradient_shape(const OpView& view, const Dims& src) {
  const Dims normalized = norm_shape(view, src).normalized;
  const Dims* gamma = known_shape(view, "gamma");
  if (gamma == nullptr) return normalized;
  return gamma->size() == normalized.size() ? joined_dims(*gamma, normalized) : *gamma;
}

void require_some_output(const OpView& view) {
  for (size_t i = 0; i < view.output_count(); ++i)
    if (view.output_at(i) != nullptr) return;
  view.fail("no output is given, allowed is at least one");
}

void check_layer_norm_backward(const OpView& view) {
  const bool use_stats = view.attribute<bool>("use_stats");
  const auto& src_kind = view.attribute<std::string>("src_kind");
  if (!use_stats && src_kind == "normalized")
    view.fail(
        "attribute src_kind is \"normalized\", allowed is \"raw\" when use_stats is false: the statistics cannot be "
        "computed from a normalised src");
  require_given_unless_variance(view);
  require_some_output(view);
  require_same_shape(view, "src", "diff_dst");
  check_norm(view, "src", {"gamma", "beta"}, {"mean", "variance"});
}

ShapeMap layer_norm_backward_shapes(const OpView& view) {
  const Dims src = joined_dims(view.shape("src"), view.shape("diff_dst"));
  const Dims affine = affine_gradient_shape(view, src);
  return {{"diff_src", src}, {"diff_gamma", affine}, {"diff_beta", affine}};
}

// T1: input_forward. T2: its gradients. T3: affine parameters and statistics.
std::string backprop_types(const TypeOf& type_of) {
  const DataType forward = type_of("T1");
  const DataType data = is_integer(forward) ? DataType::f32 : forward;
  const auto fits = [&](DataType type) { return type == DataType::undef || type == data; };
  const DataType rest = type_of("T3");
  if (fits(type_of("T2")) && (fits(rest) || (rest == DataType::f32 && data != DataType::f64))) return "";
  return is_integer(forward) ? "f32 for all but an integer input_forward"
                             : "one type for all, but gamma, beta and statistics may be f32 with 16-bit data";
}

void check_backprop(const OpView& view) {
  require_same_shape(view, "input_forward", "output_delta");
  check_norm(view, "input_forward", {"gamma", "beta"}, {"mean", "variance"});
}

ShapeMap backprop_shapes(const OpView& view) {
  const Dims src = joined_dims(view.shape("input_forward"), view.shape("output_delta"));
  const Dims affine = affine_gradient_shape(view, src);
  return {{"input_delta", src}, {"gamma_delta", affine}, {"beta_delta", affine}};
}

// ---- LayerNormGrad

std::string three_of_zero_or_one(const Attribute& value) {
  const auto& mask = std::get<std::vector<int64_t>>(value);
  const bool legal =
      mask.size() == 3 && std::all_of(mask.begin(), mask.end(), [](int64_t entry) { return entry == 0 || entry == 1; });
  return legal && std::count(mask.begin(), mask.end(), 1) > 0 ? "" : "three of 0 or 1, not all 0";
}

Condition mask_is_set(size_t index) {
  return {join("output_mask[", index, "] is 1"), [index](const Attributes& attributes) {
            const auto found = attributes.find("output_mask");
            const auto* mask = found == attributes.end() ? nullptr : std::get_if<std::vector<int64_t>>(&found->second);
            return mask != nullptr && index < mask->size() && (*mask)[index] == 1;
          }};
}

// T1: dy and x. T2: gamma. T3: statistics.
std::string layer_norm_grad_types(const TypeOf& type_of) {
  if (std::string alone = f64_stays_alone({"T1", "T2", "T3"})(type_of); !alone.empty()) return alone;
  const DataType data = type_of("T1"), statistics = type_of("T3");
  const bool narrower = data != DataType::undef && statistics != DataType::undef && bits_of(statistics) < bits_of(data);
  return narrower ? "mean and variance at least as wide as x" : "";
}

// The rank of gamma is the number of trailing axes that are normalised; statistics keep those axes with extent 1.
void check_layer_norm_grad(const OpView& view) {
  require_same_shape(view, "x", "dy");
  const Dims* x = known_shape(view, "x");
  const Dims* gamma = known_shape(view, "gamma");
  if (x == nullptr || gamma == nullptr) return;
  if (gamma->empty() || gamma->size() > x->size())
    view.fail_shape(join("input gamma has shape ", describe(*gamma), ", allowed is rank 1..", x->size(),
                         ": its rank counts the normalised axes"));
  const NormShape shape = split_at(*x, x->size() - gamma->size());
  require_shape(view, "gamma", shape.normalized, "the last axes of x");
  Dims statistics = shape.leading;
  statistics.resize(x->size(), 1);
  for (const char* input : {"variance", "mean"})
    require_shape(view, input, statistics, "the leading axes of x, then 1 for each normalised axis");
}

ShapeMap layer_norm_grad_shapes(const OpView& view) {
  const Dims x = joined_dims(view.shape("x"), view.shape("dy"));
  const Dims& gamma = view.shape("gamma");
  return {{"pd_x", x}, {"pd_gamma", gamma}, {"pd_beta", gamma}};
}

// ---- RMSNorm

std::vector<TypeVariable> rms_norm_types() { return {{"T1", floats_and_f64()}, {"T2", floats_and_f64()}}; }

TypeRule rms_norm_rule() { return all_of({f64_stays_alone({"T1", "T2"}), only_with_same(DataType::bf16, "T2", "T1")}); }

const char* const kRmsNormRuleText = "gamma is f32 or f16, or bf16 with bf16 data; f64 with f64 only";

void check_rms_norm_backward(const OpView& view) {
  require_some_output(view);
  if (view.output("diff_gamma") != nullptr && view.input("gamma") == nullptr)
    view.fail("output diff_gamma is given, allowed is none when input gamma is absent");
  require_same_shape(view, "src", "diff_dst");
  check_norm(view, "src", {"gamma"}, {});
}

ShapeMap rms_norm_backward_shapes(const OpView& view) {
  const Dims src = joined_dims(view.shape("src"), view.shape("diff_dst"));
  return {{"diff_src", src}, {"diff_gamma", affine_gradient_shape(view, src)}};
}

// ---- GroupNorm

AttributeSpec group_count() {
  return {.name = "groups",
          .type = AttributeType::s64,
          .required = true,
          .check = at_least_one,
          .meaning = "number of groups of channels"};
}

void check_group_norm(const OpView& view, const std::vector<std::string>& affine, const std::vector<std::string>& statistics) {
  const Dims* src = known_shape(view, "src");
  if (src == nullptr) return;
  if (src->size() < 2) view.fail_shape(join("input src has shape ", describe(*src), ", allowed is rank 2 or more"));
  const int64_t channels = (*src)[static_cast<size_t>(channel_axis(view, static_cast<int>(src->size())))];
  const auto groups = view.attribute<int64_t>("groups");
  if (channels != kUnknownDim && channels % groups != 0)
    view.fail(join("attribute groups is ", groups, ", allowed is a divisor of the ", channels, " channels of src"));
  for (const std::string& input : affine) require_shape(view, input, {channels}, "the channels of src");
  for (const std::string& input : statistics)
    require_shape(view, input, {src->front(), groups}, "the batch of src and the groups");
}

ShapeMap group_norm_shapes(const OpView& view) {
  const Dims& src = view.shape("src");
  const Dims statistics{src.front(), view.attribute<int64_t>("groups")};
  return {{"dst", src}, {"mean", statistics}, {"variance", statistics}};
}

void check_group_norm_backward(const OpView& view) {
  require_some_output(view);
  require_given_unless_variance(view);
  require_same_shape(view, "src", "diff_dst");
  check_group_norm(view, {"gamma"}, {"mean", "variance"});
}

ShapeMap group_norm_backward_shapes(const OpView& view) {
  const Dims src = joined_dims(view.shape("src"), view.shape("diff_dst"));
  const Dims channels{src[static_cast<size_t>(channel_axis(view, static_cast<int>(src.size())))]};
  return {{"diff_src", src}, {"diff_gamma", channels}, {"diff_beta", channels}};
}

}  // namespace
}  // namespace lamina

LAMINA_SCHEMA(LayerNorm) {
  const Condition affine = flag_is("use_affine", true);
  const Condition given_stats = flag_is("use_stats", true);
  const Condition kept_stats = both(flag_is("keep_stats", true), flag_is("use_stats", false));
  return {.kind = OpKind::LayerNorm,
          .op_class = OpClass::inner_reduction,
          .nest = LoopNest::trailing_axes,
          .formula = "dst = gamma * (src - mean) / sqrt(variance + epsilon) + beta",
          .inputs = {as(PortRole::normalized, port("src", "T1")),
                     as(PortRole::gamma, port_when("gamma", "T2", affine, "shape of the normalised axes")),
                     as(PortRole::beta, port_when("beta", "T2", affine, "shape of the normalised axes")),
                     as(PortRole::mean, port_when("mean", "T3", given_stats, "leading axes of src; replaces the computed one")),
                     as(PortRole::variance,
                        port_when("variance", "T3", given_stats,
                                  "leading axes of src; replaces the computed one; stats_kind selects its form"))},
          .outputs = {port("dst", "T1", "shape of src"),
                      as(PortRole::mean, port_when("mean", "T3", kept_stats, "leading axes of src")),
                      as(PortRole::variance,
                         port_when("variance", "T3", kept_stats, "leading axes of src; biased; stats_kind selects its form"))},
          .attributes = {flag("keep_stats", true, "true: mean and variance are outputs"), begin_norm_axis(),
                         flag("use_affine", true, "true: gamma and beta are given"), epsilon(),
                         flag("use_stats", false, "true: mean and variance are inputs"), stats_kind()},
          .types = norm_types(),
          .check_types = norm_rule(),
          .type_rule_text = kNormRuleText,
          .check = [](const OpView& view) { check_norm(view, "src", {"gamma", "beta"}, {"mean", "variance"}); },
          .infer_shapes = layer_norm_shapes,
          .inplace = {{"src", "dst"}},
          .traits = {.squares = true},
          .error = 5e-7,
          .example = {.inputs = {{2, 3}, {3}, {3}}}};
}

LAMINA_SCHEMA(LayerNormBackward) {
  const Condition affine = flag_is("use_affine", true);
  const Condition given_stats = flag_is("use_stats", true);
  return {.kind = OpKind::LayerNormBackward,
          .op_class = OpClass::inner_reduction,
          .nest = LoopNest::trailing_axes,
          .formula =
              "rstd = 1 / sqrt(variance + epsilon); x = (src - mean) * rstd; g = gamma * diff_dst; "
              "diff_src = rstd * (g - row_mean(g) - x * row_mean(g * x)); "
              "diff_gamma = column_sum(diff_dst * x); diff_beta = column_sum(diff_dst)",
          .inputs = {as(PortRole::normalized, port("src", "T1")), port("diff_dst", "T1", "shape of src"),
                     as(PortRole::mean,
                        port_when("mean", "T3", both(given_stats, text_is("src_kind", "raw")), "leading axes of src")),
                     as(PortRole::variance,
                        port_when("variance", "T3", given_stats, "leading axes of src; stats_kind selects its form")),
                     as(PortRole::gamma, port_when("gamma", "T2", affine, "shape of the normalised axes")),
                     as(PortRole::beta, optional_when("beta", "T2", affine, "accepted and not used"))},
          .outputs = {optional_port("diff_src", "T1", "shape of src"),
                      as(PortRole::affine_gradient, optional_when("diff_gamma", "T2", affine, "shape of gamma")),
                      as(PortRole::affine_gradient, optional_when("diff_beta", "T2", affine, "shape of gamma"))},
          .attributes = {begin_norm_axis(), flag("use_affine", true, "true: gamma is given"), epsilon(),
                         flag("use_stats", true, "false: mean and variance are computed from src"),
                         choice("stats_kind", "variance", {"variance", "rstd", "std"}, "form of input variance"),
                         choice("src_kind", "raw", {"raw", "normalized"},
                                "normalized: src is (x - mean) / std already, and no mean is given")},
          .types = norm_types(),
          .check_types = norm_rule(),
          .type_rule_text = kNormRuleText,
          .check = check_layer_norm_backward,
          .infer_shapes = layer_norm_backward_shapes,
          .inplace = {{"diff_dst", "diff_src"}},
          .traits = {.squares = true},
          .example = {.inputs = {{2, 3}, {2, 3}, {2}, {2}, {3}}}};
}

LAMINA_SCHEMA(LayerNormBackprop) {
  const Condition affine = flag_is("use_affine", true);
  const Condition given_stats = flag_is("use_stats", true);
  std::vector<DataType> numbers = floats_and_f64();
  numbers.insert(numbers.end(), {DataType::s8, DataType::u8, DataType::s32, DataType::s64});
  return {
      .kind = OpKind::LayerNormBackprop,
      .op_class = OpClass::inner_reduction,
      .formula = "as LayerNormBackward, the ports in another order",
      .source = kOlderDocument,
      .inputs = {as(PortRole::normalized, port("input_forward", "T1")), port("output_delta", "T2", "shape of input_forward"),
                 as(PortRole::gamma, port_when("gamma", "T3", affine, "shape of the normalised axes")),
                 as(PortRole::beta, port_when("beta", "T3", affine, "shape of the normalised axes")),
                 as(PortRole::mean, port_when("mean", "T3", given_stats, "leading axes of input_forward")),
                 as(PortRole::variance, port_when("variance", "T3", given_stats, "leading axes of input_forward"))},
      .outputs = {port("input_delta", "T2", "shape of input_forward"),
                  as(PortRole::affine_gradient, optional_when("gamma_delta", "T3", affine, "shape of gamma")),
                  as(PortRole::affine_gradient, optional_when("beta_delta", "T3", affine, "shape of gamma"))},
      .attributes = {begin_norm_axis(), flag("use_affine", true, "true: gamma and beta are given"), epsilon(),
                     flag("use_stats", true, "false: mean and variance are computed from input_forward")},
      .types = {{"T1", numbers}, {"T2", floats_and_f64()}, {"T3", floats_and_f64()}},
      .check_types = backprop_types,
      .type_rule_text =
          "one type for all; gamma, beta and statistics may be f32 with 16-bit data; all but an integer "
          "input_forward are f32",
      .check = check_backprop,
      .infer_shapes = backprop_shapes,
      .inplace = {{"output_delta", "input_delta"}},
      .traits = {.squares = true},
      .example = {.inputs = {{2, 3}, {2, 3}, {3}, {3}, {2}, {2}}}};
}

LAMINA_SCHEMA(LayerNormGrad) {
  return {.kind = OpKind::LayerNormGrad,
          .op_class = OpClass::inner_reduction,
          .formula = "as LayerNormBackward; the rank of gamma counts the normalised axes",
          .source = "the graph op LayerNormGrad, with the square root and the epsilon that its document omits",
          .inputs = {port("dy", "T1", "shape of x"), as(PortRole::normalized, port("x", "T1")),
                     as(PortRole::variance, port("variance", "T3", "leading axes of x, then 1 for each normalised axis")),
                     as(PortRole::mean, port("mean", "T3", "shape of variance")),
                     as(PortRole::gamma, port("gamma", "T2", "the normalised axes of x"))},
          .outputs = {port_when("pd_x", "T1", mask_is_set(0), "shape of x"),
                      as(PortRole::affine_gradient, port_when("pd_gamma", "T2", mask_is_set(1), "shape of gamma")),
                      as(PortRole::affine_gradient, port_when("pd_beta", "T2", mask_is_set(2), "shape of gamma"))},
          .attributes = {{.name = "output_mask",
                          .type = AttributeType::s64_list,
                          .default_value = std::vector<int64_t>{1, 1, 1},
                          .check = three_of_zero_or_one,
                          .meaning = "1 for each of pd_x, pd_gamma, pd_beta that is an output"},
                         epsilon()},
          .types = {{"T1", floats_and_f64()}, {"T2", floats_and_f64()}, {"T3", floats_and_f64()}},
          .check_types = layer_norm_grad_types,
          .type_rule_text = "mean and variance are at least as wide as x; gamma has any type; f64 with f64 only",
          .check = check_layer_norm_grad,
          .infer_shapes = layer_norm_grad_shapes,
          .inplace = {{"dy", "pd_x"}},
          .example = {.inputs = {{2, 3}, {2, 3}, {2, 1}, {2, 1}, {3}}}};
}

LAMINA_SCHEMA(RMSNorm) {
  return {.kind = OpKind::RMSNorm,
          .op_class = OpClass::inner_reduction,
          .nest = LoopNest::trailing_axes,
          .formula = "dst = gamma * src / sqrt(mean(src^2) + epsilon), the mean over the normalised axes",
          .inputs = {as(PortRole::normalized, port("src", "T1")),
                     as(PortRole::gamma, optional_port("gamma", "T2", "shape of the normalised axes"))},
          .outputs = {port("dst", "T1", "shape of src")},
          .attributes = {begin_norm_axis(), epsilon()},
          .types = rms_norm_types(),
          .check_types = rms_norm_rule(),
          .type_rule_text = kRmsNormRuleText,
          .check = [](const OpView& view) { check_norm(view, "src", {"gamma"}, {}); },
          .infer_shapes = [](const OpView& view) { return outputs_like(view, "src", {"dst"}); },
          .inplace = {{"src", "dst"}},
          .traits = {.squares = true},
          .error = 5e-7,
          .example = {.inputs = {{2, 3}, {3}}}};
}

LAMINA_SCHEMA(RMSNormBackward) {
  return {
      .kind = OpKind::RMSNormBackward,
      .op_class = OpClass::inner_reduction,
      .nest = LoopNest::trailing_axes,
      .formula =
          "r = 1 / sqrt(mean(src^2) + epsilon), the mean over the normalised axes; x = src * r; g = gamma * diff_dst; "
          "diff_src = r * (g - x * row_mean(g * x)); diff_gamma = column_sum(diff_dst * x)",
      .inputs = {as(PortRole::normalized, port("src", "T1", "the forward input")), port("diff_dst", "T1", "shape of src"),
                 as(PortRole::gamma, optional_port("gamma", "T2", "shape of the normalised axes"))},
      .outputs = {optional_port("diff_src", "T1", "shape of src"),
                  as(PortRole::affine_gradient, optional_port("diff_gamma", "T2", "shape of gamma; only when gamma is given"))},
      .attributes = {begin_norm_axis(), epsilon()},
      .types = rms_norm_types(),
      .check_types = rms_norm_rule(),
      .type_rule_text = kRmsNormRuleText,
      .check = check_rms_norm_backward,
      .infer_shapes = rms_norm_backward_shapes,
      .inplace = {{"diff_dst", "diff_src"}},
      .traits = {.squares = true},
      .example = {.inputs = {{2, 3}, {2, 3}, {3}}}};
}

LAMINA_SCHEMA(GroupNorm) {
  const Condition affine = flag_is("use_affine", true);
  const Condition kept_stats = flag_is("keep_stats", true);
  return {
      .kind = OpKind::GroupNorm,
      .op_class = OpClass::inner_reduction,
      .nest = LoopNest::group_rows,
      .formula = "dst = gamma * (src - mean) / sqrt(variance + epsilon) + beta, statistics per sample and group of channels",
      .inputs = {as(PortRole::normalized, port("src", "T1")), as(PortRole::gamma, port_when("gamma", "T2", affine, "[C]")),
                 as(PortRole::beta, port_when("beta", "T2", affine, "[C]"))},
      .outputs = {port("dst", "T1", "shape of src"), as(PortRole::mean, port_when("mean", "T3", kept_stats, "[N, groups]")),
                  as(PortRole::variance,
                     port_when("variance", "T3", kept_stats, "[N, groups]; biased; stats_kind selects its form"))},
      .attributes = {flag("keep_stats", true, "true: mean and variance are outputs"), group_count(),
                     flag("use_affine", true, "true: gamma and beta are given"), epsilon(), data_format(), stats_kind()},
      .types = norm_types(),
      .check_types = norm_rule(),
      .type_rule_text = kNormRuleText,
      .check = [](const OpView& view) { check_group_norm(view, {"gamma", "beta"}, {}); },
      .infer_shapes = group_norm_shapes,
      .inplace = {{"src", "dst"}},
      .traits = {.squares = true},
      .error = 1e-6,
      .example = {.inputs = {{2, 3, 4}, {4}, {4}}, .attributes = {{"groups", int64_t{2}}}}};
}

LAMINA_SCHEMA(GroupNormBackward) {
  const Condition affine = flag_is("use_affine", true);
  const Condition given_stats = flag_is("use_stats", true);
  return {
      .kind = OpKind::GroupNormBackward,
      .op_class = OpClass::inner_reduction,
      .nest = LoopNest::group_rows,
      .formula =
          "rstd = 1 / sqrt(variance + epsilon); x = (src - mean) * rstd; g = gamma * diff_dst; "
          "diff_src = rstd * (g - group_mean(g) - x * group_mean(g * x)); "
          "diff_gamma = channel_sum(diff_dst * x); diff_beta = channel_sum(diff_dst)",
      .inputs = {as(PortRole::normalized, port("src", "T1", "the forward input")), port("diff_dst", "T1", "shape of src"),
                 as(PortRole::mean, port_when("mean", "T3", given_stats, "[N, groups]")),
                 as(PortRole::variance,
                    port_when("variance", "T3", given_stats, "[N, groups]; biased; stats_kind selects its form")),
                 as(PortRole::gamma, port_when("gamma", "T2", affine, "[C]"))},
      .outputs = {optional_port("diff_src", "T1", "shape of src"),
                  as(PortRole::affine_gradient, optional_when("diff_gamma", "T2", affine, "[C]")),
                  as(PortRole::affine_gradient, optional_when("diff_beta", "T2", affine, "[C]"))},
      .attributes = {group_count(), flag("use_affine", true, "true: gamma is given"), epsilon(),
                     flag("use_stats", true, "false: mean and variance are computed from src"), data_format(), stats_kind()},
      .types = norm_types(),
      .check_types = norm_rule(),
      .type_rule_text = kNormRuleText,
      .check = check_group_norm_backward,
      .infer_shapes = group_norm_backward_shapes,
      .inplace = {{"diff_dst", "diff_src"}},
      .traits = {.squares = true},
      .example = {.inputs = {{2, 3, 4}, {2, 3, 4}, {2, 2}, {2, 2}, {4}}, .attributes = {{"groups", int64_t{2}}}}};
}
