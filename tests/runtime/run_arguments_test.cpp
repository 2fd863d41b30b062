// What a caller passes to a run: tensors that differ from the model's are refused with the name, what was given and what is
// needed; a caller's pool gives the same bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>
#include <string>
#include <thread>
#include <vector>

#include "runtime/exported_graph.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

using ::testing::HasSubstr;

constexpr DataType f32 = DataType::f32;

Graph sum_of_two() {
  GraphBuilder g;
  const auto x = g.input(f32, {6, 40}), y = g.input(f32, {6, 40}, {1, 6});
  g.multi(OpKind::LayerNorm, {g.op(OpKind::Add, {x, y})}, {{"use_affine", false}, {"keep_stats", false}}, {f32});
  return g.finish();
}

class RunArguments : public ::testing::Test {
 protected:
  RunArguments() : exported_(sum_of_two()), model_(exported_.load()), inputs_(model_.inputs()), outputs_(model_.outputs()) {
    for (auto* const tensors : {&inputs_, &outputs_})
      for (runtime::tensor& tensor : *tensors) tensor.data = memory_.emplace_back(6 * 40).data();
  }

  std::string fault() const {
    try {
      model_.run(inputs_, outputs_);
      return "";
    } catch (const runtime::error& error) {
      EXPECT_EQ(error.status(), lamina_runtime_invalid_arguments);
      return error.what();
    }
  }

  ExportedGraph exported_;
  runtime::model model_;
  std::list<std::vector<float>> memory_;
  std::vector<runtime::tensor> inputs_, outputs_;
};

TEST_F(RunArguments, AreDescribedByTheModel) {
  ASSERT_EQ(inputs_.size(), 2U);
  ASSERT_EQ(outputs_.size(), 1U);
  EXPECT_EQ(inputs_[1].dtype, lamina_runtime_f32);
  EXPECT_EQ(inputs_[1].shape, (runtime::dims{6, 40}));
  EXPECT_EQ(inputs_[1].strides, (runtime::dims{1, 6}));
  EXPECT_EQ(outputs_[0].shape, (runtime::dims{6, 40}));
  EXPECT_EQ(fault(), "");
}

TEST_F(RunArguments, OfAnotherShapeAreRefused) {
  inputs_[0].shape = {40, 6};
  EXPECT_EQ(fault(), "input " + inputs_[0].name + " is f32[40, 6], the model has f32[6, 40]");
}

TEST_F(RunArguments, OfAnotherTypeAreRefused) {
  outputs_[0].dtype = lamina_runtime_bf16;
  EXPECT_EQ(fault(), "output " + outputs_[0].name + " is bf16[6, 40], the model has f32[6, 40]");
  outputs_[0].dtype = static_cast<runtime::data_type>(77);
  EXPECT_THAT(fault(), HasSubstr("is type 77[6, 40], the model has"));
}

TEST_F(RunArguments, OfOtherStridesAreRefused) {
  inputs_[1].strides.clear();
  EXPECT_EQ(fault(), "input " + inputs_[1].name + " has other strides, the model has [1, 6]");
}

TEST_F(RunArguments, WithoutMemoryAreRefused) {
  inputs_[0].data = nullptr;
  EXPECT_EQ(fault(), "input " + inputs_[0].name + " has null data");
}

TEST_F(RunArguments, OfAnotherNumberAreRefused) {
  inputs_.pop_back();
  EXPECT_EQ(fault(), "lamina_model_run: 1 inputs are given, the model has 2");
}

TEST(ModelFunctions, RefuseNull) {
  EXPECT_EQ(lamina_model_load(nullptr, "x", nullptr), lamina_runtime_invalid_arguments);
  EXPECT_STREQ(lamina_runtime_last_error(), "lamina_model_load: argument model is null");
  lamina_model_t model = nullptr;
  EXPECT_EQ(lamina_model_load(&model, nullptr, nullptr), lamina_runtime_invalid_arguments);
  EXPECT_EQ(lamina_model_run(nullptr, nullptr, 0, nullptr, 0, nullptr), lamina_runtime_invalid_arguments);
  EXPECT_EQ(lamina_model_input_count(nullptr), 0U);
  lamina_model_destroy(nullptr);
}

TEST(ModelRuns, UseACallersPool) {
  GraphBuilder g;
  g.multi(OpKind::LayerNorm, {g.input(f32, {2000, 512})}, {{"use_affine", false}}, {f32, f32, f32});
  ExportedGraph exported(g.finish());
  static int calls = 0;
  const lamina_runtime_threadpool_t pool = {sizeof(lamina_runtime_threadpool_t), nullptr, [](void*) { return 3; },
                                            [](void*) { return 0; },
                                            [](void*, int count, void (*work)(void*, int), void* state) {
                                              ++calls;
                                              std::vector<std::thread> threads;
                                              for (int i = 0; i < count; ++i) threads.emplace_back(work, state, i);
                                              for (std::thread& thread : threads) thread.join();
                                            }};
  EXPECT_EQ(exported.difference({0, 0, &pool}), "");
  EXPECT_GT(calls, 0);
}

TEST(ModelRuns, MayBeConcurrent) {
  GraphBuilder g;
  const auto x = g.input(f32, {33, 64});
  g.op(OpKind::MatMul, {g.op(OpKind::GELU, {x}), g.constant(f32, {64, 64})});
  ExportedGraph exported(g.finish());
  exported.expected();
  const runtime::model model = exported.load();  // the first of the runs packs the weights
  std::vector<std::string> differences(4);
  std::vector<std::thread> threads;
  for (std::string& difference : differences)
    threads.emplace_back([&] {
      for (int i = 0; i < 20 && difference.empty(); ++i) difference = exported.difference(model, {1});
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& difference : differences) EXPECT_EQ(difference, "");
}

}  // namespace
}  // namespace lamina::testing
