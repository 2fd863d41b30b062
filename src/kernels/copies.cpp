// Ops that only copy.
//
// A reshape whose shapes share no dims ([6, 4] to [4, 6]) moves the elements in row-major order. A dense side can be
// traversed with either shape, so one copy is enough. If neither side is dense, there are two copies with a dense temporary
// between them.
// A concatenation is one copy per input, into its part of the output.
// Bits that become elements of another type are copied as unsigned integers, which no load or store changes.
#include "interface/op_schema.h"
#include "kernels/builder.h"
#include "kernels/dims.h"
#include "kernels/lower.h"

namespace lamina::kernel {

namespace {

struct Side {
  ValueIndex value;
  Dims strides;
  int64_t offset = 0;
};

// dst[i] = src[i] over `shape`.
LoweredKernel copy(const Graph& graph, const std::string& name, const Dims& shape, DataType dtype, const Side& src,
                   const Side& dst) {
  Dims extents = shape;
  extents.push_back(1);
  const auto arg = [&](const Side& side, bool output) {
    Dims strides = side.strides;
    strides.push_back(0);
    const std::string tensor = side.value == kTemporary ? "temporary" : "t" + std::to_string(graph.tensor(side.value).id);
    return Arg{.name = tensor, .dtype = dtype, .output = output, .strides = std::move(strides), .table = {}};
  };
  Builder k(name + "_" + std::string(lamina::name_of(dtype)), extents, static_cast<int>(shape.size()));
  const int from = k.add_arg(arg(src, false));
  const int to = k.add_arg(arg(dst, true));
  k.store(k.load(from), to);
  LoweredKernel lowered{k.finish(), {src.value, dst.value}, {src.offset, dst.offset}};
  simplify_dims(lowered.kernel);
  return lowered;
}

std::vector<LoweredKernel> reshape(const Graph& graph, const Op& op) {
  const ValueIndex in = op.inputs[0], out = op.outputs[0];
  const LogicalTensor& src = graph.tensor(in);
  const LogicalTensor& dst = graph.tensor(out);
  const Side src_side{in, src.strides}, dst_side{out, dst.strides};
  const auto move = [&](const Dims& shape, const Side& from, const Side& to) {
    return copy(graph, "static_reshape", shape, src.dtype, from, to);
  };
  if (is_dense(src)) return {move(*dst.shape, {in, dense_strides(*dst.shape)}, dst_side)};
  if (is_dense(dst)) return {move(*src.shape, src_side, {out, dense_strides(*src.shape)})};
  return {move(*src.shape, src_side, {kTemporary, dense_strides(*src.shape)}),
          move(*dst.shape, {kTemporary, dense_strides(*dst.shape)}, dst_side)};
}

std::vector<LoweredKernel> concatenate(const Graph& graph, const Op& op) {
  const LogicalTensor& dst = graph.tensor(op.outputs[0]);
  const auto axis = static_cast<size_t>(wrap_axis(op.attribute<int64_t>("axis"), dst.rank()));
  std::vector<LoweredKernel> copies;
  int64_t position = 0;
  for (const ValueIndex in : op.inputs) {
    const LogicalTensor& src = graph.tensor(in);
    copies.push_back(copy(graph, "concat", *src.shape, src.dtype, {in, src.strides},
                          {op.outputs[0], dst.strides, position * dst.strides[axis]}));
    position += (*src.shape)[axis];
  }
  return copies;
}

DataType unsigned_integer(int bits) {
  switch (bits) {
    case 8: return DataType::u8;
    case 16: return DataType::u16;
    case 32: return DataType::u32;
    default: return DataType::u64;
  }
}

std::vector<LoweredKernel> reinterpret(const Graph& graph, const Op& op) {
  const LogicalTensor& src = graph.tensor(op.inputs[0]);
  const LogicalTensor& dst = graph.tensor(op.outputs[0]);
  return {copy(graph, "bit_cast", *dst.shape, unsigned_integer(bits_of(src.dtype)), {op.inputs[0], src.strides},
               {op.outputs[0], dst.strides})};
}

}  // namespace

std::vector<LoweredKernel> lower_copies(const Graph& graph, const Op& op) {
  switch (schema_of(op.kind).nest) {
    case LoopNest::concatenated: return concatenate(graph, op);
    case LoopNest::reinterpreted: return reinterpret(graph, op);
    default: return reshape(graph, op);
  }
}

}  // namespace lamina::kernel
