// Shared by the tests of the public interface: short names, and functions to build, compile and execute small graphs.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "graph/lamina.hpp"
#include "support/failure.h"

namespace api_test {

using lamina::engine;
using lamina::error;
using lamina::stream;
using lamina::graph::compiled_partition;
using lamina::graph::graph;
using lamina::graph::logical_tensor;
using lamina::graph::op;
using lamina::graph::partition;
using lamina::graph::tensor;
using data_type = logical_tensor::data_type;
using layout_type = logical_tensor::layout_type;
using property_type = logical_tensor::property_type;
using dims = logical_tensor::dims;

inline logical_tensor f32(size_t id, const dims& shape) { return {id, data_type::f32, shape, layout_type::strided}; }

// Returns the partitions of a graph of these ops.
inline std::vector<partition> partitions_of(const std::vector<op>& ops, partition::policy policy = partition::policy::fusion) {
  graph g(engine::kind::cpu);
  for (const op& each : ops) g.add_op(each);
  g.finalize();
  return g.get_partitions(policy);
}

inline partition only_partition_of(const std::vector<op>& ops) {
  auto partitions = partitions_of(ops);
  EXPECT_EQ(partitions.size(), 1u);
  return partitions.at(0);
}

inline op relu(const logical_tensor& src, const logical_tensor& dst) { return op(0, op::kind::ReLU, {src}, {dst}, "relu"); }

// Compiles one ReLU for these tensors.
inline compiled_partition compiled_relu(const logical_tensor& src, const logical_tensor& dst, const engine& cpu) {
  return only_partition_of({relu(src, dst)}).compile({src}, {dst}, cpu);
}

using Failure = lamina::testing::Failure<lamina_status_t>;
using lamina::testing::FailsWith;
inline Failure failure_of(const std::function<void()>& body) { return lamina::testing::failure_by<error>(body); }

}  // namespace api_test
