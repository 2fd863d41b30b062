// Elementwise ops at the ends of the ranges of their types: an intermediate value must not overflow where the result is finite.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/compile.h"
#include "interface/op_schema.h"
#include "interface/status.h"
#include "lamina/check.h"
#include "lamina/device_tensors.h"
#include "passes/pipeline.h"
#include "support/graph_builder.h"
#include "support/valid_op.h"

namespace lamina::testing {
namespace {

// The largest finite number and the smallest subnormal number of a type, as powers of two.
std::pair<int, int> exponent_range(DataType type) {
  switch (type) {
    case DataType::f16: return {15, -24};
    case DataType::bf16: return {127, -133};
    case DataType::f64: return {1023, -1074};
    default: return {127, -149};
  }
}

// Zeros, ordinary numbers, and powers of the largest number near the points where squares, cubes and sums overflow.
std::vector<double> extremes(DataType type) {
  const auto [max_exponent, min_exponent] = exponent_range(type);
  const double largest = std::ldexp(1.9375, max_exponent);
  std::vector<double> magnitudes = {0, std::ldexp(1, min_exponent), 1, 3, 20, 100, largest};
  for (const double share : {0.2, 0.25, 0.5, 0.55, 0.75, 0.95, 0.98, 0.995}) {
    magnitudes.push_back(std::pow(largest, share));
    magnitudes.push_back(std::pow(largest, -share));
  }
  std::vector<double> values;
  for (const double magnitude : magnitudes) values.insert(values.end(), {magnitude, -magnitude});
  return values;
}

bool is_outside(const Graph& graph, size_t input, double value) {
  const Op& op = graph.op(0);
  const DomainRule* const rule = domain_of(*existing_inputs(schema_of(op.kind), op.attributes).at(input));
  const auto domain = rule == nullptr ? std::nullopt : rule->domain(OpView(graph, op), graph.tensor(op.inputs[input]));
  if (!domain || !domain->required) return false;
  const double position = domain->form == Domain::Form::off_zero ? std::abs(value) : value;
  return position < domain->low || (position > domain->high && domain->high <= 1);
}

// Input k varies along dim k, so that all pairs of values occur. Values outside the op's domain are replaced by 1.
void fill(const Graph& graph, driver::Buffer& buffer, size_t input, const std::vector<double>& values) {
  const auto count = static_cast<int64_t>(values.size());
  driver::for_each_element(buffer.tensor(), 0, buffer.element_count(), [&](int64_t index, int64_t offset) {
    const double value = values[static_cast<size_t>(input == 0 ? index / count : index % count)];
    buffer.store(offset, is_outside(graph, input, value) ? 1 : value);
  });
}

// Returns "" if all results are correct, otherwise the check's verdict.
std::string fault_of(const OpSchema& schema, const Attributes& attributes, DataType type) {
  const std::vector<double> values = extremes(type);
  const auto count = static_cast<int64_t>(values.size());
  GraphBuilder g;
  std::vector<uint64_t> ids;
  for (size_t i = 0; i < schema.inputs.size(); ++i) ids.push_back(g.input(type, {count, count}));
  g.op(schema.kind, ids, attributes, schema.outputs.front().type == "T2" ? DataType::boolean : type);
  const Graph graph = g.finish();
  compiler::CompileRecord record;
  const auto compiled =
      compiler::compile_partition(partition_graph(graph, PartitionPolicy::fusion, cpu_backend()).at(0), cpu_backend(), &record);
  std::vector<std::shared_ptr<driver::Buffer>> sources, outputs;
  for (const LogicalTensor& tensor : compiled->inputs()) {
    sources.push_back(std::make_shared<driver::Buffer>(tensor));
    fill(graph, *sources.back(), sources.size() - 1, values);
  }
  for (const LogicalTensor& tensor : compiled->outputs()) outputs.push_back(std::make_shared<driver::Buffer>(tensor));
  const driver::DeviceTensors tensors(cpu_backend(), sources, outputs);
  driver::Execution(*compiled, tensors).run();
  const driver::CheckResult result = driver::check_partition(record.subgraph, tensors.inputs(), outputs);
  return result.good && result.forgiven == 0 ? "" : result.text();
}

// Returns the attributes of the valid op, the same with a factor that makes products overflow, and with a slope that is so
// small that a sum of f32 rounds it away.
std::vector<Attributes> attributes_of(const OpSchema& schema) {
  std::vector<Attributes> all = {legal_attributes(schema)};
  if (const AttributeSpec* beta = schema.find_attribute("beta"); beta != nullptr && beta->type == AttributeType::f32) {
    all.push_back(all.front());
    all.back()["beta"] = 4.0F;
    if (schema.find_attribute("alpha") != nullptr) {
      all.push_back(all.front());
      all.back()["alpha"] = 1e-5F;
      all.back()["beta"] = 1.0F;
    }
  }
  return all;
}

TEST(ExtremeValues, OverflowOnlyWhereTheResultDoes) {
  size_t checked = 0;
  for (const OpKind kind : all_op_kinds()) {
    const OpSchema& schema = schema_of(kind);
    if (schema.op_class != OpClass::elementwise || schema.inputs.size() > 2) continue;
    for (const Attributes& attributes : attributes_of(schema)) {
      for (const DataType type : {DataType::f32, DataType::bf16, DataType::f16, DataType::f64}) {
        SCOPED_TRACE(join(name_of(kind), " in ", name_of(type)));
        try {
          EXPECT_EQ(fault_of(schema, attributes, type), "");
          ++checked;
        } catch (const Error& error) {
          EXPECT_NE(error.status(), Status::success) << "the op does not accept the type or the shape";
        }
      }
    }
  }
  EXPECT_GE(checked, 120U);
}

}  // namespace
}  // namespace lamina::testing
