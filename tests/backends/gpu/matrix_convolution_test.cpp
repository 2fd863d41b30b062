// Convolutions by matrix instructions: every kind, format and tile, with factors that are copied by chunks, by elements, and by
// chunks from a copy with their channels last.
// Devices without such instructions run the program with instructions that are emulated in their language.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <memory>
#include <random>

#include "backends/gpu/emit/emit_convolution.h"
#include "backends/gpu/emulated_matrices.h"
#include "backends/gpu/generated_library.h"
#include "backends/gpu/gpu_check.h"
#include "backends/gpu/schedule/tuning.h"
#include "interface/data_type.h"
#include "support/convolution_graphs.h"
#include "support/library_step.h"

namespace lamina::testing {
namespace {

using kernel::WindowedContraction;

class MatrixConvolutions : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    device_ = test_device(why);
    if (device_ == nullptr) GTEST_SKIP() << why;
  }

  static std::vector<char> random_values(const LogicalTensor& tensor, unsigned seed) {
    std::vector<char> data(static_cast<size_t>(tensor.byte_size()));
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> around(-2, 2);
    for (size_t i = 0; i < data.size() / 2; ++i)
      store_from_double(tensor.dtype, data.data(), static_cast<int64_t>(i), around(random));
    return data;
  }

  struct Form {
    gpu::MatrixTile tile;
    int64_t segment_terms;
    gpu::FactorCopies copies;
  };

  std::vector<char> run(const WindowedContraction& c, const Form& of, const std::vector<std::vector<char>>& inputs,
                        size_t dst_bytes) {
    const gpu::Language& language = language_with_matrices(*device_);
    gpu::ConvolutionForm form = choose_form(c, device_->limits(), language);
    EXPECT_TRUE(form.matrix_tile.has_value());
    form.matrix_tile = of.tile, form.segment_terms = of.segment_terms, form.copies = of.copies;
    std::vector<std::unique_ptr<DeviceCopy>> copies;
    std::vector<gpu::BufferView> views;
    const auto add = [&](const std::vector<char>& data) {
      copies.push_back(std::make_unique<DeviceCopy>(*device_, data));
      views.push_back({copies.back()->handle, 0});
    };
    add(inputs.at(c.left.port)), add(inputs.at(c.right.port));
    if (c.has_bias()) add(inputs.at(c.bias.port));
    std::vector<char> dst(dst_bytes, static_cast<char>(-1));  // NaN
    add(dst);
    launch_program(*device_, emit_convolution(c, form, language), launches_of(c, form), scratch_bytes_of(c, form), views,
                   words_of(c, form));
    device_->copy_out(nullptr, dst.data(), copies.back()->handle, 0, dst.size());
    return dst;
  }

  void expect_right(const ConvolutionCase& of, int64_t segment_terms = 0) {
    SCOPED_TRACE(join(name_of(of.kind), of.channels_last ? " NXC" : " NCX", of.taps_first ? ", taps first, " : ", taps last, ",
                      of.src_channels, " to ", of.dst_channels, " channels, ", name_of(of.dtype), ", segments of ",
                      segment_terms));
    const kernel::LibraryStep step = library_step_of(graph_of(of));
    const WindowedContraction c = kernel::windowed_contraction_of(step);
    std::vector<std::vector<char>> inputs;
    for (const LogicalTensor& tensor : step.inputs)
      inputs.push_back(tensor.is_empty_port() ? std::vector<char>()
                                              : random_values(tensor, static_cast<unsigned>(inputs.size())));
    std::vector<char> want(static_cast<size_t>(step.outputs[0].byte_size()), static_cast<char>(-1));  // NaN
    kernel::interpret(c, inputs.at(c.left.port).data(), inputs.at(c.right.port).data(),
                      c.has_bias() ? inputs.at(c.bias.port).data() : nullptr, want.data());
    // A program takes a second to compile: a case has two of the tiles, and one of them has copies if there are any.
    const size_t tiles = gpu::tuning::kMatrixTiles.size();
    std::array<std::pair<size_t, gpu::FactorCopies>, 2> forms = {{{cases_ % (tiles - 1), {}}, {tiles - 1, {}}}};
    const gpu::FactorCopies possible = gpu::copies_that_make_chunks(c);
    gpu::FactorCopies& copies_of_one = forms.at(cases_ / 3 % 2).second;
    copies_of_one = possible;
    if (possible.left && possible.right) copies_of_one = {.left = cases_ % 3 != 1, .right = cases_ % 3 != 2};
    with_copies_ += copies_of_one != gpu::FactorCopies{} ? 1 : 0;
    std::vector<char> first;
    for (const auto& [t, copies] : forms) {
      const gpu::MatrixTile& tile = gpu::tuning::kMatrixTiles.at(t);
      if (tile.by_four_warps && !has_instructions_of_four_warps(*device_)) continue;
      SCOPED_TRACE(join("tiles of ", tile.rows, " x ", tile.columns, tile.by_four_warps ? " by four warps" : "",
                        copies.left ? ", left is copied" : "", copies.right ? ", right is copied" : ""));
      const std::vector<char> got = run(c, {tile, segment_terms, copies}, inputs, want.size());
      for (int64_t i = 0; i < static_cast<int64_t>(want.size() / 2); ++i) {
        const double expected = load_as_double(of.dtype, want.data(), i);
        if (std::isnan(expected)) continue;  // between elements
        ASSERT_NEAR(load_as_double(of.dtype, got.data(), i), expected, 0.005 + 0.008 * std::abs(expected)) << "element " << i;
      }
      if (first.empty()) first = got;
      EXPECT_EQ(got, first) << "the bits depend on the tile or the copies";
    }
    ++cases_;
  }

  gpu::LibraryProgram program_of(const kernel::LibraryStep& step) const {
    return gpu::convolution_op().program(step, device_->limits(), language_with_matrices(*device_));
  }

  void expect_step_runs(const kernel::LibraryStep& step) {
    const WindowedContraction c = kernel::windowed_contraction_of(step);
    const gpu::ProgramRunner runner(device_, program_of(step), "gradient");
    std::vector<std::vector<char>> data;
    for (const LogicalTensor& tensor : step.inputs)
      data.push_back(tensor.is_empty_port() ? std::vector<char>(1) : random_values(tensor, static_cast<unsigned>(data.size())));
    data.emplace_back(static_cast<size_t>(step.outputs[0].byte_size()));
    std::vector<std::unique_ptr<DeviceCopy>> copies;
    std::vector<gpu::BufferView> views;
    for (const std::vector<char>& of_tensor : data) {
      copies.push_back(std::make_unique<DeviceCopy>(*device_, of_tensor));
      views.push_back({copies.back()->handle, 0});
    }
    constexpr int64_t kOffset = 256;
    const DeviceCopy scratch(*device_, std::vector<char>(runner.scratch_bytes() + kOffset, static_cast<char>(-1)));
    runner.run(nullptr, views, {scratch.handle, kOffset});
    std::vector<char>& got = data.back();
    std::vector<char> want(got.size());
    device_->copy_out(nullptr, got.data(), views.back().memory, 0, got.size());
    kernel::interpret(c, data.at(c.left.port).data(), data.at(c.right.port).data(), nullptr, want.data());
    for (int64_t i = 0; i < static_cast<int64_t>(want.size() / 2); ++i) {
      const double expected = load_as_double(DataType::bf16, want.data(), i);
      ASSERT_NEAR(load_as_double(DataType::bf16, got.data(), i), expected, 0.01 + 0.008 * std::abs(expected))
          << "element " << i;
    }
  }

  std::shared_ptr<gpu::Device> device_;
  size_t cases_ = 0;
  int with_copies_ = 0;  // of these cases
};

TEST_F(MatrixConvolutions, CopyByChunksAndByElements) {
  for (const OpKind kind : kConvolutionKinds)
    for (const bool channels_last : {true, false})
      for (const bool taps_first : {true, false})
        for (const int64_t channels : {64, 16, 5})
          expect_right({.kind = kind,
                        .src_channels = channels,
                        .dst_channels = channels + 8,
                        .space = {6, 5},
                        .channels_last = channels_last,
                        .taps_first = taps_first,
                        .dtype = DataType::bf16});
  EXPECT_GT(with_copies_, 0);
}

TEST_F(MatrixConvolutions, StridePadAndDilate) {
  for (const OpKind kind : kConvolutionKinds)
    expect_right({.kind = kind,
                  .src_channels = 16,
                  .dst_channels = 16,
                  .groups = 2,
                  .space = {9, 11},
                  .strides = {2, 3},
                  .pads_begin = {1, 0},
                  .pads_end = {0, 2},
                  .dilations = {2, 1},
                  .dtype = DataType::f16});
}

// The window has one tap and no pads: positions are copied by chunks too.
TEST_F(MatrixConvolutions, OfOneTap) {
  for (const OpKind kind : kConvolutionKinds)
    for (const bool channels_last : {true, false})
      expect_right({.kind = kind,
                    .src_channels = 40,
                    .dst_channels = 24,
                    .space = {3, 8},
                    .kernel = {1, 1},
                    .pads_begin = {0, 0},
                    .pads_end = {0, 0},
                    .channels_last = channels_last,
                    .has_bias = false,
                    .dtype = DataType::bf16});
}

TEST_F(MatrixConvolutions, DivideSumsOfGradientsOfWeights) {
  for (const OpKind kind : {OpKind::ConvolutionBackwardWeights, OpKind::ConvTransposeBackwardWeights})
    for (const bool channels_last : {true, false})
      for (const int64_t channels : {16, 12})
        expect_right({.kind = kind,
                      .batch = 5,
                      .src_channels = channels,
                      .dst_channels = 24,
                      .groups = channels == 16 ? 2 : 1,
                      .strides = {1, 2},
                      .channels_last = channels_last,
                      .dtype = DataType::bf16},
                     128);
}

TEST_F(MatrixConvolutions, CopyAlongOneToThreeAxes) {
  for (const OpKind kind : kConvolutionKinds) {
    for (const Dims& space : std::vector<Dims>{{37}, {7, 9}, {3, 4, 5}}) {
      const size_t axes = space.size();
      ConvolutionCase c{.kind = kind, .batch = 3, .src_channels = 48, .dst_channels = 16, .groups = 2, .space = space};
      c.kernel = Dims(axes, 3), c.strides = Dims(axes, 2), c.pads_begin = c.pads_end = c.dilations = Dims(axes, 1);
      c.channels_last = false, c.taps_first = axes == 2, c.dtype = DataType::f16;
      expect_right(c);
    }
  }
  EXPECT_EQ(with_copies_, static_cast<int>(cases_));
}

// Neighbouring pixels are not adjacent in memory.
TEST_F(MatrixConvolutions, CopyTensorsWithGaps) {
  for (const OpKind kind : {OpKind::Convolution, OpKind::ConvolutionBackwardData, OpKind::ConvolutionBackwardWeights}) {
    expect_right({.kind = kind,
                  .src_channels = 24,
                  .dst_channels = 16,
                  .channels_last = false,
                  .has_bias = false,
                  .dtype = DataType::bf16,
                  .has_gaps = true});
  }
  EXPECT_EQ(with_copies_, static_cast<int>(cases_));
}

// As steps of a plan, whose scratch memory has partial sums and copies.
TEST_F(MatrixConvolutions, RunGradientsOfWeightsInSegments) {
  const kernel::LibraryStep step = library_step_of(graph_of({.kind = OpKind::ConvolutionBackwardWeights,
                                                             .batch = 32,
                                                             .src_channels = 8,
                                                             .dst_channels = 8,
                                                             .space = {9, 10},
                                                             .dtype = DataType::bf16}));
  EXPECT_EQ(program_of(step).launches.size(), 2U);
  expect_step_runs(step);
}

ConvolutionCase gradient_with_copies(int64_t batch) {
  return {.kind = OpKind::ConvolutionBackwardWeights,
          .batch = batch,
          .src_channels = 32,
          .dst_channels = 32,
          .space = {20, 20},
          .channels_last = false,
          .dtype = DataType::bf16};
}

TEST_F(MatrixConvolutions, RunGradientsOfWeightsWithCopies) {
  const kernel::LibraryStep step = library_step_of(graph_of(gradient_with_copies(24)));
  EXPECT_EQ(program_of(step).source.symbols,
            (std::vector<std::string>{"lamina_convolution_bf16_copy_of_left", "lamina_convolution_bf16_copy_of_right",
                                      "lamina_convolution_bf16", "lamina_convolution_bf16_joining"}));
  EXPECT_NE(program_of(step).text.find("src and diff_dst are copied with their channels last"), std::string::npos)
      << program_of(step).text;
  expect_step_runs(step);
}

TEST_F(MatrixConvolutions, WithCopiesAreOneProgramForAllBatchSizes) {
  for (const OpKind kind : {OpKind::Convolution, OpKind::ConvolutionBackwardWeights}) {
    ConvolutionCase of = gradient_with_copies(64);
    of.kind = kind;
    const gpu::LibraryProgram first = program_of(library_step_of(graph_of(of)));
    of.batch = 66;
    const gpu::LibraryProgram second = program_of(library_step_of(graph_of(of)));
    EXPECT_GT(first.launches.size(), 1U);
    EXPECT_EQ(first.source.text, second.source.text);
    EXPECT_LT(first.scratch_bytes, second.scratch_bytes);
  }
}

}  // namespace
}  // namespace lamina::testing
