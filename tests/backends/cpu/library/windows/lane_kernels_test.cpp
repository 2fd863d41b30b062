// Every instruction set gives the same bits.
#include "backends/cpu/library/windows/lane_kernels.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace lamina::cpu {
namespace {

constexpr int64_t kPixels = 41, kWindows = 40;

// Windows with increasing numbers of pixels, with weights for which no sum of products is exact.
AxisTaps uneven_taps() {
  AxisTaps taps;
  for (int64_t window = 0; window < kWindows; ++window) {
    std::vector<Tap> seen;
    for (int64_t i = 0; i <= window; ++i) seen.push_back({i, 1 / static_cast<float>(3 + i), static_cast<int32_t>(i)});
    taps.add(seen, static_cast<float>(window % 3 + 1));
  }
  return taps;
}

// Some elements are equal, some are NaN. bf16 elements are the upper halves of f32.
template <typename Element>
std::vector<Element> elements(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<Element> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    const float value = i % 97 == 0 ? std::numeric_limits<float>::quiet_NaN() : i % 5 == 0 ? 1 : normal(random);
    const char* const bytes = reinterpret_cast<const char*>(&value) + sizeof(float) - sizeof(Element);
    std::memcpy(&values[i], bytes, sizeof(Element));
  }
  return values;
}

// Computes one row from three lines of pixels.
template <typename Output, typename Input>
std::vector<Output> windows_by(LaneKernels::Kernel kernel, int64_t lanes) {
  const AxisTaps taps = uneven_taps();
  const std::vector<Input> input = elements<Input>(3 * kPixels * lanes, 7);
  const std::vector<Line> lines{{0, 0.1F, 0}, {kPixels * lanes, 0.3F, 100}, {2 * kPixels * lanes, 0.6F, 200}};
  std::vector<Output> output(static_cast<size_t>(kWindows * (lanes + kMinLanesOfBf16)));
  kernel({.lines = lines,
          .taps = &taps,
          .pixels = {0, kWindows},
          .divisor = 3,
          .input = input.data(),
          .input_stride = lanes,
          .output = output.data(),
          .output_stride = lanes + kMinLanesOfBf16,
          .lanes = lanes});
  return output;
}

template <typename Element>
std::vector<Element> gradient_by(const LaneKernels& kernels, LaneKernels::Kernel kernel, int64_t lanes) {
  const AxisTaps taps = uneven_taps().reversed(kPixels);
  const std::vector<Element> input = elements<Element>(kWindows * lanes, 8);
  const std::vector<int32_t> argmax = windows_by<int32_t, Element>(kernels.argmax, lanes);
  const std::vector<Line> lines{{0, 1, 100}};
  std::vector<Element> output(static_cast<size_t>(kPixels * lanes));
  kernel({.lines = lines,
          .taps = &taps,
          .pixels = {0, kPixels},
          .input = input.data(),
          .input_stride = lanes,
          .argmax = argmax.data(),
          .argmax_stride = lanes + kMinLanesOfBf16,
          .output = output.data(),
          .output_stride = lanes,
          .lanes = lanes});
  return output;
}

// Compares `row_of(kernels, lanes)` for all instruction sets.
template <typename RowOf>
void expect_same_bits(LaneKernels LaneCode::* type, const RowOf& row_of) {
  for (const int64_t lanes : {32, 40, 48, 113, 192}) {
    const auto expected = row_of(lane_code()[0].*type, lanes);
    for (const LaneCode& code : lane_code()) {
      const auto got = row_of(code.*type, lanes);
      EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(got[0])), 0) << code.vectors << ", " << lanes;
    }
  }
}

template <typename Element>
void expect_same_bits_of_type(LaneKernels LaneCode::* type) {
  for (const auto kernel : {&LaneKernels::sum, &LaneKernels::weighted_sum, &LaneKernels::long_sum, &LaneKernels::maximum})
    expect_same_bits(
        type, [&](const LaneKernels& kernels, int64_t lanes) { return windows_by<Element, Element>(kernels.*kernel, lanes); });
  for (const auto kernel : {&LaneKernels::sum_of_argmax, &LaneKernels::long_sum_of_argmax})
    expect_same_bits(
        type, [&](const LaneKernels& kernels, int64_t lanes) { return gradient_by<Element>(kernels, kernels.*kernel, lanes); });
}

TEST(LaneKernels, GiveTheSameBitsWithEveryInstructionSet) {
  expect_same_bits_of_type<float>(&LaneCode::f32);
  expect_same_bits_of_type<uint16_t>(&LaneCode::bf16);
}

}  // namespace
}  // namespace lamina::cpu
