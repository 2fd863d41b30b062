// Convolutions: lamina's own and oneDNN's, as the CPU backend runs them, in turns in one process, beside the measured peak of
// multiply-adds in f32. The minimum of each is printed.
//
//   convolutions [--threads N] [--seconds S] [--format NXC|NCX] [--gradient data|weights] [--smoke] [SHAPE...]
//
// SHAPE: IMAGESxCHANNELSxHEIGHTxWIDTH:CHANNELSxHEIGHTxWIDTH, then optionally sSTRIDE and gGROUPS, with pads that keep the
// extents for a stride of 1. Weights are constant: packed before. On one thread, processor time is measured, so that other
// programs disturb less.
#include <omp.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/library/library_ops.h"
#include "backends/cpu/threads/executor.h"
#include "interface/op_schema.h"
#include "roofline/fma_peak.h"
#include "turns.h"

namespace {

using bench::best_times;
using lamina::DataType;
using lamina::Dims;
using lamina::LogicalTensor;
using lamina::OpKind;
using lamina::kernel::LibraryStep;

// Of ResNet-50, then of SqueezeNet, MobileNet, DenseNet and VGG.
constexpr const char* kShapes[] = {
    "1x3x224x224:64x7x7s2",     "1x64x56x56:64x1x1",       "1x64x56x56:64x3x3",   "1x64x56x56:256x1x1",  "1x256x56x56:64x1x1",
    "1x256x56x56:512x1x1s2",    "1x128x28x28:128x3x3",     "1x128x28x28:512x1x1", "1x512x28x28:128x1x1", "1x256x14x14:256x3x3",
    "1x256x14x14:1024x1x1",     "1x1024x14x14:256x1x1",    "1x512x7x7:512x3x3",   "1x512x7x7:2048x1x1",  "1x2048x7x7:512x1x1",
    "8x64x56x56:64x3x3",        "8x512x7x7:512x3x3",       "1x16x55x55:64x1x1",   "1x16x55x55:64x3x3",   "1x512x13x13:1000x1x1",
    "1x96x112x112:96x3x3s2g96", "1x144x56x56:144x3x3g144", "1x128x28x28:32x3x3",  "1x64x224x224:64x3x3", "1x256x56x56:256x3x3"};

struct Shape {
  long images = 1, channels = 1, height = 1, width = 1, made = 1, kernel_height = 1, kernel_width = 1, stride = 1, groups = 1;
};

Shape shape_of(const std::string& text) {
  Shape s;
  int used = 0;
  const int count = std::sscanf(text.c_str(), "%ldx%ldx%ldx%ld:%ldx%ldx%ld%n", &s.images, &s.channels, &s.height, &s.width,
                                &s.made, &s.kernel_height, &s.kernel_width, &used);
  const char* rest = text.c_str() + used;
  if (*rest == 's') s.stride = std::strtol(rest + 1, const_cast<char**>(&rest), 10);
  if (*rest == 'g') s.groups = std::strtol(rest + 1, const_cast<char**>(&rest), 10);
  if (count < 7 || *rest != '\0') {
    std::fprintf(stderr, "convolutions: \"%s\" is not a shape; allowed is NxCxHxW:OxKHxKW, then sS, then gG\n", text.c_str());
    std::exit(2);
  }
  return s;
}

LogicalTensor tensor(uint64_t id, Dims shape) {
  LogicalTensor made;
  made.id = id;
  made.dtype = DataType::f32;
  made.layout = lamina::LayoutType::strided;
  made.shape = std::move(shape);
  made.strides = lamina::dense_strides(*made.shape);
  return made;
}

// `kind`: the convolution, or its gradient.
LibraryStep step_of(const Shape& s, bool channels_last, OpKind kind) {
  LibraryStep step;
  const long pad_y = s.kernel_height / 2, pad_x = s.kernel_width / 2;
  step.op.kind = kind;
  step.op.attributes = {{"strides", Dims{s.stride, s.stride}},      {"pads_begin", Dims{pad_y, pad_x}},
                        {"pads_end", Dims{pad_y, pad_x}},           {"dilations", Dims{1, 1}},
                        {"groups", static_cast<int64_t>(s.groups)}, {"data_format", std::string(channels_last ? "NXC" : "NCX")},
                        {"weights_format", std::string("OIX")}};
  lamina::fill_defaults(step.op);
  const long height = (s.height + 2 * pad_y - s.kernel_height) / s.stride + 1;
  const long width = (s.width + 2 * pad_x - s.kernel_width) / s.stride + 1;
  const auto data = [&](uint64_t id, long channels, long h, long w) {
    return tensor(id, channels_last ? Dims{s.images, h, w, channels} : Dims{s.images, channels, h, w});
  };
  const LogicalTensor image = data(1, s.channels, s.height, s.width), positions = data(3, s.made, height, width);
  const LogicalTensor weights = tensor(2, {s.made, s.channels / s.groups, s.kernel_height, s.kernel_width});
  if (kind == OpKind::ConvolutionBackwardWeights)
    step.inputs = {image, positions}, step.outputs = {weights};
  else if (kind == OpKind::ConvolutionBackwardData)
    step.inputs = {positions, weights}, step.outputs = {image};
  else
    step.inputs = {image, weights}, step.outputs = {positions};
  return step;
}

// Multiplications and additions, in 1e9.
double work_of(const LibraryStep& step) {
  const auto [positions, weights] =
      step.op.kind == OpKind::ConvolutionBackwardWeights ? std::pair(&step.inputs[1], &step.outputs[0])
      : step.op.kind == OpKind::ConvolutionBackwardData  ? std::pair(&step.inputs[0], &step.inputs[1])
                                                         : std::pair(&step.outputs[0], &step.inputs[1]);
  return 2e-9 * static_cast<double>(positions->element_count()) *
         static_cast<double>(weights->element_count() / (*weights->shape)[0]);
}

using Memory = std::unique_ptr<void, void (*)(void*)>;

Memory memory(size_t bytes) { return {std::aligned_alloc(64, (bytes + 63) / 64 * 64 + 64), std::free}; }

Memory numbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> around(-1, 1);
  Memory made = memory(static_cast<size_t>(count) * sizeof(float));
  for (int64_t i = 0; i < count; ++i) static_cast<float*>(made.get())[i] = around(random);
  return made;
}

// A compiled step with its memory.
class Contender {
 public:
  Contender(const std::vector<lamina::cpu::LibraryOp>& ops, const LibraryStep& step, int threads, const void* src,
            const void* weights)
      : executor_(threads), dst_(memory(static_cast<size_t>(step.outputs[0].byte_size()))) {
    for (const lamina::cpu::LibraryOp& op : ops)
      if (op.kind == step.op.kind && primitive_ == nullptr)
        primitive_ = op.compile(step, {.threads = threads, .packs_weights = op.kind != OpKind::ConvolutionBackwardWeights});
    scratch_ = memory(primitive_->scratch_bytes());
    packed_ = memory(primitive_->packed_bytes());
    args_ = {const_cast<void*>(src), const_cast<void*>(weights), dst_.get()};
    if (primitive_->packed_bytes() == 0) return;
    primitive_->pack(args_, packed_.get(), scratch_.get(), executor_);
    args_[1] = packed_.get();
  }
  void run() { primitive_->run(args_, scratch_.get(), executor_); }
  const float* result() const { return static_cast<const float*>(dst_.get()); }
  const std::string& name() const { return primitive_->name(); }

 private:
  lamina::cpu::Executor executor_;
  std::unique_ptr<const lamina::cpu::Primitive> primitive_;
  Memory dst_, scratch_{nullptr, std::free}, packed_{nullptr, std::free};
  std::vector<void*> args_;
};

struct Options : bench::TurnOptions {
  bool channels_last = true;
  OpKind kind = OpKind::Convolution;
};

Options options_of(int argc, char** argv) {
  Options options;
  options.shapes.assign(std::begin(kShapes), std::end(kShapes));
  bench::read_options(
      argc, argv, options, {"1x3x9x8:5x3x3s2", "2x6x7x7:6x1x1g2"}, [&](const std::string& name, const char* value) {
        if (name == "--format") options.channels_last = std::strcmp(value, "NCX") != 0;
        if (name == "--gradient")
          options.kind = std::strcmp(value, "data") == 0 ? OpKind::ConvolutionBackwardData : OpKind::ConvolutionBackwardWeights;
        return name == "--format" || name == "--gradient";
      });
  return options;
}

// Relative to the root mean square.
double difference(const float* a, const float* b, int64_t count) {
  double most = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i]) - b[i]));
    squares += static_cast<double>(b[i]) * b[i];
  }
  return most / std::sqrt(squares / static_cast<double>(count));
}

// Returns oneDNN's time over lamina's; 0 if the results differ.
double measure(const std::string& text, const Options& options, double peak) {
  const Shape shape = shape_of(text);
  const LibraryStep step = step_of(shape, options.channels_last, options.kind);
  const Memory src = numbers(step.inputs[0].element_count(), 1), weights = numbers(step.inputs[1].element_count(), 2);
  Contender ours(lamina::cpu::convolution_ops(), step, options.threads, src.get(), weights.get());
  Contender theirs(lamina::cpu::onednn_ops(), step, options.threads, src.get(), weights.get());
  const std::vector<double> times = best_times({[&] { ours.run(); }, [&] { theirs.run(); }}, options.seconds, options.threads);
  const int64_t count = step.outputs[0].element_count();
  const double work = work_of(step);
  std::printf("%-26s %9.1f %9.1f %7.1f %7.1f   %5.2f %5.2f %5.2f   %s\n", text.c_str(), times[0] * 1e6, times[1] * 1e6,
              work / times[0], work / times[1], times[1] / times[0], work / times[0] / peak, work / times[1] / peak,
              theirs.name().c_str());
  if (const double error = difference(ours.result(), theirs.result(), count); error < 1e-4) return times[1] / times[0];
  std::fprintf(stderr, "convolutions: the results for %s differ\n", text.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = options_of(argc, argv);
  omp_set_num_threads(options.threads);
  const double peak = bench::fma_peak(options.threads, options.seconds);
  std::printf("f32, %s, %d threads, peak %.1f GF/s\n", options.channels_last ? "NXC" : "NCX", options.threads, peak);
  std::printf("%-26s %9s %9s %7s %7s   %s\n", "shape", "us", "oneDNN us", "GF/s", "oneDNN", "of oneDNN; of the peak: both");
  double logarithms = 0;
  for (const std::string& shape : options.shapes) {
    const double ratio = measure(shape, options, peak);
    if (ratio == 0) return 1;
    logarithms += std::log(ratio);
  }
  std::printf("%-26s %45.2f\n", "geometric mean", std::exp(logarithms / static_cast<double>(options.shapes.size())));
  return 0;
}
