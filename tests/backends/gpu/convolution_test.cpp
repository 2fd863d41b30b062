// The six convolution ops by the generated program, on the available OpenCL device (PoCL suffices): every form that their
// schemas allow, compared with the reference; their bits are those of the interpreter.
#include <gtest/gtest.h>

#include "backends/gpu/reference_check.h"
#include "kernels/windowed_contraction.h"
#include "support/convolution_graphs.h"
#include "support/library_step.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16;

struct Formats {
  bool channels_last, taps_first;
};
const std::vector<Formats> kAllFormats{{true, true}, {true, false}, {false, true}, {false, false}};

// A program takes a second to compile: most cases have one format per kind.
void expect_all_kinds_are_right(const Backend& gpu, ConvolutionCase c, const std::vector<Formats>& formats = {}) {
  size_t next = static_cast<size_t>(c.space.front());
  for (const OpKind kind : kConvolutionKinds) {
    for (const Formats& format : formats.empty() ? std::vector{kAllFormats[next++ % kAllFormats.size()]} : formats) {
      c.kind = kind, c.channels_last = format.channels_last, c.taps_first = format.taps_first;
      SCOPED_TRACE(join(name_of(kind), c.channels_last ? " NXC" : " NCX", c.taps_first ? ", taps first, " : ", taps last, ",
                        name_of(c.dtype)));
      expect_whole_graph_is_right(gpu, graph_of(c), 3e-6);
    }
  }
}

TEST(GpuConvolution, TakesAllFormats) {
  LAMINA_GPU_OR_SKIP(gpu);
  expect_all_kinds_are_right(*gpu, {.src_channels = 5, .dst_channels = 7}, kAllFormats);
}

TEST(GpuConvolution, StridesPadsAndDilatesEachAxisByItsOwn) {
  LAMINA_GPU_OR_SKIP(gpu);
  expect_all_kinds_are_right(*gpu,
                             {.src_channels = 70,
                              .dst_channels = 33,
                              .space = {11, 10},
                              .strides = {2, 3},
                              .pads_begin = {1, 0},
                              .pads_end = {0, 2},
                              .dilations = {2, 1},
                              .has_bias = false},
                             {{true, true}, {false, false}});
}

TEST(GpuConvolution, TakesPadsBeyondTheWindow) {
  LAMINA_GPU_OR_SKIP(gpu);
  expect_all_kinds_are_right(*gpu, {.pads_begin = {4, 0}, .pads_end = {5, 3}, .output_padding = {1, 1}});
}

TEST(GpuConvolution, TakesGroups) {
  LAMINA_GPU_OR_SKIP(gpu);
  expect_all_kinds_are_right(*gpu, {.src_channels = 6, .dst_channels = 4, .groups = 2});
  expect_all_kinds_are_right(*gpu, {.src_channels = 16, .dst_channels = 16, .groups = 16, .space = {8, 7}},
                             {{true, true}, {false, false}});
}

TEST(GpuConvolution, TakesOneToThreeSpatialAxes) {
  LAMINA_GPU_OR_SKIP(gpu);
  expect_all_kinds_are_right(*gpu, {.space = {17},
                                    .kernel = {4},
                                    .strides = {2},
                                    .pads_begin = {3},
                                    .pads_end = {0},
                                    .dilations = {1},
                                    .auto_pad = "SAME_UPPER"});
  expect_all_kinds_are_right(*gpu, {.space = {5, 6, 7},
                                    .kernel = {3, 2, 3},
                                    .strides = {2, 1, 1},
                                    .pads_begin = {1, 0, 1},
                                    .pads_end = {0, 1, 1},
                                    .dilations = {1, 1, 2}});
}

TEST(GpuConvolution, TakesSixteenBitTypes) {
  LAMINA_GPU_OR_SKIP(gpu);
  expect_all_kinds_are_right(*gpu, {.dtype = bf16});
  expect_all_kinds_are_right(*gpu, {.space = {10, 8}, .dtype = f16});
}

TEST(GpuConvolution, TakesTensorsWithGaps) {
  LAMINA_GPU_OR_SKIP(gpu);
  expect_all_kinds_are_right(*gpu, {.groups = 2, .has_gaps = true});
}

TEST(GpuConvolution, HasTheBitsOfTheInterpreter) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const OpKind kind : kConvolutionKinds) {
    for (const auto& [dtype, groups] : {std::pair(f32, int64_t{2}), {bf16, int64_t{2}}, {f32, int64_t{4}}}) {
      SCOPED_TRACE(join(name_of(kind), " ", name_of(dtype), ", ", groups, " groups"));
      const Graph graph = graph_of({.kind = kind, .src_channels = 20, .dst_channels = 12, .groups = groups, .dtype = dtype});
      const WholeRun run = expect_whole_graph_is_right(*gpu, graph, 3e-6);
      if (dtype == bf16 && run.info.schedules.at(0).find("matrix instructions") != std::string::npos) continue;
      const kernel::LibraryStep step = library_step_of(graph);
      const kernel::WindowedContraction contraction = kernel::windowed_contraction_of(step);
      std::vector<const void*> args;
      for (const LogicalTensor& tensor : step.inputs)
        args.push_back(tensor.is_empty_port() ? nullptr : run.data.at(tensor.id).data());
      Buffer made = buffer_for(step.outputs[0]);
      const auto arg = [&](const kernel::WindowedContraction::Tensor& tensor) { return args.at(tensor.port); };
      kernel::interpret(contraction, arg(contraction.left), arg(contraction.right),
                        contraction.has_bias() ? arg(contraction.bias) : nullptr, made.data());
      EXPECT_EQ(elements(step.outputs[0], made), run.dst);
    }
  }
}

}  // namespace
}  // namespace lamina::testing
