// Tensors of images for tests of ops with attribute data_format: shapes, strides, and invariance of bits in a batch.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "backends/cpu/library/library_check.h"
#include "backends/cpu/support/kernels_alone.h"
#include "support/graph_builder.h"

namespace lamina::testing {

inline Dims image_shape(const std::string& format, int64_t batch, int64_t channels, const Dims& spatial) {
  Dims shape{batch};
  if (format == "NCX") shape.push_back(channels);
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  if (format == "NXC") shape.push_back(channels);
  return shape;
}

// ---- strides of a shape

using StridesOf = Dims (*)(const Dims& shape);

// The tensor is a part of one that is larger along every axis.
inline Dims part_of_larger(const Dims& shape) {
  Dims larger = shape;
  for (size_t i = 1; i < larger.size(); ++i) larger[i] += 3;
  return dense_strides(larger);
}

// Dense, with axis 1 innermost: images of format NCX are channels-last in memory.
inline Dims axis_1_innermost(const Dims& shape) {
  Dims turned{shape[0]};
  turned.insert(turned.end(), shape.begin() + 2, shape.end());
  turned.push_back(shape[1]);
  Dims strides = dense_strides(turned);
  strides.insert(strides.begin() + 1, strides.back());
  strides.pop_back();
  return strides;
}

// No axis is contiguous.
inline Dims every_second(const Dims& shape) {
  Dims strides = dense_strides(shape);
  for (int64_t& stride : strides) stride *= 2;
  return strides;
}

inline void set_layout(LogicalTensor& tensor, const Dims& shape, StridesOf strides) {
  tensor.shape = shape;
  tensor.layout = LayoutType::strided;
  tensor.strides = strides(shape);
}

// ---- values

inline Buffer buffer_of(const LogicalTensor& tensor, const std::vector<double>& values) {
  Buffer buffer = buffer_for(tensor);
  for (size_t i = 0; i < values.size(); ++i) store_from_double(tensor.dtype, buffer.data(), static_cast<int64_t>(i), values[i]);
  return buffer;
}

// Returns the values of the only output of a graph whose inputs are dense and have these values, in order.
inline std::vector<double> results_of(const Graph& graph, const std::vector<std::vector<double>>& inputs) {
  std::map<uint64_t, Buffer> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const LogicalTensor& tensor = graph.tensor(graph.inputs()[i]);
    given[tensor.id] = buffer_of(tensor, inputs[i]);
  }
  const LibraryRun run = expect_library_matches_reference(graph, 0, given);
  expect_library_matches_reference(graph, 0, given, 1, kernels_alone());
  return elements(run.outputs[0], run.buffers.at(run.outputs[0].id));
}

// ---- batches: `graph_of` builds the graph for a number of images; all its tensors are dense, with the images as axis 0

inline Buffer image_of(const LogicalTensor& tensor, const Buffer& data, int64_t image) {
  const int64_t bytes = bytes_of(tensor.dtype, tensor.element_count()) / (*tensor.shape)[0];
  const auto begin = data.begin() + image * bytes;
  Buffer result(begin, begin + bytes);
  result.resize(static_cast<size_t>(bytes) + 64);
  return result;
}

inline void expect_images_do_not_see_each_other(const std::function<Graph(int64_t images)>& graph_of, int64_t images) {
  const LibraryRun all = expect_library_matches_reference(graph_of(images));
  for (int64_t image = 0; image < images; ++image) {
    std::map<uint64_t, Buffer> given;
    for (const LogicalTensor& tensor : all.inputs) given[tensor.id] = image_of(tensor, all.buffers.at(tensor.id), image);
    const LibraryRun alone = expect_library_matches_reference(graph_of(1), 2e-6, given);
    for (const LogicalTensor& tensor : all.outputs)
      EXPECT_TRUE(alone.buffers.at(tensor.id) == image_of(tensor, all.buffers.at(tensor.id), image)) << "image " << image;
  }
}

}  // namespace lamina::testing
