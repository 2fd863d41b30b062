// Reading graph dumps: the reader tolerates differences of older and newer versions.
#include <cmath>
#include <limits>
#include <map>

#include "json_fixture.h"

namespace lamina {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Add of tensor 0 and the scalar tensor 2.
std::string with_constants(const std::string& constants, const std::string& property = "constant") {
  const std::string scalar = R"("dtype": "f32", "shape": [], "stride": [], "layout_type": "strided", "property_type": ")";
  return join(R"({"graph": [{"id": 7, "name": "it", "kind": "Add", "attrs": {}, "inputs": [)", tensor_json(0), ", ",
              tensor_json(2, scalar + property + '"'), "], \"outputs\": [", tensor_json(1), "]}], \"constants\": ", constants,
              "}");
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
            "graph.json: constant tensor 1 is produced by Add \"it\", allowed is a tensor that no op produces");
  EXPECT_EQ(error_of(with_constants(R"([{"id": 9, "value": 0}])")),
            "graph.json: constant tensor 9 is read by no op, allowed is an input of an op that was added");
  EXPECT_EQ(error_of(with_constants(R"([{"id": 2, "value": 0}])", "variable")),
            "graph.json: constant tensor 2 has property variable, allowed is constant, host_scalar or undef");
}

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
      {"LayerNormBackprop", OpKind::LayerNormBackprop},  // a separate op
      {"BatchNormTrainingBackprop", std::nullopt},       // its inputs had another order
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
      "filter_format": {"type": "string", "value": "OIX"})",
              more, R"(}, "inputs": [)", tensor(0, kind == "Convolution" ? "[1, 3, 5, 5]" : "[1, 4, 4, 4]"), ", ",
              tensor(1, "[4, 3, 2, 2]"), R"(], "outputs": [)", tensor_json(2, R"("dtype": "f32")"), "]}");
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
            "graph.json: op 7 (Convolution \"it\"): attributes filter_format and weights_format are given, "
            "two names of one attribute; allowed is one of them");
  // Ops without either name reject it as an unknown attribute.
  EXPECT_THAT(error_of(file_json(op_json("Abs", R"("filter_format": {"type": "string", "value": "OIX"})"))),
              HasSubstr("filter_format"));
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

}  // namespace
}  // namespace lamina
