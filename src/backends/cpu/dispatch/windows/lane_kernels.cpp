#include "backends/cpu/dispatch/windows/lane_kernels.h"

#include <algorithm>
#include <limits>

#include "backends/cpu/host/host.h"

// This file is compiled without contraction of a * b + c, so that machines without such an instruction give the same bits.

namespace lamina::cpu {

namespace {

struct Bf16 {
  uint16_t bits;
};

template <typename Element>
constexpr int64_t least_lanes = sizeof(Element) == sizeof(float) ? kMinLanes : kMinLanesOfBf16;

// The input of a row's taps, starting at one lane.
template <typename Element>
struct Reader {
  const Element* input;
  int64_t stride;
  Reader(const PixelRow& row, int64_t lane) : input(static_cast<const Element*>(row.input) + lane), stride(row.input_stride) {}
  const Element* at(const Line& line, const Tap& tap) const { return input + (line.at + tap.pixel * stride); }
};

template <typename Element>
Element* output_of(const PixelRow& row, int64_t pixel) {
  return static_cast<Element*>(row.output) + (pixel - row.pixels.begin) * row.output_stride;
}

namespace first {
#define LAMINA_VECTOR_NAME LAMINA_FIRST_NAME
#define LAMINA_VECTOR_BYTES LAMINA_FIRST_BYTES
#define LAMINA_VECTOR_TARGET LAMINA_FIRST_TARGET
#include "backends/cpu/dispatch/windows/lane_kernels.inl"
}  // namespace first

#if LAMINA_VECTOR_SETS > 1
namespace second {
#define LAMINA_VECTOR_NAME LAMINA_SECOND_NAME
#define LAMINA_VECTOR_BYTES LAMINA_SECOND_BYTES
#define LAMINA_VECTOR_TARGET LAMINA_SECOND_TARGET
#include "backends/cpu/dispatch/windows/lane_kernels.inl"
}  // namespace second

namespace third {
#define LAMINA_VECTOR_NAME LAMINA_THIRD_NAME
#define LAMINA_VECTOR_BYTES LAMINA_THIRD_BYTES
#define LAMINA_VECTOR_TARGET LAMINA_THIRD_TARGET
#include "backends/cpu/dispatch/windows/lane_kernels.inl"
}  // namespace third

constexpr LaneCode kAll[] = {first::kCode, second::kCode, third::kCode};
#else
constexpr LaneCode kAll[] = {first::kCode};
#endif

}  // namespace

std::span<const LaneCode> lane_code() { return {kAll, host::vector_sets()}; }

}  // namespace lamina::cpu
