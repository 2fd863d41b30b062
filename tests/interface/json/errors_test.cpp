// Reading graph dumps: every invalid text gives one clear error message.
#include <limits>

#include "json_fixture.h"

namespace lamina {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ReadGraphJson, NamesTheOpTheAttributeTheGivenAndTheAllowed) {
  EXPECT_EQ(error_of(file_json(R"({"id": 3, "name": "ln1", "kind": "LayerNorm", "attrs": {
      "begin_norm_axis": {"type": "s64", "value": 5}, "use_affine": {"type": "bool", "value": 0},
      "keep_stats": {"type": "bool", "value": 0}},
      "inputs": [)" + tensor_json(0, R"("dtype": "f32", "shape": [2, 3, 4], "stride": [12, 4, 1], "layout_type": "strided")") +
                               R"(], "outputs": [)" + tensor_json(1, R"("dtype": "f32")") + "]}")),
            "graph.json: op 3 (LayerNorm \"ln1\"): attribute begin_norm_axis is 5, allowed is -3..2");
}

TEST(ReadGraphJson, NamesTheRightOneOfTwoOpsWithOneNameAndKind) {
  // Only shape inference rejects the second concat: it is the first check that knows the ranks of the inputs.
  const auto of_rank = [](uint64_t id, const char* shape, const char* strides) {
    return tensor_json(
        id, join(R"("dtype": "f32", "shape": )", shape, R"(, "stride": )", strides, R"(, "layout_type": "strided")"));
  };
  const auto unknown = [](uint64_t id) { return tensor_json(id, R"("dtype": "f32")"); };
  const auto op = [](uint64_t id, const char* kind, const std::string& attributes, const std::string& in,
                     const std::string& out) {
    return join("{\"id\": ", id, ", \"name\": \"it\", \"kind\": \"", kind, "\", \"attrs\": {", attributes, "}, \"inputs\": [",
                in, "], \"outputs\": [", out, "]}");
  };
  const std::string axis = R"("axis": {"type": "s64", "value": 1})";
  EXPECT_EQ(error_of(file_json(op(3, "SoftMax", axis, of_rank(0, "[2, 3]", "[3, 1]"), unknown(1)) + ", " +
                               op(4, "Abs", "", of_rank(2, "[2]", "[1]"), unknown(5)) + ", " +
                               op(6, "SoftMax", axis, unknown(5), unknown(7)))),
            "graph.json: op 6 (SoftMax \"it\"): attribute axis is 1, allowed is -1..0");
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

// Every prefix of a file gives an error with a position and no other failure.
TEST(ReadGraphJson, RefusesEveryTruncation) {
  Graph graph;
  graph.add_op(3, OpKind::Clamp, "clamp \xC3\xA4", {{"min", -std::numeric_limits<float>::infinity()}, {"max", 1.5F}},
               {{tensor(0, DataType::f32, {2, 3})}}, {{tensor(1, DataType::f32, {2, 3})}});
  const std::string text = write_graph_json(graph);
  for (size_t size = 0; size + 2 < text.size(); ++size)
    EXPECT_THAT(error_of(text.substr(0, size)), StartsWith("graph.json: ")) << size;
}

// Any byte of a file may change: the result is a graph or an Error.
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

}  // namespace
}  // namespace lamina
