#include "kernels/arena.h"

#include <algorithm>
#include <numeric>

#include "interface/status.h"

namespace lamina::kernel {
namespace {

// Adds offsets and sizes with an overflow check. An arena that does not fit 63 bits is an error.
int64_t checked_sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    throw Error(Status::out_of_memory, "the values between the steps of this partition need more than 2^63 bytes");
  }
  return sum;
}

int64_t rounded_up(int64_t bytes, int64_t alignment) { return checked_sum(bytes, alignment - 1) / alignment * alignment; }

bool meet(const ArenaBlock& a, const ArenaBlock& b) { return a.first_step <= b.last_step && b.first_step <= a.last_step; }

struct Taken {
  int64_t begin, end;
};

// Returns the offset of the lowest gap of `bytes` bytes between the ranges in `taken`.
int64_t lowest_gap(std::vector<Taken> taken, int64_t bytes) {
  std::sort(taken.begin(), taken.end(), [](const Taken& a, const Taken& b) { return a.begin < b.begin; });
  int64_t place = 0;
  for (const Taken& range : taken) {
    if (checked_sum(place, bytes) <= range.begin) break;
    place = std::max(place, range.end);
  }
  return place;
}

}  // namespace

ArenaLayout lay_out(std::span<const ArenaBlock> blocks, size_t alignment) {
  std::vector<size_t> by_size(blocks.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(), [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });

  ArenaLayout layout{std::vector<size_t>(blocks.size(), 0), 0};
  std::vector<size_t> placed;
  for (const size_t block : by_size) {
    std::vector<Taken> taken;
    for (const size_t other : placed) {
      if (!meet(blocks[block], blocks[other])) continue;
      const auto begin = static_cast<int64_t>(layout.offsets[other]);
      taken.push_back({begin, begin + rounded_up(blocks[other].bytes, static_cast<int64_t>(alignment))});
    }
    const int64_t bytes = rounded_up(blocks[block].bytes, static_cast<int64_t>(alignment));
    const int64_t place = lowest_gap(std::move(taken), bytes);
    layout.offsets[block] = static_cast<size_t>(place);
    layout.bytes = std::max(layout.bytes, static_cast<size_t>(checked_sum(place, bytes)));
    placed.push_back(block);
  }
  return layout;
}

}  // namespace lamina::kernel
