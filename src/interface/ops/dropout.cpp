#include "interface/ops/parts.h"

namespace lamina {

using namespace parts;

namespace {

// seed, offset and probability are scalars; a tensor of rank 1 with one element counts as a scalar.
void require_scalar(const OpView& view, std::string_view input) {
  const Dims* shape = known_shape(view, input);
  if (shape == nullptr || shape->empty() || dims_agree(*shape, {1})) return;
  view.fail_shape(join("input ", input, " has shape ", describe(*shape), ", allowed is [] or [1]"));
}

// If src is a part of a larger tensor, `steps` gives the number of positions in that tensor from one element to the next.
void check_steps(const OpView& view) {
  const Dims* src = known_shape(view, "src");
  if (!view.op().has_attribute("steps") || src == nullptr) return;
  const auto& steps = view.attribute<std::vector<int64_t>>("steps");
  if (steps.size() == src->size()) return;
  view.fail(join("attribute steps has ", steps.size(), " entries, allowed is one per axis of src ", describe(*src)),
            "attribute steps");
}

Condition is_part() {
  return {"steps is given", [](const Attributes& attributes) { return attributes.contains("steps"); }, "steps is not given"};
}

}  // namespace
}  // namespace lamina

LAMINA_SCHEMA(Dropout) {
  return {.kind = OpKind::Dropout,
          .op_class = OpClass::elementwise,
          .formula =
              "mask = u > probability, u drawn by Philox4x32-10 keyed by seed and offset for an element's position; "
              "dst = mask * src / (1 - probability)",
          .inputs = {port("src", "T"), within(needs(1, 1000), port("seed", "T_seed", "scalar")),
                     within(needs(0, 1000), port("offset", "T_offset", "scalar")),
                     within(needs(0.25, 0.25),
                            as(PortRole::parameter, port("probability", "T_p", "scalar, probability of dropping an element"))),
                     within(needs(0, 1000), port_when("first", "T_offset", is_part(),
                                                      "scalar; src is a part of a larger tensor: row-major position in it of "
                                                      "the first element"))},
          .outputs = {port("dst", "T", "shape of src"), optional_port("mask", "T_mask", "shape of src")},
          .attributes = {{.name = "steps",
                          .type = AttributeType::s64_list,
                          .meaning = "with first: per axis, number of positions to the next element"}},
          .types = {{"T", floats_and_f64()},
                    {"T_seed", {DataType::s64}},
                    {"T_offset", {DataType::s64}},
                    {"T_p", {DataType::f32}},
                    {"T_mask", {DataType::u8}}},
          .check =
              [](const OpView& view) {
                for (const char* input : {"seed", "offset", "probability", "first"}) require_scalar(view, input);
                check_steps(view);
              },
          .infer_shapes = [](const OpView& view) { return outputs_like(view, "src", {"dst", "mask"}); },
          .traits = {.positional = true},
          .example = {.inputs = {{2, 3}, {}, {}, {}}}};
}
