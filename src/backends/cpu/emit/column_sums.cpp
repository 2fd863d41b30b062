#include "backends/cpu/emit/column_sums.h"

#include "backends/cpu/emit/split_call.h"

namespace lamina::cpu {

using kernel::NodeIndex;
using kernel::NodeKind;

ColumnSums::ColumnSums(Emission& emission, InRegisterTranspose& transpose)
    : Part(emission), transpose_(transpose), slot_(emission.kernel.nodes.size(), -1) {
  int slot = 0;
  for (size_t i = 0; i < slot_.size(); ++i) {
    if (kernel_.nodes[i].kind == NodeKind::column_sum) slot_[i] = slot++;
  }
}

void ColumnSums::add(const std::vector<Row*>& rows, NodeIndex root, const ValueList& values, const Lanes& lanes) {
  const Place sums = load(*rows.front(), root, with_lanes(values[0]->getType()->getScalarType(), lanes.width), lanes);
  llvm::Value* sum = sums.so_far;
  for (llvm::Value* value : values) sum = b_.CreateFAdd(sum, value);
  store(sums, sum, lanes);
}

// A sum is never -0, so adding 0 for a missing row changes nothing.
void ColumnSums::add(const Row& group, NodeIndex root, const InRegisterTranspose::Block& block) {
  llvm::Type* const type = block.rows[0]->getType();
  llvm::Value* const zero = llvm::Constant::getNullValue(type);
  const Place sums = load(group, root, type, block.along);
  llvm::Value* sum = sums.so_far;
  for (int r = 0; r < e_.group; ++r) {
    llvm::Value* const value = block.rows[static_cast<size_t>(r)];
    sum = b_.CreateFAdd(sum,
                        group.frame.rows == nullptr ? value : b_.CreateSelect(transpose_.has_row(group.frame, r), value, zero));
  }
  store(sums, sum, block.along);
}

// The partial sums at `lanes`; 0 if the tile starts a block of rows.
ColumnSums::Place ColumnSums::load(const Row& row, kernel::NodeIndex root, llvm::Type* type, const Lanes& lanes) {
  llvm::Type* const scalar = type->getScalarType();
  llvm::Value* position = b_.CreateAdd(lanes.offset, i64(slot_[static_cast<size_t>(root)] * column_pitch(kernel_.row_size())));
  if (row.segment_number != nullptr)
    position = b_.CreateAdd(position, b_.CreateMul(row.segment_number, i64(kernel_.extents.back())));
  llvm::Value* const address = b_.CreateGEP(scalar, e_.column_sums, position);
  const auto align = llvm::Align(scalar->getPrimitiveSizeInBits() / 8);
  llvm::Value* const zero = llvm::Constant::getNullValue(type);
  llvm::Value* const sum = lanes.mask == nullptr ? static_cast<llvm::Value*>(b_.CreateAlignedLoad(type, address, align))
                                                 : b_.CreateMaskedLoad(type, address, align, lanes.mask, zero);
  return {address, zero_if(row.begins_columns, sum)};
}

// By a mask: a condition that all lanes share would become a branch for each vector.
llvm::Value* ColumnSums::zero_if(llvm::Value* condition, llvm::Value* sum) {
  llvm::Type* const one = b_.getIntNTy(sum->getType()->getScalarSizeInBits());
  llvm::Type* const bits = with_lanes(one, lanes_of(sum));
  llvm::Value* const kept = b_.CreateSub(b_.CreateZExt(condition, one), llvm::ConstantInt::get(one, 1));
  return b_.CreateBitCast(b_.CreateAnd(b_.CreateBitCast(sum, bits), e_.widen(kept, lanes_of(sum))), sum->getType());
}

void ColumnSums::store(const Place& sums, llvm::Value* sum, const Lanes& lanes) {
  const auto align = llvm::Align(sum->getType()->getScalarType()->getPrimitiveSizeInBits() / 8);
  if (lanes.mask == nullptr)
    b_.CreateAlignedStore(sum, sums.address, align);
  else
    b_.CreateMaskedStore(sum, sums.address, align, lanes.mask);
}

}  // namespace lamina::cpu
