// Invalid input to the three forms that are graph ops: a status, and a message that names the op and the port.
#include "graph_op_case.h"
#include "support/failure.h"

namespace graph_op_test {
namespace {

Failure<lamina_status_t> failure_of(const std::function<void()>& body) {
  const auto failure = failure_by<lamina::error>(body);
  EXPECT_EQ(lamina_last_error(), failure.sentence);
  return failure;
}
MATCHER_P3(FailsWith, status, subject, words, "") {
  *result_listener << "status " << arg.status << ": " << arg.sentence;
  return arg.status == status && arg.sentence.find(subject) != std::string::npos &&
         arg.sentence.find(words) != std::string::npos;
}

struct Form {
  op::kind kind;
  const char* name;
  size_t src;  // the port of src
};
const std::vector<Form> kForms = {{op::kind::LayerNormBackward, "LayerNormBackward", 0},
                                  {op::kind::LayerNormBackprop, "LayerNormBackprop", 0},
                                  {op::kind::LayerNormGrad, "LayerNormGrad", 1}};

struct GraphForms : ::testing::TestWithParam<Form> {
  GraphForms() {
    if (GetParam().kind != op::kind::LayerNormGrad) return;
    for (TypedTensor* statistic : {&p.mean, &p.variance})
      *statistic = TypedTensor(statistic->dtype, {4, 3, 1}, statistic->values());
  }
  std::vector<TypedTensor*> inputs() {
    if (GetParam().kind == op::kind::LayerNormBackward) return {&p.src, &p.diff_dst, &p.mean, &p.variance, &p.gamma, &p.beta};
    if (GetParam().kind == op::kind::LayerNormBackprop) return {&p.src, &p.diff_dst, &p.gamma, &p.beta, &p.mean, &p.variance};
    return {&p.diff_dst, &p.src, &p.variance, &p.mean, &p.gamma};
  }
  void run() { run_op(op(0, GetParam().kind, "bad"), inputs(), {&p.diff_src, &p.diff_gamma, &p.diff_beta}); }
  std::string subject() const { return std::string(GetParam().name) + " \"bad\""; }
  Problem p{{4, 3, 8}};
};

TEST_P(GraphForms, AcceptWhatTheOtherTestsSpoil) { run(); }

TEST_P(GraphForms, RefuseShapesThatDoNotGoTogether) {
  Problem good = p;
  p.diff_dst = TypedTensor(DataType::f32, {4, 3, 9});
  EXPECT_THAT(failure_of([&] { run(); }), FailsWith(lamina_invalid_shape, subject(), "[4, 3, 9]"));
  p = good;
  p.mean = TypedTensor(DataType::f32, {5});
  EXPECT_THAT(failure_of([&] { run(); }), FailsWith(lamina_invalid_shape, subject(), "mean"));
  p = good;
  p.gamma = TypedTensor(DataType::f32, {9});
  EXPECT_THAT(failure_of([&] { run(); }), FailsWith(lamina_invalid_shape, subject(), "gamma"));
}

TEST_P(GraphForms, RefuseTypesOutsideTheirTables) {
  p.diff_dst = TypedTensor(DataType::s32, {4, 3, 8});
  EXPECT_THAT(failure_of([&] { run(); }), FailsWith(lamina_invalid_data_type, subject(), "s32"));
}

TEST_P(GraphForms, RefuseInputsThatAreMissing) {
  auto without_src = inputs();
  without_src[GetParam().src] = nullptr;
  EXPECT_THAT(failure_of([&] { run_op(op(0, GetParam().kind, "bad"), without_src, {&p.diff_src}); }),
              FailsWith(lamina_invalid_graph_op, subject(), "is missing"));
}

TEST_P(GraphForms, RefuseNullMemory) {
  const engine cpu(engine::kind::cpu, 0);
  const Failure failure = failure_of([&] {
    op norm(0, GetParam().kind, "bad");
    if (GetParam().kind == op::kind::LayerNormGrad) norm.set_attr(op::attr::output_mask, std::vector<int64_t>{1, 0, 0});
    std::vector<logical_tensor> in_ports, out_ports;
    std::vector<lamina::graph::tensor> in, out;
    for (TypedTensor* tensor : inputs()) {
      in_ports.push_back(describe(in_ports.size(), *tensor));
      in.emplace_back(in_ports.back(), cpu, in_ports.size() == 2 ? nullptr : tensor->data());
      norm.add_input(in_ports.back());
    }
    out_ports.push_back(describe(20, p.diff_src));
    out.emplace_back(out_ports.back(), cpu, p.diff_src.data());
    norm.add_output(out_ports.back());
    lamina::graph::graph g(engine::kind::cpu);
    g.add_op(norm);
    g.finalize();
    g.get_partitions()[0].compile(in_ports, out_ports, cpu).execute(stream(cpu), in, out);
  });
  EXPECT_THAT(failure, FailsWith(lamina_invalid_arguments, "1", "null"));
}

INSTANTIATE_TEST_SUITE_P(All, GraphForms, ::testing::ValuesIn(kForms),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace graph_op_test
