#include "buffers.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cmath>
#include <limits>
#include <new>
#include <system_error>

#include "caches.h"

namespace bench {

namespace {

// Reproducible noise with about unit variance around `centre`.
double noise(size_t index, double centre) {
  uint64_t state = index * 0x9e3779b97f4a7c15u + 0x243f6a8885a308d3u;
  state = (state ^ (state >> 31)) * 0xbf58476d1ce4e5b9u;
  state ^= state >> 29;
  return centre + static_cast<double>(state >> 40) * (3.4 / 16777216.0) - 1.7;
}

uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

double get(Type type, const void* data, size_t index) {
  switch (type) {
    case Type::f32: return static_cast<const float*>(data)[index];
    case Type::bf16: return std::bit_cast<float>(static_cast<uint32_t>(static_cast<const uint16_t*>(data)[index]) << 16);
    case Type::f16: return static_cast<double>(static_cast<const _Float16*>(data)[index]);
    case Type::f64: return static_cast<const double*>(data)[index];
    case Type::s8: return static_cast<const int8_t*>(data)[index];
  }
  return 0;
}

void put(Type type, void* data, size_t index, double value) {
  switch (type) {
    case Type::f32: static_cast<float*>(data)[index] = static_cast<float>(value); return;
    case Type::bf16: static_cast<uint16_t*>(data)[index] = to_bf16(static_cast<float>(value)); return;
    case Type::f16: static_cast<_Float16*>(data)[index] = static_cast<_Float16>(value); return;
    case Type::f64: static_cast<double*>(data)[index] = value; return;
    case Type::s8: static_cast<int8_t*>(data)[index] = static_cast<int8_t>(value); return;
  }
}

void fill(Type type, const Buffer& buffer, size_t count, size_t seed, double centre) {
#pragma omp parallel for
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
    put(type, buffer.data(), static_cast<size_t>(i), noise(static_cast<size_t>(i) + seed, centre));
  }
}

// Computes the statistics of src.
void take_moments(const Problem& problem, const Inputs& inputs) {
  const auto columns = static_cast<size_t>(problem.columns);
#pragma omp parallel for
  for (int64_t row = 0; row < problem.rows; ++row) {
    const size_t begin = static_cast<size_t>(row) * columns;
    double sum = 0, squares = 0;
    for (size_t i = begin; i < begin + columns; ++i) sum += get(problem.type, inputs.src.data(), i);
    const double mean = sum / static_cast<double>(columns);
    for (size_t i = begin; i < begin + columns; ++i) {
      const double distance = get(problem.type, inputs.src.data(), i) - mean;
      squares += distance * distance;
    }
    put(problem.small_type(), inputs.mean.data(), static_cast<size_t>(row), mean);
    put(problem.small_type(), inputs.variance.data(), static_cast<size_t>(row), squares / static_cast<double>(columns));
  }
}

size_t small_bytes(const Problem& problem) { return static_cast<size_t>(std::max(problem.rows, problem.columns)) * 8; }

// Largest value of distance(a[i], b[i]).
template <typename Distance>
double largest(Type type, const Buffer& a, const Buffer& b, size_t count, const Distance& distance) {
  double worst = 0;
#pragma omp parallel for reduction(max : worst)
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
    const double x = get(type, a.data(), static_cast<size_t>(i)), y = get(type, b.data(), static_cast<size_t>(i));
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double d = distance(x, y);
    worst = std::max(worst, std::isnan(d) ? std::numeric_limits<double>::infinity() : d);
  }
  return worst;
}

}  // namespace

size_t bytes_of(Type type) {
  switch (type) {
    case Type::f64: return 8;
    case Type::f32: return 4;
    case Type::bf16:
    case Type::f16: return 2;
    case Type::s8: return 1;
  }
  return 0;
}

const char* name_of(Type type) {
  switch (type) {
    case Type::f32: return "f32";
    case Type::bf16: return "bf16";
    case Type::f16: return "f16";
    case Type::f64: return "f64";
    case Type::s8: return "s8";
  }
  return "?";
}

std::string describe(const Problem& problem) {
  return name_of(problem.type) + (" " + std::to_string(problem.rows)) + "x" + std::to_string(problem.columns);
}

const char* name_of(Memory memory) {
  switch (memory) {
    case Memory::as_given: return "as given";
    case Memory::huge_pages: return "huge pages";
    case Memory::small_pages: return "small pages";
    case Memory::lines: return "lines";
  }
  return "?";
}

namespace {

constexpr size_t kSmallPage = 4096, kHugePage = size_t{2} << 20, kLine = 64;

// Tensors of one problem start at different offsets in their pages, at an odd number of cache lines.
size_t next_place_in_page() {
  static std::atomic<size_t> made = 0;
  return (made++ * 10 + 7) % (kSmallPage / kLine) * kLine;
}

void ask_for_pages(void* memory, size_t bytes, Memory kind) {
  if (kind == Memory::as_given) return;
  const bool is_huge = kind == Memory::huge_pages;
  if (madvise(memory, bytes, is_huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) == 0) return;
  throw std::system_error(errno, std::generic_category(), is_huge ? "pages of 2 MiB" : "pages of 4 KiB");
}

}  // namespace

// Mapped, not allocated: memory that is freed and allocated again would keep its madvise settings.
Buffer::Buffer(size_t bytes, Memory memory) {
  const size_t rounded = (bytes + kSmallPage + kHugePage - 1) / kHugePage * kHugePage, mapped = rounded + kHugePage;
  void* const base = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  mapping_ = {base, Unmap{mapped}};
  const size_t to_boundary = (kHugePage - reinterpret_cast<uintptr_t>(base) % kHugePage) % kHugePage;
  auto* const begin = static_cast<char*>(base) + to_boundary;
  ask_for_pages(begin, rounded, memory);
  data_ = memory == Memory::lines ? begin + next_place_in_page() : begin;
#pragma omp parallel for
  for (int64_t page = 0; page < static_cast<int64_t>(rounded / kSmallPage); ++page) {
    std::fill_n(begin + page * static_cast<int64_t>(kSmallPage), kSmallPage, char{0});
  }
}

void Unmap::operator()(void* memory) const { munmap(memory, bytes); }

Inputs::Inputs(const Problem& problem, Memory memory)
    : src(problem.bytes(), memory),
      other(problem.bytes(), memory),
      diff_dst(problem.bytes(), memory),
      gamma(small_bytes(problem), memory),
      beta(small_bytes(problem), memory),
      mean(small_bytes(problem), memory),
      variance(small_bytes(problem), memory) {
  fill(problem.type, src, problem.count(), 1, 0.5);
  fill(problem.type, other, problem.count(), 2, -0.25);
  fill(problem.type, diff_dst, problem.count(), 3, 0.0);
  fill(problem.small_type(), gamma, static_cast<size_t>(problem.columns), 4, 1.0);
  fill(problem.small_type(), beta, static_cast<size_t>(problem.columns), 5, 0.0);
  take_moments(problem, *this);
}

Outputs::Outputs(const Problem& problem, Memory memory)
    : big(problem.bytes(), memory),
      sum(problem.bytes(), memory),
      first_small(small_bytes(problem), memory),
      second_small(small_bytes(problem), memory) {}

double largest_difference(Type type, const Buffer& a, const Buffer& b, size_t count) {
  return largest(type, a, b, count, [](double x, double y) { return std::abs(x - y) / std::max(1.0, std::abs(y)); });
}

double difference_in_norm(Type type, const Buffer& a, const Buffer& b, size_t count) {
  const double apart = largest(type, a, b, count, [](double x, double y) { return std::abs(x - y); });
  double size = 0;
  for (size_t i = 0; i < count; ++i) size = std::max(size, std::abs(get(type, b.data(), i)));
  return apart / std::max(size, std::numeric_limits<double>::min());
}

Evictor::Evictor() : bytes_(2 * last_level_cache()), buffer_(bytes_) {}

void Evictor::operator()() {
  const auto* const data = static_cast<const float*>(buffer_.data());
  float sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int64_t line = 0; line < static_cast<int64_t>(bytes_ / 64); ++line) sum += data[line * 16];
  sum_ += sum;
  asm volatile("" : : "r"(&sum_) : "memory");  // keeps the reads
}

}  // namespace bench
