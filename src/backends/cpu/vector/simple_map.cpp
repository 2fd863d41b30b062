#include "backends/cpu/vector/simple_map.h"

#include "interface/status.h"

namespace lamina::cpu {

using kernel::MapOp;

// This saves a comparison and avoids a bug of LLVM 19, which replaces "x is NaN or |x| > 0" by "x > 0 or NaN".
static bool is_a_number(llvm::Value* y) {
  const auto* const constant = llvm::dyn_cast<llvm::Constant>(y);
  if (constant == nullptr) return false;
  const llvm::Constant* const scalar = y->getType()->isVectorTy() ? constant->getSplatValue() : constant;
  const auto* const number = llvm::dyn_cast_or_null<llvm::ConstantFP>(scalar);
  return number != nullptr && !number->isNaN();
}

llvm::Value* emit_maximum(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y) {
  if (is_a_number(y)) return b.CreateSelect(b.CreateFCmpUGT(x, y), x, y);
  llvm::Value* const larger = b.CreateSelect(b.CreateFCmpOGT(x, y), x, y);
  return b.CreateSelect(b.CreateFCmpUNO(x, x), x, larger);
}

llvm::Value* emit_positive_part(llvm::IRBuilder<>& b, llvm::Value* x) {
  llvm::Value* const zero = llvm::Constant::getNullValue(x->getType());
  return b.CreateSelect(b.CreateFCmpOGT(x, zero), x, zero);
}

llvm::Value* emit_minimum(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y) {
  if (is_a_number(y)) return b.CreateSelect(b.CreateFCmpULT(x, y), x, y);
  llvm::Value* const smaller = b.CreateSelect(b.CreateFCmpOLT(x, y), x, y);
  return b.CreateSelect(b.CreateFCmpUNO(x, x), x, smaller);
}

bool is_simple_map(MapOp op) {
  switch (op) {
    case MapOp::add:
    case MapOp::subtract:
    case MapOp::multiply:
    case MapOp::maximum:
    case MapOp::minimum:
    case MapOp::negate:
    case MapOp::absolute:
    case MapOp::fma: return true;
    default: return false;
  }
}

llvm::Value* emit_simple_map(llvm::IRBuilder<>& b, MapOp op, std::span<llvm::Value* const> operands) {
  llvm::Value *const x = operands[0], *const y = operands.size() > 1 ? operands[1] : nullptr;
  switch (op) {
    case MapOp::add: return b.CreateFAdd(x, y);
    case MapOp::subtract: return b.CreateFSub(x, y);
    case MapOp::multiply: return b.CreateFMul(x, y);
    case MapOp::maximum: return emit_maximum(b, x, y);
    case MapOp::minimum: return emit_minimum(b, x, y);
    case MapOp::negate: return b.CreateFNeg(x);
    case MapOp::absolute: return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    case MapOp::fma: return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, operands[2]});
    default: throw Error(Status::runtime_error, join("bug in lamina: map ", static_cast<int>(op), " is no simple one"));
  }
}

}  // namespace lamina::cpu
