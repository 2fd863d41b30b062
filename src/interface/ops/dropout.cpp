#include "interface/ops/parts.h"

namespace lamina {

using namespace parts;

namespace {

// seed, offset and probability are scalars; one element in a tensor of rank 1 is taken for one.
void require_scalar(const OpView& view, std::string_view input) {
  const Dims* shape = known_shape(view, input);
  if (shape == nullptr || shape->empty() || dims_agree(*shape, {1})) return;
  view.fail_shape(join("input ", input, " has shape ", describe(*shape), ", allowed is [] or [1]"));
}

}  // namespace
}  // namespace lamina

LAMINA_SCHEMA(Dropout) {
  return {.kind = OpKind::Dropout,
          .op_class = OpClass::elementwise,
          .formula =
              "mask = u > probability, u drawn by Philox4x32-10 keyed by seed and offset; "
              "dst = mask * src / (1 - probability)",
          .inputs = {port("src", "T"), within(needs(1, 1000), port("seed", "T_seed", "scalar")),
                     within(needs(0, 1000), port("offset", "T_offset", "scalar")),
                     within(needs(0.25, 0.25),
                            as(PortRole::parameter, port("probability", "T_p", "scalar, of dropping an element")))},
          .outputs = {port("dst", "T", "shape of src"), optional_port("mask", "T_mask", "shape of src")},
          .types = {{"T", floats_and_f64()},
                    {"T_seed", {DataType::s64}},
                    {"T_offset", {DataType::s64}},
                    {"T_p", {DataType::f32}},
                    {"T_mask", {DataType::u8}}},
          .check =
              [](const OpView& view) {
                for (const char* input : {"seed", "offset", "probability"}) require_scalar(view, input);
              },
          .infer_shapes = [](const OpView& view) { return outputs_like(view, "src", {"dst", "mask"}); },
          .traits = {.positional = true}};
}
