// Texts that describe graphs and ops (graph/text.h).
#include "graph/text.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "api_fixture.h"

namespace api_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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

std::string explained(const std::vector<partition>& partitions, lamina_graph_explanation_t format,
                      const compiled_partition* compiled = nullptr, const char* report = nullptr) {
  std::vector<const_lamina_graph_partition_t> given;
  for (const partition& p : partitions) given.push_back(p.get());
  const engine cpu(engine::kind::cpu, 0);
  const const_lamina_graph_compiled_partition_t code = compiled == nullptr ? nullptr : compiled->get();
  return text_of([&](lamina_text_f write, void* user) {
    return lamina_graph_partitions_explain(given.size(), given.data(), compiled == nullptr ? nullptr : &code, cpu.get(), format,
                                           "two ops", report, write, user);
  });
}

TEST(Text, PartitionsAreExplainedInEachFormat) {
  graph g = layer_norm_and_gelu();
  g.finalize();
  const auto partitions = g.get_partitions();
  EXPECT_THAT(
      explained(partitions, lamina_graph_explanation_json),
      AllOf(HasSubstr("\"title\":\"two ops\""), HasSubstr("lamina_layer_norm_gelu_f32"), HasSubstr("\"code\":\"fused.")));
  EXPECT_THAT(explained(partitions, lamina_graph_explanation_html),
              AllOf(HasSubstr("<!DOCTYPE html>"), HasSubstr(">two ops</h1>"), HasSubstr("id=\"op-1\"")));
  EXPECT_THAT(explained(partitions, lamina_graph_explanation_dot), HasSubstr("digraph lamina"));
}

TEST(Text, AnExplanationTellsOfTheShapesThatWereCompiled) {
  graph g(engine::kind::cpu);
  g.add_op(op(0, op::kind::ReLU, {f32(0, {LAMINA_GRAPH_UNKNOWN_DIM, 8})}, {f32(1, {LAMINA_GRAPH_UNKNOWN_DIM, 8})}, "relu"));
  g.finalize();
  const auto partitions = g.get_partitions();
  EXPECT_THAT(explained(partitions, lamina_graph_explanation_json), HasSubstr("it cannot be compiled: "));
  const engine cpu(engine::kind::cpu, 0);
  const compiled_partition compiled = partitions.at(0).compile({f32(0, {4, 8})}, {f32(1, {4, 8})}, cpu);
  EXPECT_THAT(explained(partitions, lamina_graph_explanation_json, &compiled),
              AllOf(HasSubstr("\"required_bytes\":256"), HasSubstr("\"problem\":\"\"")));
}

TEST(Text, ExplanationsThatMakeNoSenseAreRefused) {
  graph g = layer_norm_and_gelu(), other = layer_norm_and_gelu();
  g.finalize();
  other.finalize();
  const auto partitions = g.get_partitions();
  const auto sentence = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const error& refused) {
      EXPECT_EQ(refused.status, lamina_invalid_arguments);
      return refused.what();
    }
    return "nothing was refused";
  };
  EXPECT_THAT(sentence([&] { explained({partitions.at(0), other.get_partitions().at(0)}, lamina_graph_explanation_json); }),
              HasSubstr("belong to different graphs"));
  EXPECT_THAT(sentence([&] { explained(partitions, static_cast<lamina_graph_explanation_t>(3)); }), HasSubstr("format is 3"));
  EXPECT_THAT(sentence([&] { explained(partitions, lamina_graph_explanation_json, nullptr, "[]"); }),
              HasSubstr("is neither a report"));
  EXPECT_THAT(sentence([&] { explained({}, lamina_graph_explanation_json); }), HasSubstr("null"));
}

// ---- progress reports

struct Told {
  std::vector<std::pair<size_t, size_t>> steps;
  std::string name;
  size_t stop_after = SIZE_MAX;
};

int tell(void* user, size_t done, size_t total, const char* name) {
  Told& told = *static_cast<Told*>(user);
  told.steps.emplace_back(done, total);
  told.name = name;
  return done >= told.stop_after ? 1 : 0;
}

partition softmax_of(int64_t rows) {
  return only_partition_of(
      {op(0, op::kind::SoftMax, {f32(0, {rows, 8})}, {f32(1, {rows, 8})}, "probs").set_attr(op::attr::axis, int64_t{1})});
}

TEST(Progress, IsToldStepByStepOnTheThreadThatAsked) {
  const engine cpu(engine::kind::cpu, 0);
  Told told;
  ASSERT_EQ(lamina_set_compile_progress(&tell, &told), lamina_success);
  const partition p = softmax_of(21);
  const compiled_partition compiled = p.compile(p.get_input_ports(), p.get_output_ports(), cpu);
  ASSERT_EQ(lamina_set_compile_progress(nullptr, nullptr), lamina_success);
  ASSERT_GE(told.steps.size(), 2u);
  for (size_t i = 0; i < told.steps.size(); ++i)
    EXPECT_EQ(told.steps[i], std::pair(i, told.steps.size() - 1)) << "one call before each step, one at the end";
  EXPECT_THAT(told.name, HasSubstr("partition " + std::to_string(p.get_id()) + ": SoftMax"));
  const size_t calls = told.steps.size();
  const partition again = softmax_of(22);
  again.compile(again.get_input_ports(), again.get_output_ports(), cpu);
  EXPECT_EQ(told.steps.size(), calls) << "told though nobody asks any more";
}

TEST(Progress, MayStopTheCompilation) {
  const engine cpu(engine::kind::cpu, 0);
  Told told;
  told.stop_after = 0;
  lamina_set_compile_progress(&tell, &told);
  const partition p = softmax_of(23);
  try {
    p.compile(p.get_input_ports(), p.get_output_ports(), cpu);
    ADD_FAILURE() << "it went on";
  } catch (const error& stopped) {
    EXPECT_EQ(stopped.status, lamina_runtime_error);
    EXPECT_THAT(stopped.what(), HasSubstr("stopped by the caller after 0 of"));
  }
  lamina_set_compile_progress(nullptr, nullptr);
  EXPECT_EQ(told.steps.size(), 1u);
  p.compile(p.get_input_ports(), p.get_output_ports(), cpu);  // no partial result was cached
}

TEST(VerboseLines, GoToTheProgramThatAsks) {
  std::vector<std::string> lines;
  const auto write = [](void* user, const char* text, size_t length) {
    static_cast<std::vector<std::string>*>(user)->emplace_back(text, length);
  };
  ASSERT_EQ(lamina_set_verbose_output(1, write, &lines), lamina_success);
  const engine cpu(engine::kind::cpu, 0);
  const partition p = softmax_of(24);
  p.compile(p.get_input_ports(), p.get_output_ports(), cpu);
  ASSERT_EQ(lamina_set_verbose_output(-1, nullptr, nullptr), lamina_success);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines.front(), ::testing::StartsWith("lamina,compile,cpu,partition "));
  EXPECT_EQ(lamina_set_verbose_output(3, nullptr, nullptr), lamina_invalid_arguments);
  EXPECT_THAT(lamina_last_error(), HasSubstr("level is 3, allowed is -1 to 2"));
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

TEST(Text, CompiledPartitionsTellWhatTheyKeepOfConstants) {
  const auto weights = [](logical_tensor::property_type property) {
    return logical_tensor(1, data_type::f32, {32, 48}, logical_tensor::layout_type::strided, property);
  };
  const logical_tensor undefined = weights(logical_tensor::property_type::undef);
  const partition p = only_partition_of({op(0, op::kind::MatMul, {f32(0, {4, 32}), undefined}, {f32(2, {4, 48})}, "product")});
  const engine cpu(engine::kind::cpu, 0);
  const auto info_of = [&](const logical_tensor& given) {
    const compiled_partition compiled = p.compile({f32(0, {4, 32}), given}, {f32(2, {4, 48})}, cpu);
    return text_of([&](lamina_text_f write, void* user) {
      return lamina_graph_compiled_partition_write_info(compiled.get(), write, user);
    });
  };
  EXPECT_THAT(info_of(undefined), HasSubstr("\"constant_bytes\": 0"));
  EXPECT_THAT(info_of(weights(logical_tensor::property_type::constant)), Not(HasSubstr("\"constant_bytes\": 0")));
}

TEST(Text, AMissingWriterIsRefused) {
  EXPECT_EQ(lamina_graph_op_kind_write_schema(lamina_graph_op_Add, nullptr, nullptr), lamina_invalid_arguments);
  EXPECT_THAT(lamina_last_error(), HasSubstr("argument write is null"));
}

// ---- profiles

std::string profile_of(const stream& s, lamina_profile_format_t format) {
  return text_of(
      [&](lamina_text_f write, void* user) { return lamina_stream_write_profile(s.get(), format, "two ops", write, user); });
}

TEST(Text, AStreamThatProfilesKnowsTheStepsOfItsExecutions) {
  graph g = layer_norm_and_gelu();
  g.finalize();
  const engine cpu(engine::kind::cpu, 0);
  const compiled_partition compiled = g.get_partitions().at(0).compile({f32(0, {4, 8})}, {f32(2, {4, 8})}, cpu);
  stream s(cpu, stream::flags::profiling);
  std::vector<float> in(32, 1), out(32);
  compiled.execute(s, {tensor(f32(0, {4, 8}), cpu, in.data())}, {tensor(f32(2, {4, 8}), cpu, out.data())});
  EXPECT_THAT(profile_of(s, lamina_profile_json), AllOf(HasSubstr("\"two ops\""), HasSubstr("layer_norm_gelu"),
                                                        HasSubstr("\"bytes\": 256"), HasSubstr("\"executions\": 1")));
  EXPECT_THAT(profile_of(s, lamina_profile_table), HasSubstr("two ops: "));
  EXPECT_THAT(profile_of(s, lamina_profile_trace), HasSubstr("\"traceEvents\""));
}

TEST(Text, AProfileOfAStreamThatMeasuresNothingIsRefused) {
  const engine cpu(engine::kind::cpu, 0);
  const stream plain(cpu), profiling(cpu, stream::flags::profiling);
  EXPECT_THAT(failure_of([&] { profile_of(plain, lamina_profile_json); }),
              FailsWith(lamina_invalid_arguments, "lamina_stream_profiling"));
  EXPECT_THAT(failure_of([&] { profile_of(profiling, static_cast<lamina_profile_format_t>(3)); }),
              FailsWith(lamina_invalid_arguments, "format is 3, allowed is 0..2"));
}

}  // namespace
}  // namespace api_test
