// Attention in f32: lamina's whole partition, its parts as separate partitions, and oneDNN's matmul, softmax and matmul, in
// turns in one process, beside the measured peak of multiply-adds and the bandwidth of reading keys and values. The minimum of
// each is printed, and fractions of lamina's whole.
//
//   attention [--threads N] [--seconds S] [--smoke] [SHAPE...]
//
// SHAPE: BATCHxHEADSxQUERIESxKEYSxWIDTH, then k and the number of heads of keys if it is another one, then c for a causal mask.
// On one thread, processor time is measured, so that other programs disturb less.
#include <omp.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/compiled_partition.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "passes/pipeline.h"
#include "roofline/fma_peak.h"
#include "support/graph_builder.h"
#include "turns.h"

namespace {

using lamina::DataType;
using lamina::Dims;
using lamina::OpKind;
using lamina::testing::GraphBuilder;

// Of BERT, of models with 16 and 32 heads, causal, and decoding.
constexpr const char* kShapes[] = {"1x12x128x128x64",      "1x12x512x512x64",   "4x16x384x384x64",    "1x12x512x512x64c",
                                   "1x32x1024x1024x128k8", "1x12x2048x2048x64", "1x12x2048x2048x64c", "1x32x1x2048x128k8",
                                   "1x32x1x8192x128k8",    "1x12x1x2048x64",    "4x32x1x2048x128",    "1x32x4x2048x128k8",
                                   "1x32x16x2048x128k8"};

using Options = bench::TurnOptions;

struct Shape {
  long batch = 0, heads = 0, queries = 0, keys = 0, width = 0, shared = 0;
  bool is_causal = false;

  Dims tensor(bool of_keys, long rows, long columns) const {
    return {batch, shared, of_keys ? 1 : heads / shared, rows, columns};
  }
  Dims q() const { return tensor(false, queries, width); }
  Dims kv() const { return tensor(true, keys, width); }
  Dims scores() const { return tensor(false, queries, keys); }
};

Options options_of(int argc, char** argv) {
  Options options;
  options.seconds = 1;
  options.shapes.assign(std::begin(kShapes), std::end(kShapes));
  bench::read_options(argc, argv, options, {"1x8x20x33x16c", "2x8x1x70x16k2"});
  return options;
}

Shape shape_of(const std::string& text) {
  Shape shape;
  int used = 0;
  if (std::sscanf(text.c_str(), "%ldx%ldx%ldx%ldx%ld%n", &shape.batch, &shape.heads, &shape.queries, &shape.keys, &shape.width,
                  &used) < 5) {
    std::fprintf(stderr, "attention: \"%s\" is not a shape; allowed is BxHxQxKxD, kHEADS of keys, c for causal\n",
                 text.c_str());
    std::exit(2);
  }
  const char* rest = text.c_str() + used;
  shape.shared = *rest == 'k' ? std::strtol(rest + 1, const_cast<char**>(&rest), 10) : shape.heads;
  shape.is_causal = *rest == 'c';
  return shape;
}

std::vector<float> random_numbers(const Dims& shape) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> numbers(-1, 1);
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  std::vector<float> result(static_cast<size_t>(count));
  for (float& number : result) number = numbers(random);
  return result;
}

// The middle of attention: scale, mask, softmax.
uint64_t weights_of(GraphBuilder& g, uint64_t scores, const Shape& shape) {
  scores = g.op(OpKind::Multiply, {scores, g.number(0.125)});
  if (shape.is_causal) {
    const auto row = g.op(OpKind::GenIndex, {scores}, {{"axis", int64_t{-2}}}, DataType::s32);
    const auto column = g.op(OpKind::GenIndex, {scores}, {{"axis", int64_t{-1}}}, DataType::s32);
    const auto seen = g.op(OpKind::GreaterEqual, {row, column}, {}, DataType::boolean);
    const auto hidden = g.number(-std::numeric_limits<double>::infinity());
    scores = g.op(OpKind::Select, {seen, scores, hidden}, {}, DataType::f32);
  }
  return g.op(OpKind::SoftMax, {scores}, {{"axis", int64_t{-1}}});
}

// A compiled graph with its tensors.
class Compiled {
 public:
  // `inputs`: by id. Other ports are known numbers.
  Compiled(GraphBuilder& builder, const std::map<uint64_t, float*>& inputs, float* output) : graph_(builder.finish()) {
    const auto partitions = lamina::partition_graph(graph_, lamina::PartitionPolicy::fusion, lamina::cpu_backend());
    if (partitions.size() != 1) {
      std::fprintf(stderr, "attention: %zu partitions\n", partitions.size());
      std::exit(1);
    }
    const double start = bench::now(false);
    compiled_ = lamina::compiler::compile_partition(partitions[0], lamina::cpu_backend());
    compile_seconds_ = bench::now(false) - start;
    for (const lamina::LogicalTensor& port : compiled_->inputs()) {
      const auto found = inputs.find(port.id);
      if (found == inputs.end()) numbers_.push_back(static_cast<float>(*graph_.value(*graph_.find_value(port.id)).constant));
      inputs_.push_back({&port, found == inputs.end() ? &numbers_.back() : found->second});
    }
    outputs_.push_back({&compiled_->outputs()[0], output});
  }
  void run() const { compiled_->execute({}, inputs_, outputs_); }
  double compile_seconds() const { return compile_seconds_; }
  void print() const {
    for (const std::string& text : compiled_->info().kernel_texts)
      std::printf("  %s\n", text.substr(0, text.find('\n')).c_str());
  }

 private:
  lamina::Graph graph_;
  std::unique_ptr<const lamina::compiler::CompiledPartition> compiled_;
  std::vector<lamina::compiler::BoundTensor> inputs_, outputs_;
  double compile_seconds_ = 0;
  std::list<float> numbers_;
};

struct Tensors {
  explicit Tensors(const Shape& shape)
      : q(random_numbers(shape.q())),
        k(random_numbers(shape.kv())),
        v(random_numbers(shape.kv())),
        scores(random_numbers(shape.scores())),
        weights(scores.size()),
        dst(q.size()) {}
  std::vector<float> q, k, v, scores, weights, dst;
};

Compiled whole(const Shape& shape, Tensors& t) {
  GraphBuilder g;
  const auto q = g.input(DataType::f32, shape.q()), k = g.input(DataType::f32, shape.kv());
  const auto v = g.input(DataType::f32, shape.kv());
  const auto scores = g.op(OpKind::MatMul, {q, k}, {{"transpose_b", true}});
  g.op(OpKind::MatMul, {weights_of(g, scores, shape), v});
  return {g, {{q, t.q.data()}, {k, t.k.data()}, {v, t.v.data()}}, t.dst.data()};
}

Compiled scores(const Shape& shape, Tensors& t) {
  GraphBuilder g;
  const auto q = g.input(DataType::f32, shape.q()), k = g.input(DataType::f32, shape.kv());
  g.op(OpKind::MatMul, {q, k}, {{"transpose_b", true}});
  return {g, {{q, t.q.data()}, {k, t.k.data()}}, t.scores.data()};
}

Compiled softmax(const Shape& shape, Tensors& t) {
  GraphBuilder g;
  const auto scores = g.input(DataType::f32, shape.scores());
  weights_of(g, scores, shape);
  return {g, {{scores, t.scores.data()}}, t.weights.data()};
}

Compiled values(const Shape& shape, Tensors& t) {
  GraphBuilder g;
  const auto weights = g.input(DataType::f32, shape.scores()), v = g.input(DataType::f32, shape.kv());
  g.op(OpKind::MatMul, {weights, v});
  return {g, {{weights, t.weights.data()}, {v, t.v.data()}}, t.dst.data()};
}

// oneDNN's matmul with scale, addition of the mask, softmax in place, and matmul.
class OneDnn {
 public:
  OneDnn(const Shape& shape, Tensors& t) : mask_(mask_of(shape)) {
    const dnnl::memory::desc q = desc(shape.q()), v = desc(shape.kv()), weights = desc(shape.scores());
    const Dims kv = shape.kv(), dense = lamina::dense_strides(kv);
    const dnnl::memory::desc k({kv[0], kv[1], kv[2], kv[4], kv[3]}, kType, {dense[0], dense[1], dense[2], dense[4], dense[3]});
    const dnnl::memory::desc mask = desc({1, 1, 1, shape.queries, shape.keys});
    dnnl::post_ops after;
    after.append_eltwise(dnnl::algorithm::eltwise_linear, 0.125f, 0.0f);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(after);
    scores_ = dnnl::matmul({engine_, q, k, weights, attributes});
    softmax_ = dnnl::softmax_forward(
        {engine_, dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate, weights, weights, 4});
    values_ = dnnl::matmul({engine_, weights, v, q});
    if (shape.is_causal) hide_ = dnnl::binary({engine_, dnnl::algorithm::binary_add, weights, mask, weights});
    const auto memory = [&](const dnnl::memory::desc& d, std::vector<float>& data) {
      return dnnl::memory(d, engine_, data.data());
    };
    q_ = memory(q, t.q), k_ = memory(k, t.k), v_ = memory(v, t.v), weights_ = memory(weights, t.weights),
    dst_ = memory(q, t.dst);
    mask_memory_ = memory(mask, mask_);
    is_causal_ = shape.is_causal;
  }
  void run() {
    scores_.execute(stream_, {{DNNL_ARG_SRC, q_}, {DNNL_ARG_WEIGHTS, k_}, {DNNL_ARG_DST, weights_}});
    if (is_causal_)
      hide_.execute(stream_, {{DNNL_ARG_SRC_0, weights_}, {DNNL_ARG_SRC_1, mask_memory_}, {DNNL_ARG_DST, weights_}});
    softmax_.execute(stream_, {{DNNL_ARG_SRC, weights_}, {DNNL_ARG_DST, weights_}});
    values_.execute(stream_, {{DNNL_ARG_SRC, weights_}, {DNNL_ARG_WEIGHTS, v_}, {DNNL_ARG_DST, dst_}});
    stream_.wait();
  }

 private:
  static constexpr auto kType = dnnl::memory::data_type::f32;
  static dnnl::memory::desc desc(const Dims& shape) { return {shape, kType, lamina::dense_strides(shape)}; }
  static std::vector<float> mask_of(const Shape& shape) {
    std::vector<float> mask(static_cast<size_t>(shape.queries * shape.keys), 0);
    for (long row = 0; shape.is_causal && row < shape.queries; ++row) {
      for (long key = row + 1; key < shape.keys; ++key)
        mask[static_cast<size_t>(row * shape.keys + key)] = -std::numeric_limits<float>::infinity();
    }
    return mask;
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::vector<float> mask_;
  dnnl::memory q_, k_, v_, weights_, dst_, mask_memory_;
  dnnl::matmul scores_, values_;
  dnnl::softmax_forward softmax_;
  dnnl::binary hide_;
  bool is_causal_ = false;
};

void measure(const std::string& text, const Options& options, double peak) {
  const Shape shape = shape_of(text);
  Tensors t(shape);
  const Compiled all = whole(shape, t), first = scores(shape, t), middle = softmax(shape, t), last = values(shape, t);
  OneDnn other(shape, t);
  volatile uint64_t sink = 0;
  const std::vector<double> times = bench::best_times(
      {[&] { all.run(); }, [&] { first.run(); }, [&] { middle.run(); }, [&] { last.run(); }, [&] { other.run(); },
       [&] {
         for (const std::vector<float>* tensor : {&t.k, &t.v})
           sink = sink + bench::read_all(tensor->data(), 4 * tensor->size(), options.threads);
       }},
      options.seconds, options.threads);
  const double parts = times[1] + times[2] + times[3];
  // A causal mask hides half of the work.
  const double work = (shape.is_causal ? 2e-9 : 4e-9) * static_cast<double>(t.scores.size()) * static_cast<double>(shape.width);
  std::printf("%-22s %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f %7.1f %5.2f %5.2f %5.2f %5.2f\n", text.c_str(), times[0] * 1e6,
              times[1] * 1e6, times[2] * 1e6, times[3] * 1e6, times[4] * 1e6, all.compile_seconds() * 1e3, work / times[0],
              parts / times[0], times[4] / times[0], peak == 0 ? 0 : work / times[0] / peak, times[5] / times[0]);
  if (options.shapes.size() == 1) all.print();
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = options_of(argc, argv);
  omp_set_num_threads(options.threads);
  const double peak = bench::fma_peak(options.threads, options.seconds);
  std::printf("f32, %d threads, peak %.1f GF/s\n", options.threads, peak);
  std::printf("%-22s %9s %9s %9s %9s %9s %9s %7s   %s\n", "shape", "us", "scores", "softmax", "values", "oneDNN", "compile ms",
              "GF/s", "speed relative to: sum of the parts, oneDNN, peak, reading keys and values");
  for (const std::string& shape : options.shapes) measure(shape, options, peak);
  return 0;
}
