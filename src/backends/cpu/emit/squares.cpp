#include "backends/cpu/emit/squares.h"

#include <algorithm>
#include <utility>

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;

bool Squares::transposes(int arg) const {
  return e_.across_rows() && schedule_.lane_steps[static_cast<size_t>(arg)] == LaneStep::other &&
         kernel_.args[static_cast<size_t>(arg)].strides.back() == 1;
}

bool Squares::transposes(const Node& n) const {
  if (n.kind == NodeKind::column_sum) return e_.across_rows();
  return (n.kind == NodeKind::load || n.kind == NodeKind::store) && n.per_element && transposes(n.arg);
}

// Element j of vector i becomes element i of vector j.
void Squares::transpose(ValueList& square) {
  const auto size = square.size();
  for (size_t half = 1; half < size; half *= 2) {
    std::vector<int> low, high;
    for (size_t lane = 0; lane < size; ++lane) {
      const bool second = (lane & half) != 0;
      low.push_back(static_cast<int>(second ? size + lane - half : lane));
      high.push_back(static_cast<int>(second ? size + lane : lane + half));
    }
    for (size_t i = 0; i < size; ++i) {
      if ((i & half) != 0) continue;
      llvm::Value *const a = square[i], *const b = square[i + half];
      square[i] = b_.CreateShuffleVector(a, b, low);
      square[i + half] = b_.CreateShuffleVector(a, b, high);
    }
  }
}

llvm::Value* Squares::positions_mask(size_t count) {
  std::vector<llvm::Constant*> bits;
  for (size_t i = 0; i < static_cast<size_t>(e_.group); ++i) bits.push_back(b_.getInt1(i < count));
  return count == static_cast<size_t>(e_.group) ? nullptr : llvm::ConstantVector::get(bits);
}

llvm::Value* Squares::row_address(const Frame& group, llvm::Value* first_row, int arg, int r) {
  llvm::Value* number = i64(r);
  if (group.rows != nullptr) number = b_.CreateSelect(has_row(group, r), number, i64(0));
  return b_.CreateGEP(b_.getInt8Ty(), first_row, b_.CreateMul(number, e_.bytes_to_next_row(arg)));
}

std::vector<ElementValues> Squares::load(const Row& group, const NodeList& nodes, int phase,
                                         const std::vector<Lanes>& positions) {
  std::vector<ElementValues> loaded(positions.size(), ElementValues(kernel_.nodes.size(), nullptr));
  const auto side = static_cast<size_t>(e_.group);
  for (const NodeIndex index : nodes) {
    const Node& n = node(index);
    if (n.kind != NodeKind::load || !transposes(n) || phases_.is_read_back(index, phase)) continue;
    for (size_t first = 0; first < positions.size(); first += side) {
      const size_t count = std::min(side, positions.size() - first);
      const Lanes along{e_.group, positions[first].offset, positions_mask(count)};
      ValueList square;
      for (int r = 0; r < e_.group; ++r)
        square.push_back(
            memory_.load_vector(row_address(group.frame, group.segment[static_cast<size_t>(n.arg)], n.arg, r), n.arg, along));
      transpose(square);
      for (size_t i = 0; i < count; ++i) loaded[first + i][static_cast<size_t>(index)] = square[i];
    }
  }
  return loaded;
}

Squares::Square Squares::to_rows(ValueList positions, llvm::Value* first) {
  const Lanes along{e_.group, first, positions_mask(positions.size())};
  positions.resize(static_cast<size_t>(e_.group), llvm::Constant::getNullValue(positions[0]->getType()));
  transpose(positions);
  return {std::move(positions), along};
}

void Squares::store(const Row& group, const Store& to, const Square& square) {
  for (int r = 0; r < e_.group; ++r) {
    llvm::Value* const address = row_address(group.frame, group.segment[static_cast<size_t>(to.arg)], to.arg, r);
    const auto write = [&] { memory_.store_vector(address, to, square.rows[static_cast<size_t>(r)], square.along); };
    if (group.frame.rows == nullptr)
      write();
    else
      e_.when(has_row(group.frame, r), write);
  }
}

}  // namespace lamina::cpu
