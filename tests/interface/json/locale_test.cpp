// Dumps have the same bytes in every locale and read as the same numbers.
#include "support/foreign_locale.h"

#include "json_fixture.h"

namespace lamina {
namespace {

using testing::DecimalComma;
using testing::GroupedNumbers;

// Ids, extents and numbers that other locales format with different separators.
Graph numbers() {
  Graph graph;
  graph.add_op(1234567, OpKind::LayerNorm, "ln", {{"epsilon", 1.5F}, {"use_affine", false}, {"keep_stats", false}},
               std::vector{tensor(10001, DataType::f32, {40000, 16384})},
               std::vector{tensor(10002, DataType::f32, {40000, 16384})});
  graph.add_op(7654321, OpKind::Multiply, "by", {},
               std::vector{tensor(10002, DataType::f32, {40000, 16384}), tensor(10003, DataType::f32, {})},
               std::vector{tensor(10004, DataType::f32, {40000, 16384})});
  graph.set_constant(10003, 1234.5);
  graph.finalize();
  return graph;
}

// Rounding to f64 first and then to f32 would give the other neighbour.
constexpr const char* kBetweenTwoFloats = "1.00000017881393432617187499";

float read_epsilon(const std::string& text) {
  return attribute<float>(one_op("LayerNorm", R"("use_affine": {"type": "bool", "value": 0},
      "keep_stats": {"type": "bool", "value": 0}, "epsilon": {"type": "f32", "value": )" +
                                                  text + "}"),
                          "epsilon");
}

TEST(JsonLocale, WritesTheSameBytes) {
  const std::string expected = write_graph_json(numbers());
  EXPECT_THAT(expected, ::testing::HasSubstr("\"value\": 1234.5"));
  {
    const GroupedNumbers grouped;
    EXPECT_EQ(write_graph_json(numbers()), expected);
  }
  const DecimalComma comma;
  LAMINA_NEEDS_DECIMAL_COMMA(comma);
  EXPECT_EQ(write_graph_json(numbers()), expected);
}

TEST(JsonLocale, ReadsTheSameNumbers) {
  const std::string text = write_graph_json(numbers());
  EXPECT_EQ(read_epsilon(kBetweenTwoFloats), 0x1.000002p+0F);
  {
    const GroupedNumbers grouped;
    EXPECT_EQ(write_graph_json(read_graph_json(text, kFile)), text);
    EXPECT_EQ(read_epsilon(kBetweenTwoFloats), 0x1.000002p+0F);
  }
  const DecimalComma comma;
  LAMINA_NEEDS_DECIMAL_COMMA(comma);
  EXPECT_EQ(write_graph_json(read_graph_json(text, kFile)), text);
  EXPECT_EQ(read_epsilon(kBetweenTwoFloats), 0x1.000002p+0F);
}

TEST(JsonLocale, TellsTheSameErrors) {
  const std::string broken = file_json(op_json("LayerNorm", "", 1234567));
  const std::string expected = error_of(broken);
  EXPECT_THAT(expected, ::testing::HasSubstr("op 1234567 "));
  const GroupedNumbers grouped;
  EXPECT_EQ(error_of(broken), expected);
}

}  // namespace
}  // namespace lamina
