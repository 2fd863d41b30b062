#include "backends/cpu/library/cells/lane_kernels.h"

#include <algorithm>
#include <limits>

// This file is compiled without contraction of a * b + c: machines that have no such instruction give the same bits.

namespace lamina::cpu {

namespace {

struct Bf16 {
  uint16_t bits;
};

template <typename Element>
constexpr int64_t least_lanes = sizeof(Element) == sizeof(float) ? kLeastLanes : kLeastLanesOfBf16;

// Where reads of a row lie, from one lane on.
template <typename Element>
struct Reader {
  const Element* input;
  int64_t stride;
  Reader(const CellRow& row, int64_t lane) : input(static_cast<const Element*>(row.input) + lane), stride(row.input_stride) {}
  const Element* at(const Line& line, const Read& read) const { return input + (line.at + read.cell * stride); }
};

template <typename Element>
Element* output_of(const CellRow& row, int64_t cell) {
  return static_cast<Element*>(row.output) + (cell - row.cells.begin) * row.output_stride;
}

namespace plain {
#define LAMINA_VECTOR_NAME "generic"
#define LAMINA_VECTOR_BYTES 16
#define LAMINA_VECTOR_TARGET
#include "backends/cpu/library/cells/lane_kernels.inl"
}  // namespace plain

#if defined(__x86_64__)
namespace avx2 {
#define LAMINA_VECTOR_NAME "avx2"
#define LAMINA_VECTOR_BYTES 32
#define LAMINA_VECTOR_TARGET [[gnu::target("avx2")]]
#include "backends/cpu/library/cells/lane_kernels.inl"
}  // namespace avx2

namespace avx512 {
#define LAMINA_VECTOR_NAME "avx512"
#define LAMINA_VECTOR_BYTES 64
#define LAMINA_VECTOR_TARGET [[gnu::target("avx512f")]]
#include "backends/cpu/library/cells/lane_kernels.inl"
}  // namespace avx512

constexpr LaneCode kAll[] = {plain::kCode, avx2::kCode, avx512::kCode};
size_t present() { return __builtin_cpu_supports("avx512f") ? 3 : __builtin_cpu_supports("avx2") ? 2 : 1; }
#else
constexpr LaneCode kAll[] = {plain::kCode};
size_t present() { return 1; }
#endif

}  // namespace

std::span<const LaneCode> lane_code() { return {kAll, present()}; }

}  // namespace lamina::cpu
