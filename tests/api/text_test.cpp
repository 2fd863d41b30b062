// What graphs and ops say of themselves (graph/text.h).
#include "graph/text.h"

#include "api_fixture.h"

namespace api_test {
namespace {

using ::testing::HasSubstr;

template <typename Writer>
std::string text_of(Writer writer) {
  std::string text;
  error::wrap_c_api(
      writer([](void* user, const char* begin, size_t length) { static_cast<std::string*>(user)->assign(begin, length); },
             static_cast<void*>(&text)));
  return text;
}

graph layer_norm_and_gelu() {
  graph g(engine::kind::cpu);
  g.add_op(op(0, op::kind::LayerNorm, {f32(0, {4, 8})}, {f32(1, {4, 8})}, "ln")
               .set_attr(op::attr::use_affine, false)
               .set_attr(op::attr::keep_stats, false));
  g.add_op(op(1, op::kind::GELU, {f32(1, {4, 8})}, {f32(2, {4, 8})}, "gelu"));
  return g;
}

std::string json_of(const graph& g) {
  return text_of([&](lamina_text_f write, void* user) { return lamina_graph_graph_write_json(g.get(), write, user); });
}

TEST(Text, AGraphComesBackFromItsDump) {
  const std::string json = json_of(layer_norm_and_gelu());
  lamina_graph_graph_t created = nullptr;
  ASSERT_EQ(lamina_graph_graph_create_from_json(&created, json.data(), json.size(), "again"), lamina_success);
  graph again(engine::kind::cpu);
  again.reset(created);
  EXPECT_EQ(json_of(again), json);
  again.finalize();
  EXPECT_EQ(again.get_partitions().size(), 1u);
}

TEST(Text, ADumpThatIsNoneIsRefusedByItsName) {
  lamina_graph_graph_t created = nullptr;
  EXPECT_EQ(lamina_graph_graph_create_from_json(&created, "{", 1, "broken"), lamina_invalid_graph);
  EXPECT_THAT(lamina_last_error(), HasSubstr("broken: line 1"));
  EXPECT_EQ(created, nullptr);
}

TEST(Text, TheBorderOfAGraphIsWhatItReadsAndWhatNobodyReads) {
  const graph g = layer_norm_and_gelu();
  size_t inputs = 0, outputs = 0;
  ASSERT_EQ(lamina_graph_graph_get_border_num(g.get(), &inputs, &outputs), lamina_success);
  ASSERT_EQ(inputs, 1u);
  ASSERT_EQ(outputs, 1u);
  lamina_graph_logical_tensor_t input, output;
  ASSERT_EQ(lamina_graph_graph_get_border(g.get(), 1, &input, 1, &output), lamina_success);
  EXPECT_EQ(input.id, 0u);
  EXPECT_EQ(output.id, 2u);
  EXPECT_EQ(lamina_graph_graph_get_border(g.get(), 2, &input, 1, &output), lamina_invalid_arguments);
  lamina_graph_logical_tensor_t tensor;
  EXPECT_EQ(lamina_graph_graph_get_logical_tensor(g.get(), 1, &tensor), lamina_success);
  EXPECT_EQ(tensor.dims[1], 8);
  EXPECT_EQ(lamina_graph_graph_get_logical_tensor(g.get(), 9, &tensor), lamina_invalid_arguments);
}

TEST(Text, OutputsOfAnOpFollowFromItsSchema) {
  // src bf16[2, 3, 8] with gamma and beta f32   ->   dst bf16[2, 3, 8], mean and variance f32[2, 3]
  const logical_tensor src(0, data_type::bf16, {2, 3, 8}, layout_type::strided);
  op norm(0, op::kind::LayerNorm, "ln");
  norm.add_inputs({src, f32(1, {8}), f32(2, {8})});
  lamina_graph_logical_tensor_t outputs[3];
  size_t count = 3;
  ASSERT_EQ(lamina_graph_op_infer_outputs(norm.get(), &count, outputs), lamina_success);
  ASSERT_EQ(count, 3u);
  EXPECT_EQ(outputs[0].data_type, lamina_bf16);
  EXPECT_EQ(outputs[0].ndims, 3);
  EXPECT_EQ(outputs[1].data_type, lamina_f32);
  EXPECT_EQ(outputs[1].ndims, 2);
  EXPECT_EQ(outputs[2].id, SIZE_MAX);
  norm.set_attr(op::attr::keep_stats, false);
  ASSERT_EQ(lamina_graph_op_infer_outputs(norm.get(), &count, outputs), lamina_success);
  EXPECT_EQ(count, 1u);
  count = 0;
  EXPECT_EQ(lamina_graph_op_infer_outputs(norm.get(), &count, outputs), lamina_invalid_arguments);
}

TEST(Text, OutputsOfAnOpThatIsWrongAreRefusedAsTheGraphRefusesIt) {
  op norm(0, op::kind::LayerNorm, "ln");
  norm.add_inputs({f32(0, {2, 8}), f32(1, {7}), f32(2, {8})});
  lamina_graph_logical_tensor_t outputs[3];
  size_t count = 3;
  EXPECT_EQ(lamina_graph_op_infer_outputs(norm.get(), &count, outputs), lamina_invalid_shape);
  EXPECT_THAT(lamina_last_error(), HasSubstr("input gamma has shape [7]"));
}

TEST(Text, ASchemaNamesPortsAndAttributes) {
  const std::string schema = text_of([](lamina_text_f write, void* user) {
    return lamina_graph_op_kind_write_schema(lamina_graph_op_LayerNorm, write, user);
  });
  for (const char* part : {"\"kind\": \"LayerNorm\"", "\"gamma\"", "\"begin_norm_axis\"", "only when use_affine is true"})
    EXPECT_THAT(schema, HasSubstr(part));
}

TEST(Text, PartitionsTellWhyAndCompiledOnesHow) {
  graph g = layer_norm_and_gelu();
  g.finalize();
  const partition p = g.get_partitions().at(0);
  EXPECT_THAT(
      text_of([&](lamina_text_f write, void* user) { return lamina_graph_partition_write_reasons(p.get(), write, user); }),
      HasSubstr("\"code\": \"fused"));
  const engine cpu(engine::kind::cpu, 0);
  const compiled_partition compiled = p.compile({f32(0, {4, 8})}, {f32(2, {4, 8})}, cpu);
  const std::string info = text_of(
      [&](lamina_text_f write, void* user) { return lamina_graph_compiled_partition_write_info(compiled.get(), write, user); });
  EXPECT_THAT(info, HasSubstr("lamina_layer_norm_gelu_f32"));
  EXPECT_THAT(info, HasSubstr("\"required_bytes\": 256"));
}

TEST(Text, AMissingWriterIsRefused) {
  EXPECT_EQ(lamina_graph_op_kind_write_schema(lamina_graph_op_Add, nullptr, nullptr), lamina_invalid_arguments);
  EXPECT_THAT(lamina_last_error(), HasSubstr("argument write is null"));
}

}  // namespace
}  // namespace api_test
