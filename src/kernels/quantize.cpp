// Conversions. TypeCast between floats is nothing inside a kernel, where values stay f32: rounding happens in the store.
//   Quantize:    dst = saturate(round(src / scale + zero point))
//   Dequantize:  dst = (src - zero point) * scale
// Scales and zero points are attributes, or operands of the dynamic ops; the loop nest says along what they vary.
#include "kernels/op_lowering.h"

namespace lamina::kernel {

namespace {

struct Parameters {
  Value scale, zero_point;  // zero_point is absent when every entry is 0
};

// From attributes. Per tensor: constants. Per channel: tables along `axis`.
Parameters attribute_parameters(OpLowering& op) {
  const auto& scales = op.attribute<std::vector<float>>("scales");
  std::vector<float> zps(scales.size(), 0.0F);
  bool any = false;
  if (op.has_attribute("zps")) {
    const auto& given = op.attribute<std::vector<int64_t>>("zps");
    for (size_t i = 0; i < given.size() && i < zps.size(); ++i) {
      zps[i] = static_cast<float>(given[i]);
      any |= given[i] != 0;
    }
  }
  if (op.attribute<std::string>("qtype") == "per_tensor") {
    const auto constant = [&](float value) { return op.k.constant(static_cast<double>(value), op.float_type()); };
    return {constant(scales[0]), any ? constant(zps[0]) : Value{}};
  }
  const int axis = static_cast<int>(op.attribute<int64_t>("axis"));
  return {op.table("scales", scales, axis), any ? op.table("zps", zps, axis) : Value{}};
}

Parameters quantization_parameters(OpLowering& op) {
  if (op.has_attribute("scales")) return attribute_parameters(op);
  return {op.in("scales"), op.has("zps") ? op.in("zps") : Value{}};
}

void quantize(OpLowering& op) {
  const Parameters q = quantization_parameters(op);
  Value scaled = op.in(0) / q.scale;
  if (q.zero_point) scaled = scaled + q.zero_point;
  op.out(0, op.k.round_to(scaled, op.output_tensor(0).dtype));
}

void dequantize(OpLowering& op) {
  const Parameters q = quantization_parameters(op);
  const Value src = op.in(0);
  op.out(0, (q.zero_point ? src - q.zero_point : src) * q.scale);
}

}  // namespace

std::vector<Lowering> quantize_lowerings() {
  return {{OpKind::Quantize, quantize},
          {OpKind::Dequantize, dequantize},
          {OpKind::DynamicQuantize, quantize},
          {OpKind::DynamicDequantize, dequantize},
          {OpKind::TypeCast, [](OpLowering& op) { op.out(0, op.in_as_is(0)); }}};
}

}  // namespace lamina::kernel
