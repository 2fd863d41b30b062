// Ops of two tensors that broadcast against each other, bias additions, Select and PReLU.
#include "interface/ops/parts.h"

namespace lamina {

using namespace parts;

namespace {

OpSchema binary(OpKind kind, std::string formula, OpTraits traits = {}) {
  return {.kind = kind,
          .op_class = OpClass::elementwise,
          .formula = std::move(formula),
          .inputs = {port("src_0", "T"), port("src_1", "T")},
          .outputs = {port("dst", "T", "the broadcast shape")},
          .attributes = {auto_broadcast()},
          .types = {{"T", floats_and_f64()}},
          .infer_shapes = [](const OpView& view) { return ShapeMap{{"dst", broadcast_inputs(view, "src_0", "src_1")}}; },
          .inplace = {{"src_0", "dst"}},
          .traits = traits};
}

constexpr OpTraits kCommutative{.commutative = true};

// Assigns one domain to both inputs.
OpSchema of_values(const DomainRule& domain, OpSchema schema) {
  for (PortSpec& input : schema.inputs) input.domain = domain;
  return schema;
}

DomainRule around_zero() { return always(suits(-2, 2)); }

// A factor that scales all elements is smaller, so that products of many factors stay in range.
DomainRule factor() {
  return {"-2 to 2, a scalar 0.125 to 0.25",
          [](const OpView&, const LogicalTensor& tensor) { return is_scalar(tensor) ? suits(0.125, 0.25) : suits(-2, 2); }};
}

DomainRule divisor() {
  return {"magnitudes 0.5 to 2, a scalar 4 to 8", [](const OpView&, const LogicalTensor& tensor) {
            return is_scalar(tensor) ? needs(4, 8) : needs(Domain::Form::off_zero, 0.5, 2);
          }};
}

// Each port has its own type: the floats of oneDNN's op set and s32 mix.
bool mixes(DataType type) { return (is_floating(type) && type != DataType::f64) || type == DataType::s32; }

OpSchema mixed_binary(OpKind kind, std::string formula, const std::vector<DataType>& types, OpTraits traits = {}) {
  OpSchema schema = binary(kind, std::move(formula), traits);
  schema.inputs = {port("src_0", "T1"), port("src_1", "T2")};
  schema.outputs = {port("dst", "T3", "the broadcast shape")};
  schema.types = {{"T1", types}, {"T2", types}, {"T3", types}};
  std::vector<TypeRule> rules;
  for (const DataType type : types)
    if (!mixes(type)) rules.push_back(stays_alone(type, {"T1", "T2", "T3"}));
  schema.check_types = all_of(std::move(rules));
  schema.type_rule_text = "any mix; f64 with f64 only";
  return schema;
}

// As mixed_binary, and also with integers, which wrap around.
OpSchema arithmetic(OpKind kind, std::string formula, OpTraits traits = {}) {
  OpSchema schema = mixed_binary(kind, std::move(formula), numbers(), traits);
  schema.type_rule_text =
      "any mix of floats and s32; f64 and every other integer with its own type only; integers alone wrap around";
  return schema;
}

// An op on the bits of integers.
OpSchema bitwise(OpKind kind, std::string formula, OpTraits traits = {}) {
  OpSchema schema = binary(kind, std::move(formula), traits);
  schema.types = {{"T", whole_integers()}};
  schema.error = 0;
  return schema;
}

// The number of bits by which an integer is shifted.
OpSchema shift(OpKind kind, std::string formula) {
  OpSchema schema = bitwise(kind, std::move(formula));
  schema.inputs[1].meaning = "the number of bits; negative ones count as the width of the type or more";
  schema.inputs[1].domain = always(suits(0, 9));
  return schema;
}

// The result is one of both values.
OpSchema selection(OpKind kind, std::string formula) {
  OpSchema schema = of_values(around_zero(), binary(kind, std::move(formula), kCommutative));
  schema.types = {{"T", numbers()}};
  schema.error = 0;
  return schema;
}

OpSchema comparison(OpKind kind, std::string formula, std::vector<DataType> types) {
  OpSchema schema = binary(kind, std::move(formula), {.jumps = true});
  schema.inputs = {port("src_0", "T1"), port("src_1", "T1")};
  schema.outputs = {port("dst", "T2", "one byte an element, 0 or 1; the broadcast shape")};
  schema.types = {{"T1", std::move(types)}, {"T2", {DataType::boolean}}};
  schema.inplace = {};
  schema.error = 0;
  return schema;
}

std::vector<DataType> with_boolean(std::vector<DataType> types) {
  types.push_back(DataType::boolean);
  return types;
}

// An op on booleans: every byte other than 0 is true.
OpSchema logical(OpKind kind, std::string formula, OpTraits traits) {
  OpSchema schema = binary(kind, std::move(formula), traits);
  schema.types = {{"T", {DataType::boolean}}};
  for (PortSpec& input : schema.inputs) input.domain = always(needs(0, 1));
  schema.error = 0;
  return schema;
}

void require_rank_of_two(const OpView& view, const std::string& input) {
  const Dims* shape = known_shape(view, input);
  if (shape != nullptr && shape->size() < 2)
    view.fail_shape(join("input ", input, " has shape ", describe(*shape), ", allowed is rank 2 or more"));
}

void check_bias(const OpView& view) {
  require_rank_of_two(view, "src");
  const Dims* src = known_shape(view, "src");
  if (src == nullptr) return;
  const int axis = channel_axis(view, static_cast<int>(src->size()));
  require_shape(view, "bias", {(*src)[static_cast<size_t>(axis)]}, "the channels of src");
}

ShapeMap select_shapes(const OpView& view) {
  const Dims dst = broadcast_inputs(view, "src_0", "src_1");
  const Dims& cond = view.shape("cond");
  if (view.attribute<std::string>("auto_broadcast") == "none" && !dims_agree(cond, dst))
    view.fail_shape(join("input cond has shape ", describe(cond), ", allowed is ", describe(dst),
                         ", the shape of src_0, because auto_broadcast is none"));
  if (!broadcasts_to(cond, dst))
    view.fail_shape(join("input cond has shape ", describe(cond), ", allowed is one that broadcasts to ", describe(dst)));
  return {{"dst", dst}};
}

PortSpec slope() { return within(suits(0.05, 0.5), port("slope", "T", "[C], [1], or broadcasts to src")); }

// With `per_channel`, slope is one value or one per channel; else it broadcasts to src.
void check_slope(const OpView& view, bool per_channel) {
  const Dims* src = known_shape(view, "src");
  const Dims* slope = known_shape(view, "slope");
  if (src == nullptr || slope == nullptr) return;
  if (!per_channel || slope->size() != 1) {
    if (!broadcasts_to(*slope, *src))
      view.fail_shape(join("input slope has shape ", describe(*slope), ", allowed is one that broadcasts to ", describe(*src)));
    return;
  }
  if (slope->front() == 1) return;
  if (src->empty()) {  // src has no channel axis
    if (slope->front() == kUnknownDim) return;
    view.fail_shape(join("input slope has shape ", describe(*slope), ", allowed is [1] for a scalar src"));
  }
  const int axis = src->size() == 1 ? 0 : channel_axis(view, static_cast<int>(src->size()));
  require_shape(view, "slope", {(*src)[static_cast<size_t>(axis)]}, "the channels of src");
}

}  // namespace
}  // namespace lamina

LAMINA_SCHEMA(Add) { return of_values(around_zero(), arithmetic(OpKind::Add, "dst = src_0 + src_1", kCommutative)); }

LAMINA_SCHEMA(Subtract) { return of_values(around_zero(), arithmetic(OpKind::Subtract, "dst = src_0 - src_1")); }

LAMINA_SCHEMA(Multiply) { return of_values(factor(), arithmetic(OpKind::Multiply, "dst = src_0 * src_1", kCommutative)); }

LAMINA_SCHEMA(Divide) {
  OpSchema schema = of_values(
      around_zero(), arithmetic(OpKind::Divide, "dst = src_0 / src_1; of integers without the fraction, and 0 where src_1 is 0",
                                {.jumps = true}));
  schema.inputs[1].domain = divisor();
  schema.check_types = all_of({schema.check_types, stays_alone(DataType::s32, {"T1", "T2", "T3"})});
  schema.type_rule_text = "any mix of floats; f64 and every integer with its own type only; integers wrap around";
  return schema;
}

LAMINA_SCHEMA(Maximum) { return selection(OpKind::Maximum, "dst = max(src_0, src_1)"); }

LAMINA_SCHEMA(Minimum) { return selection(OpKind::Minimum, "dst = min(src_0, src_1)"); }

// The angle jumps by 2 pi at the negative x axis.
LAMINA_SCHEMA(Atan2) {
  OpSchema schema = of_values(
      around_zero(), binary(OpKind::Atan2, "dst = the angle of the point (src_1, src_0), from -pi to pi", {.jumps = true}));
  schema.error = 6e-7;
  return schema;
}

LAMINA_SCHEMA(Fmod) {
  OpSchema schema =
      of_values(around_zero(), binary(OpKind::Fmod,
                                      "dst = src_0 - n src_1, n being src_0 / src_1 without the fraction: C's fmod, exact for "
                                      "quotients of any size",
                                      {.jumps = true}));
  schema.inputs[1].domain = divisor();
  schema.error = 0;
  return schema;
}

LAMINA_SCHEMA(SquaredDifference) {
  OpSchema schema = binary(OpKind::SquaredDifference, "dst = (src_0 - src_1)^2", kCommutative);
  schema.inplace = {};
  return schema;
}

LAMINA_SCHEMA(GreaterEqual) { return comparison(OpKind::GreaterEqual, "dst = src_0 >= src_1", numbers()); }

LAMINA_SCHEMA(Greater) { return comparison(OpKind::Greater, "dst = src_0 > src_1", numbers()); }

LAMINA_SCHEMA(LessEqual) { return comparison(OpKind::LessEqual, "dst = src_0 <= src_1", numbers()); }

LAMINA_SCHEMA(Less) { return comparison(OpKind::Less, "dst = src_0 < src_1", numbers()); }

LAMINA_SCHEMA(Equal) { return comparison(OpKind::Equal, "dst = src_0 == src_1; NaN equals no value", with_boolean(numbers())); }

LAMINA_SCHEMA(NotEqual) {
  return comparison(OpKind::NotEqual, "dst = src_0 != src_1; NaN equals no value", with_boolean(numbers()));
}

LAMINA_SCHEMA(LogicalAnd) { return logical(OpKind::LogicalAnd, "dst = src_0 and src_1", kCommutative); }

LAMINA_SCHEMA(LogicalOr) { return logical(OpKind::LogicalOr, "dst = src_0 or src_1", kCommutative); }

LAMINA_SCHEMA(BitwiseAnd) { return bitwise(OpKind::BitwiseAnd, "dst = the bits that src_0 and src_1 share", kCommutative); }

LAMINA_SCHEMA(BitwiseOr) { return bitwise(OpKind::BitwiseOr, "dst = the bits of src_0 and of src_1", kCommutative); }

LAMINA_SCHEMA(BitwiseXor) {
  return bitwise(OpKind::BitwiseXor, "dst = the bits in which src_0 and src_1 differ", kCommutative);
}

LAMINA_SCHEMA(ShiftLeft) { return shift(OpKind::ShiftLeft, "dst = src_0 * 2^src_1, whose upper bits are lost"); }

LAMINA_SCHEMA(ShiftRight) { return shift(OpKind::ShiftRight, "dst = src_0 / 2^src_1, rounded down"); }

LAMINA_SCHEMA(LogicalNot) {
  return {.kind = OpKind::LogicalNot,
          .op_class = OpClass::elementwise,
          .formula = "dst = not src",
          .inputs = {within(needs(0, 1), port("src", "T"))},
          .outputs = {port("dst", "T", "shape of src")},
          .types = {{"T", {DataType::boolean}}},
          .infer_shapes = [](const OpView& view) { return outputs_like(view, "src", {"dst"}); },
          .inplace = {{"src", "dst"}},
          .error = 0};
}

LAMINA_SCHEMA(Select) {
  return {.kind = OpKind::Select,
          .op_class = OpClass::elementwise,
          .formula = "dst = src_0 where cond, else src_1",
          .inputs = {within(needs(0, 1), port("cond", "T1", "broadcasts to the shape of dst")),
                     within(around_zero(), port("src_0", "T2")), within(around_zero(), port("src_1", "T2"))},
          .outputs = {port("dst", "T2", "the broadcast shape of src_0 and src_1")},
          .attributes = {auto_broadcast()},
          .types = {{"T1", {DataType::boolean}}, {"T2", with_boolean(numbers())}},
          .infer_shapes = select_shapes,
          .inplace = {{"src_0", "dst"}},
          .error = 0};
}

LAMINA_SCHEMA(BiasAdd) {
  return {.kind = OpKind::BiasAdd,
          .op_class = OpClass::elementwise,
          .nest = LoopNest::per_channel,
          .formula = "dst = src + bias, one bias per channel",
          .inputs = {port("src", "T", "rank 2 or more"), port("bias", "T", "[C]")},
          .outputs = {port("dst", "T", "shape of src")},
          .attributes = {data_format()},
          .types = {{"T", floats_and_f64()}},
          .check = check_bias,
          .infer_shapes = [](const OpView& view) { return outputs_like(view, "src", {"dst"}); },
          .inplace = {{"src", "dst"}},
          .example = {.inputs = {{2, 3}, {3}}}};
}

LAMINA_SCHEMA(BiasAddBackward) {
  return {
      .kind = OpKind::BiasAddBackward,
      .op_class = OpClass::inner_reduction,
      .nest = LoopNest::channel_rows,
      .formula = "diff_bias = sum of diff_dst over every axis but the channels",
      .inputs = {port("diff_dst", "T", "rank 2 or more")},
      .outputs = {port("diff_bias", "T", "[C]")},
      .attributes = {data_format()},
      .types = {{"T", floats_and_f64()}},
      .check = [](const OpView& view) { require_rank_of_two(view, "diff_dst"); },
      .infer_shapes =
          [](const OpView& view) {
            const Dims& shape = view.shape("diff_dst");
            return ShapeMap{{"diff_bias", {shape[static_cast<size_t>(channel_axis(view, static_cast<int>(shape.size())))]}}};
          },
      .traits = {.reduces = true}};
}

LAMINA_SCHEMA(PReLU) {
  return {.kind = OpKind::PReLU,
          .op_class = OpClass::elementwise,
          .nest = LoopNest::per_channel,
          .formula = "dst = src where src >= 0, else slope * src",
          .inputs = {port("src", "T"), slope()},
          .outputs = {port("dst", "T", "shape of src")},
          .attributes = {data_format(), flag("per_channel_broadcast", true, "true: slope is [C]; false: it broadcasts to src")},
          .types = {{"T", floats_and_f64()}},
          .check = [](const OpView& view) { check_slope(view, view.attribute<bool>("per_channel_broadcast")); },
          .infer_shapes = [](const OpView& view) { return outputs_like(view, "src", {"dst"}); },
          .example = {.inputs = {{2, 3}, {3}}}};
}

LAMINA_SCHEMA(PReLUBackward) {
  return {.kind = OpKind::PReLUBackward,
          .op_class = OpClass::inner_reduction,
          .nest = LoopNest::slope,
          .formula =
              "diff_src = diff_dst where src >= 0, else slope * diff_dst; "
              "diff_slope = sum of diff_dst * src where src < 0, to the shape of slope",
          .inputs = {port("src", "T"), slope(), port("diff_dst", "T")},
          .outputs = {port("diff_src", "T", "shape of src"), port("diff_slope", "T", "shape of slope")},
          .attributes = {data_format()},
          .types = {{"T", floats_and_f64()}},
          .check =
              [](const OpView& view) {
                require_same_shape(view, "src", "diff_dst");
                check_slope(view, true);
              },
          .infer_shapes =
              [](const OpView& view) { return ShapeMap{{"diff_src", view.shape("src")}, {"diff_slope", view.shape("slope")}}; },
          .traits = {.jumps = true},
          .error = 2e-6,
          .example = {.inputs = {{2, 3}, {3}, {2, 3}}}};
}
