// Graphs of one convolution op, in every form that the schemas of the six kinds allow.
#pragma once

#include <string>
#include <vector>

#include "support/graph_builder.h"

namespace lamina::testing {

// A convolution of src, or its transpose, described by its forward op; gradient ops use the same description.
struct ConvolutionCase {
  OpKind kind = OpKind::Convolution;
  int64_t batch = 2, src_channels = 8, dst_channels = 8, groups = 1;
  Dims space{9, 8}, kernel{3, 3}, strides{1, 1}, pads_begin{1, 1}, pads_end{1, 1}, dilations{1, 1};
  Dims output_padding = {};  // only for ConvTranspose
  std::string auto_pad = "None";
  bool channels_last = true, taps_first = true, has_bias = true;
  DataType dtype = DataType::f32;
  bool has_gaps = false;  // makes every tensor strided

  bool is_transposed() const {
    return kind == OpKind::ConvTranspose || kind == OpKind::ConvTransposeBackwardData ||
           kind == OpKind::ConvTransposeBackwardWeights;
  }
};

inline const std::vector<OpKind> kConvolutionKinds{
    OpKind::Convolution,   OpKind::ConvolutionBackwardData,   OpKind::ConvolutionBackwardWeights,
    OpKind::ConvTranspose, OpKind::ConvTransposeBackwardData, OpKind::ConvTransposeBackwardWeights};

inline Attributes attributes_of(const ConvolutionCase& c) {
  const std::string formats = c.is_transposed() ? "XOIIOX" : "XIOOIX";
  return {{"strides", c.strides},
          {"pads_begin", c.pads_begin},
          {"pads_end", c.pads_end},
          {"dilations", c.dilations},
          {"auto_pad", c.auto_pad},
          {"groups", c.groups},
          {"data_format", std::string(c.channels_last ? "NXC" : "NCX")},
          {"weights_format", formats.substr(c.taps_first ? 0 : 3, 3)}};
}

inline Dims src_shape(const ConvolutionCase& c) {
  Dims shape = c.space;
  shape.insert(c.channels_last ? shape.end() : shape.begin(), c.src_channels);
  shape.insert(shape.begin(), c.batch);
  return shape;
}

inline Dims weights_shape(const ConvolutionCase& c) {
  const int64_t in = c.is_transposed() ? c.src_channels : c.src_channels / c.groups;
  const int64_t out = c.is_transposed() ? c.dst_channels / c.groups : c.dst_channels;
  const bool input_first = c.is_transposed() != c.taps_first;  // XIO and IOX
  Dims shape = c.kernel;
  shape.insert(c.taps_first ? shape.end() : shape.begin(), {input_first ? in : out, input_first ? out : in});
  return shape;
}

inline Dims strides_with_gaps(const Dims& shape) {
  Dims strides(shape.size());
  int64_t stride = 2;
  for (size_t axis = shape.size(); axis-- > 0; stride = stride * shape[axis] + 3) strides[axis] = stride;
  return strides;
}

inline uint64_t input(GraphBuilder& g, const ConvolutionCase& c, const Dims& shape) {
  return g.input(c.dtype, shape, c.has_gaps ? strides_with_gaps(shape) : Dims{});
}

inline uint64_t add_forward(GraphBuilder& g, const ConvolutionCase& c) {
  Attributes attributes = attributes_of(c);
  if (c.is_transposed() && !c.output_padding.empty()) attributes["output_padding"] = c.output_padding;
  const uint64_t src = input(g, c, src_shape(c)), weights = input(g, c, weights_shape(c));
  const uint64_t bias = c.has_bias ? input(g, c, {c.dst_channels}) : kNoTensor;
  return g.op(c.is_transposed() ? OpKind::ConvTranspose : OpKind::Convolution, {src, weights, bias}, attributes);
}

inline Dims shape_of(const GraphBuilder& g, uint64_t id) {
  const Graph graph = GraphBuilder(g).finish();
  return *graph.tensor(*graph.find_value(id)).shape;
}

inline Dims dst_shape(const ConvolutionCase& c) {
  GraphBuilder g;
  const uint64_t dst = add_forward(g, c);
  return shape_of(g, dst);
}

inline uint64_t add_op(GraphBuilder& g, const ConvolutionCase& c) {
  Attributes attributes = attributes_of(c);
  switch (c.kind) {
    case OpKind::ConvolutionBackwardData: attributes["dst_shape"] = src_shape(c); break;
    case OpKind::ConvTransposeBackwardData: break;
    case OpKind::ConvolutionBackwardWeights:
    case OpKind::ConvTransposeBackwardWeights:
      attributes["weights_shape"] = weights_shape(c);
      return g.op(c.kind, {input(g, c, src_shape(c)), input(g, c, dst_shape(c))}, attributes);
    default: return add_forward(g, c);
  }
  return g.op(c.kind, {input(g, c, dst_shape(c)), input(g, c, weights_shape(c))}, attributes);
}

inline Graph graph_of(const ConvolutionCase& c) {
  GraphBuilder g;
  const uint64_t made = add_op(g, c);
  if (c.has_gaps) {
    const Dims shape = shape_of(g, made);
    g.tensor(made).shape = shape;
    g.tensor(made).strides = strides_with_gaps(shape);
    g.tensor(made).layout = LayoutType::strided;
  }
  return g.finish();
}

}  // namespace lamina::testing
