// Reading and writing graph dumps: write(read(text)) keeps every byte of what we wrote, tolerance for what dumps of other
// versions contain, and one clear sentence for everything else.
#include "interface/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "interface/op_schema.h"
#include "interface/status.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kFile = "graph.json";

std::string tensor_json(uint64_t id, const std::string& rest = R"("dtype": "f32", "shape": [2, 3], "stride": [3, 1],
    "layout_type": "strided", "property_type": "undef")") {
  return join("{\"id\": ", id, ", ", rest, "}");
}

// One op with the given attributes, from tensor 0 to tensor 1.
std::string op_json(const std::string& kind, const std::string& attributes = "", uint64_t id = 7, uint64_t in = 0,
                    uint64_t out = 1) {
  return join("{\"id\": ", id, ", \"name\": \"it\", \"kind\": \"", kind, "\", \"attrs\": {", attributes, "}, \"inputs\": [",
              tensor_json(in), "], \"outputs\": [", tensor_json(out), "]}");
}

std::string file_json(const std::string& ops) { return "{\"version\": \"3.1.0\", \"graph\": [" + ops + "]}"; }

std::string error_of(const std::string& text) {
  try {
    Graph graph = read_graph_json(text, kFile);
    finalize_graph(graph, kFile);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Graph one_op(const std::string& kind, const std::string& attributes) {
  return read_graph_json(file_json(op_json(kind, attributes)), kFile);
}

template <typename T>
T attribute(const Graph& graph, const char* name) {
  return graph.ops().at(0).attribute<T>(name);
}

LogicalTensor tensor(uint64_t id, DataType dtype, Dims shape) {
  LogicalTensor result;
  result.id = id;
  result.dtype = dtype;
  result.strides = dense_strides(shape);
  result.shape = std::move(shape);
  result.layout = LayoutType::strided;
  return result;
}

// ---- constants

// Add of tensor 0 and the scalar tensor 2.
std::string with_constants(const std::string& constants, const std::string& property = "constant") {
  const std::string scalar = R"("dtype": "f32", "shape": [], "stride": [], "layout_type": "strided", "property_type": ")";
  return join(R"({"graph": [{"id": 7, "name": "it", "kind": "Add", "attrs": {}, "inputs": [)", tensor_json(0), ", ",
              tensor_json(2, scalar + property + '"'), "], \"outputs\": [", tensor_json(1), "]}], \"constants\": ", constants, "}");
}

TEST(DumpedConstants, BecomeKnownValuesAndAreWrittenLast) {
  const Graph graph = read_graph_json(with_constants(R"([{"id": 2, "value": 1e-05}])"), kFile);
  EXPECT_EQ(graph.value(*graph.find_value(2)).constant, static_cast<double>(1e-5F));
  EXPECT_EQ(graph.value(*graph.find_value(0)).constant, std::nullopt);
  const std::string text = write_graph_json(graph);
  EXPECT_THAT(text, HasSubstr("  ],\n  \"constants\": [\n    {\n      \"id\": 2,\n      \"value\": 1e-05\n"));
  EXPECT_EQ(write_graph_json(read_graph_json(text, kFile)), text);
}

TEST(DumpedConstants, MayBeInfinite) {
  const Graph graph = read_graph_json(with_constants(R"([{"value": -inf, "id": 2}])"), kFile);
  EXPECT_EQ(graph.value(*graph.find_value(2)).constant, -std::numeric_limits<double>::infinity());
  EXPECT_THAT(write_graph_json(graph), HasSubstr("\"value\": -inf"));
}

TEST(DumpedConstants, AreRefusedWithASentence) {
  EXPECT_EQ(error_of(with_constants(R"([{"id": 2}])")),
            "graph.json: an entry of \"constants\" lacks its value, allowed is one with id and value");
  EXPECT_EQ(error_of(with_constants(R"([{"value": 1}])")),
            "graph.json: an entry of \"constants\" lacks its id, allowed is one with id and value");
  EXPECT_EQ(error_of(with_constants("[3]")), "graph.json: \"constants\" holds 3, allowed is objects with id and value");
  EXPECT_EQ(error_of(with_constants("7")), "graph.json: constants is 7, allowed is an array");
  EXPECT_EQ(error_of(with_constants(R"([{"id": 2, "value": "x"}])")),
            "graph.json: value of a constant is \"x\", allowed is a number");
  EXPECT_EQ(error_of(with_constants(R"([{"id": 1, "value": 0}])")),
            "graph.json: constant tensor 1 is made by Add \"it\", allowed is a tensor that no op makes");
  EXPECT_EQ(error_of(with_constants(R"([{"id": 9, "value": 0}])")),
            "graph.json: constant tensor 9 is read by no op, allowed is an input of an op that was added");
  EXPECT_EQ(error_of(with_constants(R"([{"id": 2, "value": 0}])", "variable")),
            "graph.json: constant tensor 2 has property variable, allowed is constant, host_scalar or undef");
}

// ---- the writer

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

// ---- the reader: what it tolerates

TEST(ReadGraphJson, TakesAFileOfAnOlderVersion) {
  const Graph graph = read_graph_json(file_json(op_json("Abs")), kFile);
  EXPECT_EQ(graph.engine_kind, EngineKind::cpu);
  EXPECT_EQ(graph.fpmath_mode, FpMathMode::strict);
  EXPECT_FALSE(graph.fpmath_apply_to_int);
  EXPECT_THAT(graph.inputs(), ElementsAre(*graph.find_value(0)));
}

TEST(ReadGraphJson, ReadsTheTopLevelInAnyOrder) {
  const std::string text = R"({"graph": [)" + op_json("Abs") +
                           R"(], "fpmath_mode_apply_to_int": "true", "fpmath_mode": "tf32", "engine_kind": "gpu"})";
  const Graph graph = read_graph_json(text, kFile);
  EXPECT_EQ(graph.engine_kind, EngineKind::gpu);
  EXPECT_EQ(graph.fpmath_mode, FpMathMode::tf32);
  EXPECT_TRUE(graph.fpmath_apply_to_int);
}

TEST(ReadGraphJson, TakesAbsentAttributesAndValueBeforeType) {
  const std::string no_attributes =
      R"({"id": 7, "kind": "Abs", "inputs": [)" + tensor_json(0) + R"(], "outputs": [)" + tensor_json(1) + "]}";
  EXPECT_EQ(read_graph_json(file_json(no_attributes), kFile).ops()[0].name, "Abs_7");
  EXPECT_EQ(attribute<float>(one_op("LeakyReLU", R"("alpha": {"value": 0.25, "type": "f32"})"), "alpha"), 0.25F);
}

TEST(ReadGraphJson, TakesBooleansAsNumbersAndAsWords) {
  for (const char* value : {"1", "true"})
    EXPECT_TRUE(attribute<bool>(
        one_op("ReduceSum",
               join(R"("axes": {"type": "s64[]", "value": [1]}, "keep_dims": {"type": "bool", "value": )", value, "}")),
        "keep_dims"))
        << value;
}

TEST(ReadGraphJson, TakesBareInfinitiesAndNaN) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(
      attribute<float>(one_op("Clamp", R"("min": {"type": "f32", "value": -inf}, "max": {"type": "f32", "value": 6})"), "min"),
      -inf);
  EXPECT_EQ(
      attribute<float>(one_op("Clamp", R"("min": {"type": "f32", "value": 0}, "max": {"type": "f32", "value": inf})"), "max"),
      inf);
  const GraphDump dump =
      parse_graph_json(file_json(op_json("Clamp", R"("min": {"type": "f32[]", "value": [nan, -inf, 1]})")), kFile);
  const auto list = std::get<std::vector<float>>(dump.ops[0].attributes.at("min"));
  EXPECT_TRUE(std::isnan(list[0]));
  EXPECT_EQ(list[1], -inf);
}

TEST(ReadGraphJson, LeavesSuchWordsAloneInsideStrings) {
  const std::string op = R"({"id": 7, "name": "inf: -nan \" inf", "kind": "Abs", "inputs": [)" + tensor_json(0) +
                         R"(], "outputs": [)" + tensor_json(1) + "]}";
  EXPECT_EQ(read_graph_json(file_json(op), kFile).ops()[0].name, "inf: -nan \" inf");
}

TEST(ReadGraphJson, TakesRawControlCharactersInStrings) {
  const std::string op = "{\"id\": 7, \"name\": \"a\tb\", \"kind\": \"Abs\", \"inputs\": [" + tensor_json(0) +
                         "], \"outputs\": [" + tensor_json(1) + "]}";
  EXPECT_EQ(read_graph_json(file_json(op), kFile).ops()[0].name, "a\tb");
}

TEST(ReadGraphJson, IgnoresUnknownKeysAndTheWritersBookkeeping) {
  const std::string op =
      R"({"id": 7, "future": {"a": [1, {"b": null}]}, "name": "it", "kind": "Abs", "attrs": {
      "partition_id": {"type": "string", "value": "3"}, "backend": {"type": "string", "value": "dnnl_backend"}},
      "inputs": [)" +
      tensor_json(0, R"("dtype": "f32", "shape": [2], "stride": [1], "layout_type": "strided", "extra": [[1]])") +
      R"(], "outputs": [)" + tensor_json(1) + "]}";
  const GraphDump dump = parse_graph_json(R"({"edges": [[1, 2], "x"], "graph": [)" + op + "]}", kFile);
  EXPECT_TRUE(dump.ops[0].attributes.empty());
}

TEST(ReadGraphJson, ReadsAnOlderKindByItsOldName) {
  const std::string op = join(R"({"id": 7, "kind": "BiasAddBackprop", "inputs": [)", tensor_json(0), R"(], "outputs": [)",
                              tensor_json(1, R"("dtype": "f32", "shape": [3], "stride": [1], "layout_type": "strided")"), "]}");
  EXPECT_EQ(read_graph_json(file_json(op), kFile).ops()[0].kind, OpKind::BiasAddBackward);
}

TEST(ReadGraphJson, ReadsOlderKindsByTheirOldNames) {
  const std::map<std::string, std::optional<OpKind>> kinds{
      {"ReLUBackprop", OpKind::ReLUBackward},
      {"SoftMaxBackprop", OpKind::SoftMaxBackward},
      {"HardTanh", OpKind::Clamp},
      {"HardTanhBackprop", OpKind::ClampBackward},
      {"ConvolutionBackpropData", OpKind::ConvolutionBackwardData},
      {"ConvolutionBackpropFilters", OpKind::ConvolutionBackwardWeights},
      {"LayerNormBackprop", OpKind::LayerNormBackprop},  // an op of its own
      {"BatchNormTrainingBackprop", std::nullopt},       // had its inputs in another order
      {"RMSNormBackprop", std::nullopt},                 // never existed
      {"Erf", std::nullopt},
      {"Backprop", std::nullopt},
  };
  for (const auto& [name, kind] : kinds) EXPECT_EQ(op_kind_from_name(name), kind) << name;
}

// From src to dst or from diff_dst to diff_src; weights [4, 3, 2, 2].
std::string older_convolution(const std::string& kind, const std::string& more) {
  const auto tensor = [](uint64_t id, const std::string& shape) {
    return tensor_json(id, R"("dtype": "f32", "shape": )" + shape + R"(, "layout_type": "strided")");
  };
  return join(R"({"id": 7, "name": "it", "kind": ")", kind, R"(", "attrs": {"strides": {"type": "s64[]", "value": [1, 1]},
      "pads_begin": {"type": "s64[]", "value": [0, 0]}, "pads_end": {"type": "s64[]", "value": [0, 0]},
      "dilations": {"type": "s64[]", "value": [1, 1]}, "data_format": {"type": "string", "value": "NCX"},
      "filter_format": {"type": "string", "value": "OIX"})", more, R"(}, "inputs": [)",
              tensor(0, kind == "Convolution" ? "[1, 3, 5, 5]" : "[1, 4, 4, 4]"), ", ", tensor(1, "[4, 3, 2, 2]"), R"(], "outputs": [)",
              tensor_json(2, R"("dtype": "f32")"), "]}");
}

TEST(ReadGraphJson, ReadsOlderAttributesByTheirOldNames) {
  const Op forward = read_graph_json(file_json(older_convolution("Convolution", "")), kFile).ops()[0];
  EXPECT_EQ(forward.attribute<std::string>("weights_format"), "OIX");
  EXPECT_FALSE(forward.attributes.contains("filter_format"));
  const std::string shape = R"(, "output_shape": {"type": "s64[]", "value": [1, 3, 5, 5]})";
  const Op backward = read_graph_json(file_json(older_convolution("ConvolutionBackpropData", shape)), kFile).ops()[0];
  EXPECT_EQ(backward.kind, OpKind::ConvolutionBackwardData);
  EXPECT_EQ(backward.attribute<std::vector<int64_t>>("dst_shape"), (std::vector<int64_t>{1, 3, 5, 5}));
}

TEST(ReadGraphJson, RefusesAnAttributeUnderBothItsNames) {
  EXPECT_EQ(error_of(file_json(older_convolution("Convolution", R"(, "weights_format": {"type": "string", "value": "OIX"})"))),
            "graph.json: op 7 (Convolution \"it\"): attribute filter_format is given, and also weights_format, its name today; allowed is "
            "one of them");
  // Of an op that knows neither name it is unknown, as any other.
  EXPECT_THAT(error_of(file_json(op_json("Abs", R"("filter_format": {"type": "string", "value": "OIX"})"))), HasSubstr("filter_format"));
}

TEST(ReadGraphJson, RepairsMissingStridesAndDropsUnusableOnes) {
  const auto strides_of = [](const std::string& tensor) {
    const std::string op = join(R"({"id": 7, "kind": "Abs", "inputs": [)", tensor_json(0, tensor), R"(], "outputs": [)",
                                tensor_json(1, R"("dtype": "f32")"), "]}");
    return read_graph_json(file_json(op), kFile).tensor(0).strides;
  };
  EXPECT_THAT(strides_of(R"("dtype": "f32", "shape": [2, 3], "stride": [-9223372036854775808], "layout_type": "strided")"),
              ElementsAre(3, 1));
  EXPECT_THAT(strides_of(R"("dtype": "f32", "shape": [2, 3], "stride": [1, 2], "layout_type": "strided")"), ElementsAre(1, 2));
  EXPECT_THAT(strides_of(R"("dtype": "f32", "shape": [2, 3], "stride": [77], "layout_type": "opaque")"), ElementsAre());
  EXPECT_THAT(strides_of(R"("dtype": "f32", "shape": [2, 3], "stride": [3, 1], "layout_type": "any")"), ElementsAre());
}

TEST(ReadGraphJson, FinalizingInfersUnknownShapes) {
  const std::string op = join(R"({"id": 7, "kind": "Abs", "inputs": [)", tensor_json(0), R"(], "outputs": [)",
                              tensor_json(1, R"("dtype": "f32", "shape": [-9223372036854775808])"), "]}");
  Graph graph = read_graph_json(file_json(op), kFile);
  finalize_graph(graph, kFile);
  EXPECT_EQ(graph.tensor(1).shape, (Dims{2, 3}));
}

// ---- the reader: what it refuses

TEST(ReadGraphJson, NamesTheOpTheAttributeTheGivenAndTheAllowed) {
  EXPECT_EQ(error_of(file_json(R"({"id": 3, "name": "ln1", "kind": "LayerNorm", "attrs": {
      "begin_norm_axis": {"type": "s64", "value": 5}, "use_affine": {"type": "bool", "value": 0},
      "keep_stats": {"type": "bool", "value": 0}},
      "inputs": [)" + tensor_json(0, R"("dtype": "f32", "shape": [2, 3, 4], "stride": [12, 4, 1], "layout_type": "strided")") +
                               R"(], "outputs": [)" + tensor_json(1, R"("dtype": "f32")") + "]}")),
            "graph.json: op 3 (LayerNorm \"ln1\"): attribute begin_norm_axis is 5, allowed is -3..2");
}

TEST(ReadGraphJson, TellsLineAndColumnOfBrokenText) {
  EXPECT_THAT(error_of("{\n  \"graph\": [,]\n}"), StartsWith("graph.json: line 2, column 13: "));
  EXPECT_THAT(error_of(""), StartsWith("graph.json: line 1, column 1: "));
  EXPECT_THAT(error_of("{\"graph\": []} x"), StartsWith("graph.json: line 1, column 15: "));
  EXPECT_THAT(error_of("{\"graph\": [], \"n\": 1e999}"), StartsWith("graph.json: line 1"));
}

TEST(ReadGraphJson, RefusesWrongForms) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[]", "allowed is one JSON object"},
      {"3", "allowed is one JSON object"},
      {"{}", "key \"graph\" is missing"},
      {R"({"graph": {}})", "graph is an object"},
      {R"({"graph": 5})", "graph is 5, allowed is an array"},
      {R"({"graph": [5]})", "\"graph\" holds 5"},
      {R"({"graph": [[]]})", "\"graph\" holds an array"},
      {R"({"graph": [{}]})", "op at position 0: key \"id\" is missing"},
      {R"({"graph": [{"id": 4}]})", "op 4: key \"kind\" is missing"},
      {R"({"graph": [{"id": -4, "kind": "Abs"}]})", "id is -4, allowed is an unsigned integer of 64 bits"},
      {R"({"graph": [{"id": 4.5, "kind": "Abs"}]})", "id is 4.5"},
      {R"({"graph": [{"id": 18446744073709551616, "kind": "Abs"}]})", "allowed is an unsigned integer of 64 bits"},
      {R"({"graph": [{"id": 4, "kind": "Frobnicate"}]})", "op 4: kind is \"Frobnicate\""},
      {R"({"graph": [{"id": 4, "kind": "Abs", "inputs": 3}]})", "op 4 (Abs \"\"): inputs is 3, allowed is an array"},
      {R"({"graph": [{"id": 4, "kind": "Abs", "inputs": [3]}]})", "a port is 3"},
      {R"({"graph": [{"id": 4, "kind": "Abs", "inputs": [{}]}]})", "input 0: id is missing"},
      {R"({"graph": [{"id": 4, "kind": "Abs", "inputs": [{"id": 1, "dtype": "f99"}]}]})", "input 0: dtype is \"f99\""},
      {R"({"graph": [{"id": 4, "kind": "Abs", "inputs": [{"id": 1, "shape": [1.5]}]}]})", "shape is an array that holds 1.5"},
      {R"({"graph": [{"id": 4, "kind": "Abs", "inputs": [{"id": 1, "shape": [1,1,1,1,1,1,1,1,1,1,1,1,1]}]}]})",
       "13 entries, allowed is at most 12"},
      {R"({"graph": [{"id": 4, "kind": "Abs", "inputs": [{"id": 1, "layout_type": "odd"}]}]})",
       "layout_type is \"odd\", allowed is undef, any, strided, opaque"},
      {R"({"graph": [{"id": 4, "kind": "Abs", "attrs": {"a": 3}}]})", "attribute a is 3, allowed is an object"},
      {R"({"graph": [{"id": 4, "kind": "Abs", "attrs": {"a": {"type": "s64"}}}]})", "attribute a has no value"},
      {R"({"graph": [{"id": 4, "kind": "Abs", "attrs": {"a": {"type": "s65", "value": 1}}}]})", "attribute a has type \"s65\""},
      {R"({"graph": [{"id": 4, "kind": "Abs", "attrs": {"a": {"type": "s64", "value": "x"}}}]})",
       "attribute a is \"x\", allowed is an integer"},
      {R"({"graph": [{"id": 4, "kind": "Abs", "attrs": {"a": {"type": "s64", "value": 9223372036854775808}}}]})",
       "allowed is an integer of 64 bits"},
      {R"({"graph": [{"id": 4, "kind": "Abs", "attrs": {"a": {"type": "f32", "value": 1e300}}}]})",
       "allowed is a number that f32 can hold"},
      {R"({"graph": [{"id": 4, "kind": "Abs", "attrs": {"a": {"type": "bool", "value": 2}}}]})",
       "attribute a is 2, allowed is 0 or 1"},
      {R"({"graph": [{"id": 4, "kind": "Abs", "attrs": {"a": {"type": "s64[]", "value": [1, "x"]}}}]})",
       "holds \"x\", allowed is numbers"},
      {R"({"graph": [{"id": 4, "kind": "Abs", "attrs": {"a": {"type": "s64[]", "value": [[1]]}}}]})",
       "an array inside an array"},
      {R"({"engine_kind": "tpu", "graph": []})", "engine_kind is \"tpu\", allowed is cpu, gpu, any"},
      {R"({"graph": [], "graph": []})", "given twice"},
  };
  for (const auto& [text, message] : cases)
    EXPECT_THAT(error_of(text), AllOf(StartsWith("graph.json: "), HasSubstr(message))) << text;
}

TEST(ReadGraphJson, RefusesDuplicateOpIds) {
  const std::string text = file_json(op_json("Abs", "", 7, 0, 1) + "," + op_json("Exp", "", 7, 1, 2));
  EXPECT_THAT(error_of(text), AllOf(StartsWith("graph.json: op 7 (Exp \"it\"): "), HasSubstr("op id 7")));
}

TEST(ReadGraphJson, RefusesTwoProducersOfOneTensor) {
  const std::string text = file_json(op_json("Abs", "", 7, 0, 1) + "," + op_json("Exp", "", 8, 0, 1));
  EXPECT_THAT(error_of(text), AllOf(StartsWith("graph.json: op 8 (Exp \"it\"): "), HasSubstr("already produced")));
}

TEST(ReadGraphJson, RefusesCycles) {
  const std::string text = file_json(op_json("Abs", "", 7, 0, 1) + "," + op_json("Exp", "", 8, 1, 0));
  EXPECT_THAT(error_of(text), AllOf(StartsWith("graph.json: "), HasSubstr("cycle")));
}

TEST(ReadGraphJson, RefusesShapesThatOverflow) {
  const std::string huge = R"("dtype": "f32", "shape": [9223372036854775807, 2, 2], "layout_type": "strided")";
  const std::string op = join(R"({"id": 7, "kind": "Abs", "inputs": [)", tensor_json(0, huge), R"(], "outputs": []})");
  EXPECT_THAT(error_of(file_json(op)), AllOf(StartsWith("graph.json: op 7"), HasSubstr("64 bits")));
}

TEST(ReadGraphJson, RefusesInvalidUtf8) {
  EXPECT_THAT(error_of("{\"graph\": [], \"\xFF\xFE\": 1}"), StartsWith("graph.json: line 1"));
}

TEST(ReadGraphJson, RefusesDeepNestingWithoutRecursing) {
  const std::string deep(1'000'000, '[');
  EXPECT_THAT(error_of("{\"unknown\": " + deep), HasSubstr("nested deeper than 64"));
  std::string objects = "{\"unknown\": ";
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\": ";
  EXPECT_THAT(error_of(objects), HasSubstr("nested deeper than 64"));
}

TEST(ReadGraphJson, KeepsItsLimits) {
  const auto limited = [](const std::string& text, const DumpLimits& limits) -> std::string {
    try {
      parse_graph_json(text, kFile, limits);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string two_ops = file_json(op_json("Abs", "", 1) + "," + op_json("Abs", "", 2));
  EXPECT_THAT(limited(two_ops, {.file_bytes = 10}), HasSubstr("allowed is at most 10"));
  EXPECT_THAT(limited(two_ops, {.ops = 1}), HasSubstr("more than 1 ops"));
  EXPECT_THAT(limited(two_ops, {.ports_per_op = 0}), HasSubstr("more than 0 ports"));
  EXPECT_THAT(limited(two_ops, {.string_bytes = 4}), HasSubstr("allowed is at most 4"));
  EXPECT_THAT(limited(two_ops, {.list_entries = 1}), HasSubstr("more than 1 entries"));
}

// Every prefix of a file is an error with a place, and never more than that.
TEST(ReadGraphJson, RefusesEveryTruncation) {
  Graph graph;
  graph.add_op(3, OpKind::Clamp, "clamp \xC3\xA4", {{"min", -std::numeric_limits<float>::infinity()}, {"max", 1.5F}},
               {{tensor(0, DataType::f32, {2, 3})}}, {{tensor(1, DataType::f32, {2, 3})}});
  const std::string text = write_graph_json(graph);
  for (size_t size = 0; size + 2 < text.size(); ++size)
    EXPECT_THAT(error_of(text.substr(0, size)), StartsWith("graph.json: ")) << size;
}

// Any byte of a file may be anything: what comes out is a graph or an Error.
TEST(ReadGraphJson, SurvivesFlippedBytes) {
  Graph graph;
  graph.add_op(3, OpKind::Clamp, "clamp", {{"min", -1.0F}, {"max", 1.5F}}, {{tensor(0, DataType::f32, {2, 3})}},
               {{tensor(1, DataType::f32, {2, 3})}});
  const std::string text = write_graph_json(graph);
  for (size_t i = 0; i < text.size(); ++i)
    for (const char replacement : {'\0', '"', '{', '}', '[', ']', '9', '-', 'n', '\xFF', '\\', ','}) {
      std::string changed = text;
      changed[i] = replacement;
      error_of(changed);
    }
}

TEST(ReadDumpFile, NamesTheFileThatCannotBeRead) {
  EXPECT_THROW(read_dump_file("no/such/file.json"), Error);
  EXPECT_THROW(read_dump_file(LAMINA_SOURCE_DIR), Error);
}

// ---- whole files

std::vector<fs::path> dumps_below(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  return files;
}

void expect_round_trip(const fs::path& file) {
  const std::string name = file.string();
  Graph graph;
  try {
    graph = read_graph_json(read_dump_file(name), name);
  } catch (const Error& error) {
    GTEST_LOG_(INFO) << "not a graph for lamina: " << error.what();
    return;
  }
  const std::string written = write_graph_json(graph);
  EXPECT_EQ(write_graph_json(read_graph_json(written, name)), written) << name;
}

TEST(GraphDumps, ExamplesAreWhatTheWriterWrites) {
  const auto files = dumps_below(fs::path(LAMINA_SOURCE_DIR) / "examples" / "graphs");
  EXPECT_FALSE(files.empty());
  for (const fs::path& file : files) {
    const std::string text = read_dump_file(file.string());
    EXPECT_EQ(write_graph_json(read_graph_json(text, file.string())), text) << file;
  }
}

// What docs/dumps.md says of written files, done to a file that was read.
nlohmann::json normalised(nlohmann::json file) {
  for (const char* key : {"version", "input_ports", "output_ports"}) file.erase(key);
  file.emplace("fpmath_mode_apply_to_int", "false");
  for (nlohmann::json& op : file["graph"]) {
    const OpSchema& schema = schema_of(*op_kind_from_name(op["kind"].get<std::string>()));
    op["kind"] = name_of(schema.kind);
    nlohmann::json& attributes = op.emplace("attrs", nlohmann::json::object()).first.value();
    // Their values are those of fill_defaults, which the schemas' tests hold; here only which ones there are.
    for (const AttributeSpec& spec : schema.attributes)
      if (spec.default_value) attributes.emplace(spec.name, nullptr);
  }
  return file;
}

void forget_defaults(nlohmann::json& written, const nlohmann::json& given) {
  for (size_t i = 0; i < written["graph"].size(); ++i)
    for (auto& [name, value] : written["graph"][i]["attrs"].items())
      if (given["graph"][i]["attrs"].contains(name) && given["graph"][i]["attrs"][name].is_null()) value = nullptr;
}

TEST(GraphDumps, OneDnnDumpsAreWrittenAsTheyWereButForTheDocumentedNormalisation) {
  const auto files = dumps_below(fs::path(LAMINA_SOURCE_DIR).parent_path() / "shared" / "graphs" / "onednn");
  if (files.empty()) GTEST_SKIP() << "the folder shared/graphs/onednn is not beside the project";
  for (const fs::path& file : files) {
    const std::string text = read_dump_file(file.string());
    const Graph graph = read_graph_json(text, file.string());
    if (!graph.warnings().empty()) continue;  // ports that disagree: the producer's description is written at both
    const nlohmann::json given = normalised(nlohmann::json::parse(text));
    nlohmann::json written = normalised(nlohmann::json::parse(write_graph_json(graph)));
    forget_defaults(written, given);
    EXPECT_EQ(given, written) << file << "\n" << nlohmann::json::diff(given, written).dump(2);
  }
}

TEST(GraphDumps, OneDnnDumpsSurviveARoundTrip) {
  const auto files = dumps_below(fs::path(LAMINA_SOURCE_DIR).parent_path() / "shared" / "graphs" / "onednn");
  if (files.empty()) GTEST_SKIP() << "the folder shared/graphs/onednn is not beside the project";
  for (const fs::path& file : files) expect_round_trip(file);
}

}  // namespace
}  // namespace lamina
