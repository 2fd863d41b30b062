#include "buffers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <new>

namespace bench {

namespace {

// Reproducible noise of about unit variance around `centre`.
float noise(size_t index, float centre) {
  uint64_t state = index * 0x9e3779b97f4a7c15u + 0x243f6a8885a308d3u;
  state = (state ^ (state >> 31)) * 0xbf58476d1ce4e5b9u;
  state ^= state >> 29;
  return centre + static_cast<float>(state >> 40) * (3.4f / 16777216.0f) - 1.7f;
}

uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float from_bf16(uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

float element(const Problem& problem, const Buffer& buffer, size_t index) {
  return problem.type == Type::f32 ? buffer.floats()[index] : from_bf16(static_cast<const uint16_t*>(buffer.data())[index]);
}

void fill(const Problem& problem, const Buffer& buffer, size_t seed, float centre) {
  const auto count = static_cast<int64_t>(problem.count());
#pragma omp parallel for
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    const float value = noise(at + seed, centre);
    if (problem.type == Type::f32) {
      buffer.floats()[at] = value;
    } else {
      static_cast<uint16_t*>(buffer.data())[at] = to_bf16(value);
    }
  }
}

// The statistics that belong to src.
void take_moments(const Problem& problem, const Inputs& inputs) {
  const auto columns = static_cast<size_t>(problem.columns);
#pragma omp parallel for
  for (int64_t row = 0; row < problem.rows; ++row) {
    const size_t begin = static_cast<size_t>(row) * columns;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < columns; ++i) sum += element(problem, inputs.src, begin + i);
    const double mean = sum / static_cast<double>(columns);
    for (size_t i = 0; i < columns; ++i) squares += std::pow(element(problem, inputs.src, begin + i) - mean, 2);
    inputs.mean.floats()[row] = static_cast<float>(mean);
    inputs.variance.floats()[row] = static_cast<float>(squares / static_cast<double>(columns));
  }
}

size_t small_bytes(const Problem& problem) { return static_cast<size_t>(std::max(problem.rows, problem.columns)) * 4; }

}  // namespace

std::string describe(const Problem& problem) {
  return std::string(problem.type == Type::f32 ? "f32 " : "bf16 ") + std::to_string(problem.rows) + "x" +
         std::to_string(problem.columns);
}

Buffer::Buffer(size_t bytes) {
  constexpr size_t kPage = 2 << 20;
  const size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  memory_.reset(std::aligned_alloc(kPage, rounded));
  if (memory_ == nullptr) throw std::bad_alloc();
  auto* bytes_of_buffer = static_cast<char*>(memory_.get());
#pragma omp parallel for
  for (int64_t page = 0; page < static_cast<int64_t>(rounded / 4096); ++page) {
    std::fill_n(bytes_of_buffer + page * 4096, 4096, char{0});
  }
}

void Buffer::Release::operator()(void* memory) const { std::free(memory); }

Inputs::Inputs(const Problem& problem)
    : src(problem.bytes()),
      other(problem.bytes()),
      diff_dst(problem.bytes()),
      gamma(small_bytes(problem)),
      beta(small_bytes(problem)),
      mean(small_bytes(problem)),
      variance(small_bytes(problem)) {
  fill(problem, src, 1, 0.5f);
  fill(problem, other, 2, -0.25f);
  fill(problem, diff_dst, 3, 0.0f);
  const Problem one_row{1, problem.columns, Type::f32};
  fill(one_row, gamma, 4, 1.0f);
  fill(one_row, beta, 5, 0.0f);
  take_moments(problem, *this);
}

Outputs::Outputs(const Problem& problem)
    : big(problem.bytes()), first_small(small_bytes(problem)), second_small(small_bytes(problem)) {}

double difference(const Problem& problem, const Outputs& a, const Outputs& b) {
  double worst = 0;
  for (size_t i = 0; i < problem.count(); ++i) {
    const double x = element(problem, a.big, i), y = element(problem, b.big, i);
    worst = std::max(worst, std::abs(x - y) / std::max(1.0, std::abs(y)));
  }
  return worst;
}

}  // namespace bench
