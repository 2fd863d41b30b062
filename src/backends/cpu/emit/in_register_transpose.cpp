#include "backends/cpu/emit/in_register_transpose.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/vector/transpose.h"

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;

bool InRegisterTranspose::transposes(int arg) const {
  return e_.across_rows() && schedule_.lane_steps[static_cast<size_t>(arg)] == LaneStep::other &&
         kernel_.args[static_cast<size_t>(arg)].strides.back() == 1;
}

bool InRegisterTranspose::transposes(const Node& n) const {
  if (n.kind == NodeKind::column_sum) return e_.across_rows();
  return (n.kind == NodeKind::load || n.kind == NodeKind::store) && n.per_element && transposes(n.arg);
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
      if (2 * count >= side) fence(b_, block);  // for fewer positions LLVM converts the transposed vectors
      transpose(b_, block, true);
      for (size_t i = 0; i < count; ++i) loaded[first + i][static_cast<size_t>(index)] = block[i];
    }
  }
  return loaded;
}

InRegisterTranspose::Block InRegisterTranspose::to_rows(ValueList positions, llvm::Value* first) {
  const Lanes along{e_.group, first, positions_mask(positions.size())};
  positions.resize(static_cast<size_t>(e_.group), llvm::Constant::getNullValue(positions[0]->getType()));
  transpose(b_, positions, false);
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
