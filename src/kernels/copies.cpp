// A reshape whose shapes share no dims ([6, 4] to [4, 6]) moves the elements in row-major order. A dense side can be walked
// with either shape, so one copy does; when neither side is dense a dense temporary lies between two copies.
#include "kernels/builder.h"
#include "kernels/dims.h"
#include "kernels/lower.h"

namespace lamina::kernel {

namespace {

struct Side {
  ValueIndex value;
  Dims strides;
};

// dst[i] = src[i] over `shape`.
LoweredKernel copy(const Graph& graph, const Dims& shape, DataType dtype, const Side& src, const Side& dst) {
  Dims extents = shape;
  extents.push_back(1);
  const auto arg = [&](const Side& side, bool output) {
    Dims strides = side.strides;
    strides.push_back(0);
    const std::string name = side.value == kTemporary ? "temporary" : "t" + std::to_string(graph.tensor(side.value).id);
    return Arg{.name = name, .dtype = dtype, .output = output, .strides = std::move(strides), .table = {}};
  };
  Builder k("static_reshape_" + std::string(lamina::name_of(dtype)), extents, static_cast<int>(shape.size()));
  const int from = k.add_arg(arg(src, false));
  const int to = k.add_arg(arg(dst, true));
  k.store(k.load(from), to);
  LoweredKernel lowered{k.finish(), {src.value, dst.value}};
  simplify_dims(lowered.kernel);
  return lowered;
}

}  // namespace

std::vector<LoweredKernel> lower_row_major_copy(const Graph& graph, const Op& reshape) {
  const ValueIndex in = reshape.inputs[0], out = reshape.outputs[0];
  const LogicalTensor& src = graph.tensor(in);
  const LogicalTensor& dst = graph.tensor(out);
  const Side src_side{in, src.strides}, dst_side{out, dst.strides};
  if (is_dense(src)) return {copy(graph, *dst.shape, src.dtype, {in, dense_strides(*dst.shape)}, dst_side)};
  if (is_dense(dst)) return {copy(graph, *src.shape, src.dtype, src_side, {out, dense_strides(*src.shape)})};
  return {copy(graph, *src.shape, src.dtype, src_side, {kTemporary, dense_strides(*src.shape)}),
          copy(graph, *dst.shape, src.dtype, {kTemporary, dense_strides(*dst.shape)}, dst_side)};
}

}  // namespace lamina::kernel
