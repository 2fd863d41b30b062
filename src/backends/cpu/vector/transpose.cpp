#include "backends/cpu/vector/transpose.h"

#include <algorithm>
#include <utility>

namespace lamina::cpu {

namespace {

using Values = std::vector<llvm::Value*>;

constexpr size_t kLaneBits = 128;

// Replaces every two consecutive blocks of `rows` vectors, which contain their own rows of some columns, by one block of
// twice as many vectors with half as many columns.
void interleave(llvm::IRBuilder<>& b, Values& block, size_t rows, size_t per_lane) {
  const size_t size = block.size(), half = per_lane / 2;
  const auto order_from = [&](size_t begin) {
    std::vector<int> order;
    for (size_t lane = 0; lane < size; lane += per_lane) {
      for (size_t i = begin; i < begin + half; i += rows) {
        for (const size_t vector : {size_t{0}, size}) {
          for (size_t r = 0; r < rows; ++r) order.push_back(static_cast<int>(vector + lane + i + r));
        }
      }
    }
    return order;
  };
  const std::vector<int> low = order_from(0), high = order_from(half);
  Values joined;
  for (size_t pair = 0; pair < size; pair += 2 * rows) {
    for (size_t i = pair; i < pair + rows; ++i) {
      joined.push_back(b.CreateShuffleVector(block[i], block[i + rows], low));
      joined.push_back(b.CreateShuffleVector(block[i], block[i + rows], high));
    }
  }
  block = std::move(joined);
}

// Transposes the lanes of every `per_lane`-th vector from `place` on. Each round separates the even and odd lanes of two
// vectors, and so decides the lowest remaining bit of a lane's number.
void transpose_lanes_at(llvm::IRBuilder<>& b, Values& block, size_t place, size_t per_lane) {
  const size_t lanes = block.size() / per_lane;
  const auto order_of = [&](size_t odd) {
    std::vector<int> order;
    for (size_t lane = odd; lane < 2 * lanes; lane += 2) {
      for (size_t i = 0; i < per_lane; ++i) order.push_back(static_cast<int>(lane * per_lane + i));
    }
    return order;
  };
  const std::vector<int> even = order_of(0), odd = order_of(1);
  Values vectors;
  for (size_t i = 0; i < lanes; ++i) vectors.push_back(block[i * per_lane + place]);
  for (size_t decided = 1; decided < lanes; decided *= 2) {
    // Ordered by the lowest bits of the lanes' numbers, then by their rows.
    const size_t left = lanes / decided;
    Values next(lanes);
    for (size_t number = 0; number < decided; ++number) {
      for (size_t i = 0; i < left; i += 2) {
        llvm::Value *const x = vectors[number * left + i], *const y = vectors[number * left + i + 1];
        next[(number * left + i) / 2] = b.CreateShuffleVector(x, y, even);
        next[((number + decided) * left + i) / 2] = b.CreateShuffleVector(x, y, odd);
      }
    }
    vectors = std::move(next);
  }
  for (size_t i = 0; i < lanes; ++i) block[i * per_lane + place] = vectors[i];
}

}  // namespace

void transpose(llvm::IRBuilder<>& b, Values& block, bool lanes_first) {
  const size_t per_lane = std::clamp<size_t>(kLaneBits / block[0]->getType()->getScalarSizeInBits(), 1, block.size());
  const auto transpose_lanes = [&] {
    for (size_t place = 0; place < per_lane; ++place) transpose_lanes_at(b, block, place, per_lane);
  };
  if (lanes_first) transpose_lanes();
  if (lanes_first) fence(b, block);
  for (size_t rows = 1; rows < per_lane; rows *= 2) interleave(b, block, rows, per_lane);
  if (lanes_first) return;
  fence(b, block);
  transpose_lanes();
}

void fence(llvm::IRBuilder<>& b, Values& block) {
  for (llvm::Value*& vector : block) {
    if (vector->getType()->isFPOrFPVectorTy() && !llvm::isa<llvm::Constant>(vector))
      vector = b.CreateArithmeticFence(vector, vector->getType());
  }
}

}  // namespace lamina::cpu
