// Runs one op on given numbers with the reference backend. The default type is f64.
//
//   OpCase op(OpKind::Add);
//   op.input({2}, {1, 2}).input({}, {10});
//   EXPECT_THAT(op.result(), ElementsAre(11, 12));
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "backends/reference/run.h"
#include "support/graph_builder.h"

namespace lamina::testing {

using Numbers = std::vector<double>;

// Stores `values` (row-major in the logical tensor) in the layout of `description`; the bytes in gaps are 0xff.
inline std::vector<std::byte> memory_of(const LogicalTensor& description, const Numbers& values) {
  std::vector<std::byte> memory(static_cast<size_t>(description.byte_size()), std::byte{0xff});
  int64_t next = 0;
  reference::for_each_offset<1>(*description.shape, {description.strides}, [&](const auto& at) {
    store_from_double(description.dtype, memory.data(), at[0], values[static_cast<size_t>(next++)]);
  });
  return memory;
}

class OpCase {
 public:
  explicit OpCase(OpKind kind) : kind_(kind) {}

  OpCase& input(const Dims& shape, Numbers values, DataType dtype = DataType::f64, const Dims& strides = {}) {
    ids_.push_back(builder_.input(dtype, shape, strides));
    values_.push_back(std::move(values));
    return *this;
  }
  OpCase& integer(int64_t value) {  // adds an s64 host scalar
    ids_.push_back(builder_.scalar(DataType::s64));
    values_.emplace_back();
    integers_.emplace_back(values_.size() - 1, value);
    return *this;
  }
  OpCase& attr(const std::string& name, Attribute value) { return attributes_[name] = std::move(value), *this; }
  OpCase& attr(const std::string& name, bool value) { return attr(name, Attribute(value)); }
  OpCase& attr(const std::string& name, int value) { return attr(name, Attribute(int64_t{value})); }
  OpCase& attr(const std::string& name, double value) { return attr(name, Attribute(static_cast<float>(value))); }
  OpCase& attr(const std::string& name, const char* value) { return attr(name, Attribute(std::string(value))); }
  OpCase& outputs(std::vector<DataType> types) { return output_types_ = std::move(types), *this; }  // undef omits a port
  // For ops whose output shape cannot be inferred.
  OpCase& output_shape(const Dims& shape) { return output_shape_ = shape, *this; }

  // Replaces the numbers of an input.
  OpCase& set(size_t input, Numbers values) { return values_[input] = std::move(values), *this; }
  // Replaces an input but keeps its dtype.
  OpCase& set_input(size_t input, const Dims& shape, Numbers values) {
    LogicalTensor& tensor = builder_.tensor(ids_[input]);
    tensor.shape = shape;
    tensor.strides = dense_strides(shape);
    return set(input, std::move(values));
  }
  const Numbers& numbers(size_t input) const { return values_[input]; }

  // Returns unrounded results, one per output port; omitted ports have empty results.
  std::vector<reference::Tensor> run() const {
    GraphBuilder builder = builder_;
    const std::vector<uint64_t> outputs = builder.multi(kind_, ids_, attributes_, output_types_);
    if (output_shape_) builder.tensor(outputs.at(0)).shape = output_shape_;
    const Graph graph = builder.finish();
    const std::vector<ValueIndex> input_values = graph.inputs();
    std::vector<std::vector<std::byte>> memory;
    std::vector<const void*> pointers;
    for (const ValueIndex index : input_values) memory.push_back(memory_of_input(graph.tensor(index)));
    for (const auto& bytes : memory) pointers.push_back(bytes.data());
    std::vector<ValueIndex> wanted;
    for (const uint64_t id : outputs)
      if (id != kNoTensor) wanted.push_back(*graph.find_value(id));
    std::vector<reference::Tensor> found = reference::run(graph, input_values, wanted, pointers);
    std::vector<reference::Tensor> by_port(outputs.size());
    size_t next = 0;
    for (size_t port = 0; port < outputs.size(); ++port)
      if (outputs[port] != kNoTensor) by_port[port] = std::move(found[next++]);
    return by_port;
  }
  Numbers result(size_t port = 0) const { return run().at(port).values; }

 private:
  std::vector<std::byte> memory_of_input(const LogicalTensor& tensor) const {
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (ids_[i] != tensor.id) continue;
      for (const auto& [input, value] : integers_) {
        if (input != i) continue;
        std::vector<std::byte> memory(sizeof value);
        std::memcpy(memory.data(), &value, sizeof value);
        return memory;
      }
      return memory_of(tensor, values_[i]);
    }
    return {};
  }

  OpKind kind_;
  GraphBuilder builder_;
  std::vector<uint64_t> ids_;
  std::vector<Numbers> values_;
  std::vector<std::pair<size_t, int64_t>> integers_;
  Attributes attributes_;
  std::vector<DataType> output_types_{DataType::f64};
  std::optional<Dims> output_shape_;
};

// Expects equality up to `tolerance` relative to max(1, |expected|); NaN equals NaN.
inline void expect_close(const Numbers& actual, const Numbers& expected, double tolerance = 1e-14) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i]) || std::isinf(expected[i])) {
      EXPECT_TRUE(std::isnan(expected[i]) ? std::isnan(actual[i]) : actual[i] == expected[i]) << i << ": " << actual[i];
      continue;
    }
    EXPECT_NEAR(actual[i], expected[i], tolerance * std::fmax(1, std::fabs(expected[i]))) << "element " << i;
  }
}

}  // namespace lamina::testing
