// Writing graph dumps: read(write(graph)) equals the graph, and write(read(text)) preserves every byte of lamina's files.
#include <cmath>
#include <cstring>
#include <limits>

#include "json_fixture.h"

namespace lamina {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(WriteGraphJson, WritesTheLayoutOfDumps) {
  Graph graph;
  graph.add_op(3, OpKind::LeakyReLU, "leaky", {{"alpha", 0.1F}}, {{tensor(0, DataType::f32, {})}},
               {{tensor(1, DataType::f32, {})}});
  EXPECT_EQ(write_graph_json(graph), R"({
  "version": "0.1.0",
  "engine_kind": "cpu",
  "fpmath_mode": "strict",
  "fpmath_mode_apply_to_int": "false",
  "input_ports": [
    0
  ],
  "output_ports": [
    1
  ],
  "graph": [
    {
      "id": 3,
      "name": "leaky",
      "kind": "LeakyReLU",
      "attrs": {
        "alpha": {
          "type": "f32",
          "value": 0.1
        }
      },
      "inputs": [
        {
          "id": 0,
          "dtype": "f32",
          "shape": [],
          "stride": [],
          "layout_type": "strided",
          "property_type": "undef"
        }
      ],
      "outputs": [
        {
          "id": 1,
          "dtype": "f32",
          "shape": [],
          "stride": [],
          "layout_type": "strided",
          "property_type": "undef"
        }
      ]
    }
  ]
}
)");
}

TEST(WriteGraphJson, GivesFloatsSixDigitsAndMoreOnlyWhereTheyAreNeeded) {
  const std::vector<std::pair<float, std::string>> cases = {{1.0F, "1"},
                                                            {0.1F, "0.1"},
                                                            {1e-5F, "1e-05"},
                                                            {1.001e-5F, "1.001e-05"},
                                                            {0.0625F, "0.0625"},
                                                            {1e6F, "1e+06"},
                                                            {-0.0F, "-0.0"},
                                                            {1.0F / 3, "0.33333334"},
                                                            {16777215.0F, "16777215"},
                                                            {std::numeric_limits<float>::denorm_min(), "1.4013e-45"},
                                                            {std::numeric_limits<float>::infinity(), "inf"},
                                                            {-std::numeric_limits<float>::infinity(), "-inf"}};
  const float inf = std::numeric_limits<float>::infinity();
  for (const auto& [value, text] : cases) {
    Graph graph;
    graph.add_op(3, OpKind::Clamp, "clamp", {{"min", value}, {"max", inf}}, {{tensor(0, DataType::f32, {2})}},
                 {{tensor(1, DataType::f32, {2})}});
    const std::string written = write_graph_json(graph);
    EXPECT_THAT(written, HasSubstr("\"value\": " + text + "\n"));
    const auto back = attribute<float>(read_graph_json(written, kFile), "min");
    EXPECT_EQ(back, value);
    EXPECT_EQ(std::signbit(back), std::signbit(value));
  }
}

TEST(WriteGraphJson, EveryF32ComesBackAsTheSameBits) {
  uint32_t bits = 1;
  for (int i = 0; i < 2000; ++i) {
    bits = bits * 1664525U + 1013904223U;
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    Graph graph;
    graph.add_op(3, OpKind::LeakyReLU, "leaky", {{"alpha", value}}, {{tensor(0, DataType::f32, {2})}},
                 {{tensor(1, DataType::f32, {2})}});
    const auto back = attribute<float>(read_graph_json(write_graph_json(graph), kFile), "alpha");
    EXPECT_EQ(std::memcmp(&back, &value, sizeof value), 0) << value;
  }
}

TEST(WriteGraphJson, KeepsIdsOf64BitsAndNamesWithAnyBytes) {
  Graph graph;
  const uint64_t op_id = UINT64_MAX;
  const uint64_t tensor_id = (uint64_t{1} << 63) + 1;
  const std::string name = std::string("a \"quoted\\\" \n\t\r\x01 \xC3\xA4 \xFF") + '\0' + "end";
  graph.add_op(op_id, OpKind::Abs, name, {}, {{tensor(tensor_id, DataType::f32, {2})}}, {{tensor(1, DataType::f32, {2})}});
  const std::string written = write_graph_json(graph);
  const Graph back = read_graph_json(written, kFile);
  EXPECT_EQ(back.ops()[0].id, op_id);
  EXPECT_TRUE(back.find_value(tensor_id).has_value());
  EXPECT_EQ(back.ops()[0].name, std::string("a \"quoted\\\" \n\t\r\x01 \xC3\xA4 \xEF\xBF\xBD") + '\0' + "end");
  EXPECT_EQ(write_graph_json(back), written);
}

TEST(WriteGraphJson, WritesUnknownShapesAsOneEntry) {
  Graph graph;
  LogicalTensor unknown;
  unknown.id = 0;
  unknown.dtype = DataType::f32;
  LogicalTensor partly = tensor(1, DataType::f32, {2, 3});
  partly.shape = Dims{kUnknownDim, 3};
  partly.strides.clear();
  graph.add_op(3, OpKind::Abs, "abs", {}, {{unknown}}, {{partly}});
  const std::string written = write_graph_json(graph);
  EXPECT_THAT(written, HasSubstr("\"shape\": [\n            -9223372036854775808\n          ]"));
  const Graph back = read_graph_json(written, kFile);
  EXPECT_FALSE(back.tensor(0).shape.has_value());
  EXPECT_EQ(write_graph_json(back), written);
}

TEST(WriteGraphJson, ListsInputsOncePerReaderAndMarksOutputsByEnd) {
  Graph graph;
  const auto x = tensor(0, DataType::f32, {2});
  const auto y = tensor(1, DataType::f32, {2});
  const auto z = tensor(2, DataType::f32, {2});
  graph.add_op(10, OpKind::Add, "add", {}, {{x, x}}, {{y}});
  graph.add_op(11, OpKind::End, "end", {}, {{y}}, {});
  graph.add_op(12, OpKind::Multiply, "mul", {}, {{y, x}}, {{z}});
  const GraphDump dump = parse_graph_json(write_graph_json(graph), kFile);
  EXPECT_THAT(dump.input_ports, ElementsAre(0, 0, 0));
  EXPECT_THAT(dump.output_ports, ElementsAre(1, 2));
}

TEST(WriteGraphJson, KeepsPortsThatAreLeftOut) {
  Graph graph;
  const auto x = tensor(0, DataType::f32, {2, 3});
  const auto row = tensor(2, DataType::f32, {2});
  const auto gamma = tensor(4, DataType::f32, {3});
  graph.add_op(1, OpKind::LayerNormBackward, "ln", {},
               {{x, tensor(1, DataType::f32, {2, 3}), row, tensor(3, DataType::f32, {2}), gamma}},
               {{LogicalTensor{}, tensor(5, DataType::f32, {3})}});
  const std::string written = write_graph_json(graph);
  const Graph back = read_graph_json(written, kFile);
  EXPECT_THAT(back.ops()[0].outputs, ElementsAre(kNoValue, ::testing::Ge(0)));
  EXPECT_EQ(write_graph_json(back), written);
}

}  // namespace
}  // namespace lamina
