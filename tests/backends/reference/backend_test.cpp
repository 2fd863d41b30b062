// The reference as a backend: strides, one rounding at the end, refusals, several threads.
#include "backends/backend.h"

#include <omp.h>

#include <thread>

#include "backends/reference/op_case.h"
#include "passes/extract_subgraph.h"
#include "support/random_tensor.h"

namespace lamina::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
constexpr DataType f32 = DataType::f32;
constexpr DataType bf16 = DataType::bf16;

std::unique_ptr<Executable> compile(const Graph& graph) {
  return reference_backend().compile_graph({graph, graph.inputs(), graph.outputs()});
}

LogicalTensor strided(DataType dtype, const Dims& shape, const Dims& strides) {
  LogicalTensor tensor;
  tensor.id = 0;
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.layout = LayoutType::strided;
  tensor.strides = strides;
  return tensor;
}

TEST(ReferenceBackend, ReadsAndWritesStridedTensors) {
  // src [2, 3] with a gap of two after each row; dst [2, 3] with its axes permuted and a gap
  GraphBuilder builder;
  const uint64_t src = builder.input(f32, {2, 3}, {5, 1});
  const uint64_t dst = builder.op(OpKind::Square, {src});
  builder.tensor(dst) = strided(f32, {2, 3}, {1, 4});
  builder.tensor(dst).id = dst;
  const Graph graph = builder.finish();
  const std::vector<float> input{1, 2, 3, -1, -1, 4, 5, 6};
  std::vector<float> output(10, -7);
  const void* in = input.data();
  void* out = output.data();
  compile(graph)->execute({}, {&in, 1}, {&out, 1});
  EXPECT_THAT(output, ElementsAre(1, 16, -7, -7, 4, 25, -7, -7, 9, 36));
}

TEST(ReferenceBackend, RoundsOnceAtTheEnd) {
  // bf16 has 8 significant bits: 1 + 2^-9 would round to 1.
  GraphBuilder builder;
  const uint64_t a = builder.input(bf16, {1}), b = builder.input(bf16, {1}), c = builder.input(bf16, {1});
  const uint64_t sum = builder.op(OpKind::Add, {a, b});
  builder.op(OpKind::Subtract, {sum, c});
  const Graph graph = builder.finish();
  uint16_t one = 0x3f80, tiny = 0x3b00, result = 0;  // 1, 2^-9
  const void* in[] = {&one, &tiny, &one};
  void* out = &result;
  compile(graph)->execute({}, in, {&out, 1});
  EXPECT_EQ(result, 0x3b00);  // if (1 + 2^-9) were rounded, the result would be 0
}

TEST(ReferenceBackend, NarrowIntermediatesAreRounded) {
  GraphBuilder builder;
  const uint64_t src = builder.input(f32, {3});
  const Attributes attributes{{"scales", std::vector<float>{1.0F}}};
  const uint64_t q = builder.op(OpKind::Quantize, {src}, attributes, DataType::s8);
  builder.op(OpKind::Dequantize, {q}, attributes, f32);
  const Graph graph = builder.finish();
  const std::vector<float> input{1.4F, 2.5F, 300};
  std::vector<float> output(3);
  const void* in = input.data();
  void* out = output.data();
  compile(graph)->execute({}, {&in, 1}, {&out, 1});
  EXPECT_THAT(output, ElementsAre(1, 2, 127));
}

TEST(ReferenceBackend, NullMemoryIsFineWithoutElements) {
  GraphBuilder builder;
  builder.op(OpKind::Abs, {builder.input(f32, {0, 3})});
  const Graph graph = builder.finish();
  const void* in = nullptr;
  void* out = nullptr;
  EXPECT_NO_THROW(compile(graph)->execute({}, {&in, 1}, {&out, 1}));
}

TEST(ReferenceBackend, ValuesMarkedByEndAreOutputsToo) {
  GraphBuilder builder;
  const uint64_t src = builder.input(f32, {2});
  const uint64_t inner = builder.op(OpKind::Abs, {src});
  builder.op(OpKind::Square, {inner});
  builder.output(inner);
  const Graph graph = builder.finish();
  const std::vector<float> input{-2, 3};
  std::vector<float> first(2), second(2);
  const void* in = input.data();
  void* out[] = {first.data(), second.data()};
  compile(graph)->execute({}, {&in, 1}, out);
  std::vector<std::vector<float>> results{first, second};
  std::sort(results.begin(), results.end());
  EXPECT_THAT(results, ElementsAre(ElementsAre(2, 3), ElementsAre(4, 9)));
}

TEST(ReferenceBackend, SaysWhatItCannotRun) {
  GraphBuilder builder;
  builder.named("strange").op(OpKind::Wildcard, {builder.input(f32, {1})});
  builder.tensor(1).shape = Dims{1};
  const Graph graph = builder.finish();
  EXPECT_THAT(reference_backend().why_unsupported(graph, graph.ops()[0]), HasSubstr("lamina does not know"));
  try {
    compile(graph);
    FAIL() << "compiled a Wildcard";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::unimplemented);
    EXPECT_THAT(error.what(), HasSubstr("\"strange\""));
  }
}

TEST(ReferenceBackend, DescribesItself) {
  GraphBuilder builder;
  builder.op(OpKind::Abs, {builder.input(f32, {2, 3})});
  const auto executable = compile(builder.finish());
  EXPECT_EQ(reference_backend().name(), "reference");
  EXPECT_EQ(executable->info().backend, "reference");
  EXPECT_EQ(executable->info().required_bytes, 48);
}

TEST(ReferenceBackend, ManyThreadsMayExecuteAtOnce) {
  GraphBuilder builder;
  builder.op(OpKind::Square, {builder.input(f32, {1000})});
  const auto executable = compile(builder.finish());
  std::vector<std::vector<float>> outputs(4, std::vector<float>(1000));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < outputs.size(); ++i)
    threads.emplace_back([&, i] {
      const std::vector<float> input(1000, static_cast<float>(i));
      const void* in = input.data();
      void* out = outputs[i].data();
      executable->execute({}, {&in, 1}, {&out, 1});
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < outputs.size(); ++i) EXPECT_THAT(outputs[i], Each(static_cast<float>(i * i)));
}

TEST(ReferenceBackend, ResultsAreTheSameForAnyNumberOfThreads) {
  RandomTensor random(2);
  OpCase conv(OpKind::Convolution), product(OpKind::MatMul), total(OpKind::ReduceSum);
  const std::vector<int64_t> ones{1, 1};
  conv.input({2, 20, 20, 9}, random.uniform(7200, -1, 1), f32).input({3, 3, 9, 11}, random.uniform(891, -1, 1), f32);
  conv.attr("strides", Attribute(ones)).attr("pads_begin", Attribute(ones)).attr("pads_end", Attribute(ones));
  conv.attr("dilations", Attribute(ones)).outputs({f32});
  product.input({70, 90}, random.uniform(6300, -1, 1), f32).input({90, 50}, random.uniform(4500, -1, 1), f32).outputs({f32});
  total.input({40, 50, 60}, random.uniform(120000, -1, 1)).attr("axes", Attribute(std::vector<int64_t>{1}));
  const int threads = omp_get_max_threads();
  for (const OpCase* op : {&conv, &product, &total}) {
    omp_set_num_threads(1);
    const Numbers alone = op->result();
    omp_set_num_threads(5);
    EXPECT_EQ(op->result(), alone);
  }
  omp_set_num_threads(threads);
}

}  // namespace
}  // namespace lamina::testing
