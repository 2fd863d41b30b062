#include "backends/cpu/emit/in_register_transpose.h"

#include <algorithm>
#include <utility>

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;

namespace {

constexpr size_t kLaneBits = 128;

}  // namespace

bool InRegisterTranspose::transposes(int arg) const {
  return e_.across_rows() && schedule_.lane_steps[static_cast<size_t>(arg)] == LaneStep::other &&
         kernel_.args[static_cast<size_t>(arg)].strides.back() == 1;
}

bool InRegisterTranspose::transposes(const Node& n) const {
  if (n.kind == NodeKind::column_sum) return e_.across_rows();
  return (n.kind == NodeKind::load || n.kind == NodeKind::store) && n.per_element && transposes(n.arg);
}

// Transposes: element j of vector i becomes element i of vector j. Uses only shuffles that are single instructions: within
// the 128-bit lanes of registers, and of whole 128-bit lanes. Missing positions or rows should be dropped as early as
// possible, or added as late as possible. LLVM searches for better shuffles through all operands of a shuffle, which is most
// of a kernel's compile time; fences limit that search to two shuffles.
void InRegisterTranspose::transpose(ValueList& block, bool lanes_first) {
  const size_t per_lane = std::clamp<size_t>(kLaneBits / block[0]->getType()->getScalarSizeInBits(), 1, block.size());
  const auto transpose_lanes = [&] {
    for (size_t place = 0; place < per_lane; ++place) transpose_lanes_at(block, place, per_lane);
  };
  if (lanes_first) transpose_lanes();
  if (lanes_first) fence(block);
  for (size_t rows = 1; rows < per_lane; rows *= 2) interleave(block, rows, per_lane);
  if (lanes_first) return;
  fence(block);
  transpose_lanes();
}

// Emits no instructions.
void InRegisterTranspose::fence(ValueList& block) {
  for (llvm::Value*& vector : block) {
    if (vector->getType()->isFPOrFPVectorTy() && !llvm::isa<llvm::Constant>(vector))
      vector = b_.CreateArithmeticFence(vector, vector->getType());
  }
}

// Replaces every two consecutive blocks of `rows` vectors, which contain their own rows of some columns, by one block of
// twice as many vectors with half as many columns.
void InRegisterTranspose::interleave(ValueList& block, size_t rows, size_t per_lane) {
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
  ValueList joined;
  for (size_t pair = 0; pair < size; pair += 2 * rows) {
    for (size_t i = pair; i < pair + rows; ++i) {
      joined.push_back(b_.CreateShuffleVector(block[i], block[i + rows], low));
      joined.push_back(b_.CreateShuffleVector(block[i], block[i + rows], high));
    }
  }
  block = std::move(joined);
}

// Transposes the lanes of every `per_lane`-th vector from `place` on. Each round separates the even and odd lanes of two
// vectors, and so decides the lowest remaining bit of a lane's number.
void InRegisterTranspose::transpose_lanes_at(ValueList& block, size_t place, size_t per_lane) {
  const size_t lanes = block.size() / per_lane;
  const auto order_of = [&](size_t odd) {
    std::vector<int> order;
    for (size_t lane = odd; lane < 2 * lanes; lane += 2) {
      for (size_t i = 0; i < per_lane; ++i) order.push_back(static_cast<int>(lane * per_lane + i));
    }
    return order;
  };
  const std::vector<int> even = order_of(0), odd = order_of(1);
  ValueList vectors;
  for (size_t i = 0; i < lanes; ++i) vectors.push_back(block[i * per_lane + place]);
  for (size_t decided = 1; decided < lanes; decided *= 2) {
    // Ordered by the lowest bits of the lanes' numbers, then by their rows.
    const size_t left = lanes / decided;
    ValueList next(lanes);
    for (size_t number = 0; number < decided; ++number) {
      for (size_t i = 0; i < left; i += 2) {
        llvm::Value *const a = vectors[number * left + i], *const b = vectors[number * left + i + 1];
        next[(number * left + i) / 2] = b_.CreateShuffleVector(a, b, even);
        next[((number + decided) * left + i) / 2] = b_.CreateShuffleVector(a, b, odd);
      }
    }
    vectors = std::move(next);
  }
  for (size_t i = 0; i < lanes; ++i) block[i * per_lane + place] = vectors[i];
}

llvm::Value* InRegisterTranspose::positions_mask(size_t count) {
  std::vector<llvm::Constant*> bits;
  for (size_t i = 0; i < static_cast<size_t>(e_.group); ++i) bits.push_back(b_.getInt1(i < count));
  return count == static_cast<size_t>(e_.group) ? nullptr : llvm::ConstantVector::get(bits);
}

llvm::Value* InRegisterTranspose::row_address(const Frame& group, llvm::Value* first_row, int arg, int r) {
  llvm::Value* number = i64(r);
  if (group.rows != nullptr) number = b_.CreateSelect(has_row(group, r), number, i64(0));
  return b_.CreateGEP(b_.getInt8Ty(), first_row, b_.CreateMul(number, e_.bytes_to_next_row(arg)));
}

std::vector<ElementValues> InRegisterTranspose::load(const Row& group, const NodeList& nodes, int phase,
                                                     const std::vector<Lanes>& positions) {
  std::vector<ElementValues> loaded(positions.size(), ElementValues(kernel_.nodes.size(), nullptr));
  const auto side = static_cast<size_t>(e_.group);
  for (const NodeIndex index : nodes) {
    const Node& n = node(index);
    if (n.kind != NodeKind::load || !transposes(n) || plan_.is_read_back(index, phase)) continue;
    for (size_t first = 0; first < positions.size(); first += side) {
      const size_t count = std::min(side, positions.size() - first);
      const Lanes along{e_.group, positions[first].offset, positions_mask(count)};
      ValueList block;
      for (int r = 0; r < e_.group; ++r)
        block.push_back(
            memory_.load_vector(row_address(group.frame, group.segment[static_cast<size_t>(n.arg)], n.arg, r), n.arg, along));
      if (2 * count >= side) fence(block);  // for fewer positions LLVM converts the transposed vectors
      transpose(block, true);
      for (size_t i = 0; i < count; ++i) loaded[first + i][static_cast<size_t>(index)] = block[i];
    }
  }
  return loaded;
}

InRegisterTranspose::Block InRegisterTranspose::to_rows(ValueList positions, llvm::Value* first) {
  const Lanes along{e_.group, first, positions_mask(positions.size())};
  positions.resize(static_cast<size_t>(e_.group), llvm::Constant::getNullValue(positions[0]->getType()));
  transpose(positions, false);
  return {std::move(positions), along};
}

void InRegisterTranspose::store(const Row& group, const Store& to, const Block& block) {
  for (int r = 0; r < e_.group; ++r) {
    llvm::Value* const address = row_address(group.frame, group.segment[static_cast<size_t>(to.arg)], to.arg, r);
    const auto write = [&] { memory_.store_vector(address, to, block.rows[static_cast<size_t>(r)], block.along); };
    if (group.frame.rows == nullptr)
      write();
    else
      e_.when(has_row(group.frame, r), write);
  }
}

}  // namespace lamina::cpu
