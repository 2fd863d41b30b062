// What --set-dtype makes of the ops' examples.
#include "lamina/overrides.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "interface/json/json.h"
#include "interface/op_schema.h"
#include "interface/status.h"
#include "lamina/op_examples.h"

namespace lamina::driver {
namespace {

// The example of an op with this type for all tensors. Attributes of the examples that have a default are absent.
Graph example_of_type(const OpSchema& schema, const std::string& type) {
  GraphDump dump = parse_graph_json(example_json(schema), "example");
  apply_overrides(dump, {.shapes = {}, .attributes = {}, .dtypes = {"all:" + type}});
  Graph graph = build_graph(dump, "example");
  finalize_graph(graph, "example");
  return graph;
}

// A TypeCast that gives the result of a graph keeps two types, or is refused.
TEST(SetDtypeOfAll, GivesALegalGraphOfEveryOp) {
  for (const OpKind kind : all_op_kinds()) {
    if (!has_example(schema_of(kind)) || kind == OpKind::TypeCast) continue;
    for (const char* type : {"f32", "bf16", "f16", "f64"}) {
      SCOPED_TRACE(std::string(name_of(kind)) + " " + type);
      try {
        example_of_type(schema_of(kind), type);
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
}

TEST(SetDtypeOfAll, KeepsTheParametersOfNorms) {
  const Graph graph = example_of_type(schema_of(OpKind::LayerNormBackward), "bf16");
  const Op& op = graph.op(0);
  const auto type_of = [&](ValueIndex value) { return graph.tensor(value).dtype; };
  EXPECT_EQ(type_of(op.inputs[0]), DataType::bf16);
  EXPECT_EQ(type_of(op.outputs[0]), DataType::bf16);
  for (const ValueIndex parameter : {op.inputs[2], op.inputs[3], op.inputs[4], op.outputs[1], op.outputs[2]})
    EXPECT_EQ(type_of(parameter), DataType::f32);
}

}  // namespace
}  // namespace lamina::driver
