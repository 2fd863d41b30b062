// A value per node: element nodes as vectors of lanes, row nodes as scalars.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "backends/cpu/emit/kernel_emitter.h"
#include "backends/cpu/vector/convert.h"
#include "backends/cpu/vector/philox.h"
#include "interface/status.h"

namespace lamina::cpu {

using kernel::MapOp;
using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;
using kernel::Type;

namespace {

llvm::Type* with_width(llvm::Type* scalar, int width) {
  return width == 1 ? scalar : llvm::FixedVectorType::get(scalar, static_cast<unsigned>(width));
}

DataType data_type_of(Type type) {
  switch (type) {
    case Type::f32: return DataType::f32;
    case Type::f64: return DataType::f64;
    case Type::s32: return DataType::s32;
    case Type::s64: return DataType::s64;
    case Type::boolean: return DataType::boolean;
  }
  return DataType::undef;
}

}  // namespace

llvm::Type* KernelEmitter::llvm_type(Type type, int width) const {
  auto& context = context_;
  switch (type) {
    case Type::f32: return with_width(llvm::Type::getFloatTy(context), width);
    case Type::f64: return with_width(llvm::Type::getDoubleTy(context), width);
    case Type::s32: return with_width(llvm::Type::getInt32Ty(context), width);
    case Type::s64: return with_width(llvm::Type::getInt64Ty(context), width);
    case Type::boolean: return with_width(llvm::Type::getInt1Ty(context), width);
  }
  return nullptr;
}

llvm::Value* KernelEmitter::widen(llvm::Value* scalar, int width) {
  return width == 1 || scalar->getType()->isVectorTy() ? scalar : b_.CreateVectorSplat(static_cast<unsigned>(width), scalar);
}

llvm::Value* KernelEmitter::fma(llvm::Value* a, llvm::Value* b, llvm::Value* c) {
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}

// NaN in either operand wins; of two zeros the second is taken.
llvm::Value* KernelEmitter::maximum(llvm::Value* a, llvm::Value* b) {
  if (a->getType()->isIntOrIntVectorTy()) return b_.CreateSelect(b_.CreateICmpSGT(a, b), a, b);
  llvm::Value* const larger = b_.CreateSelect(b_.CreateFCmpOGT(a, b), a, b);
  return b_.CreateSelect(b_.CreateFCmpUNO(a, a), a, larger);
}

llvm::Value* KernelEmitter::minimum(llvm::Value* a, llvm::Value* b) {
  if (a->getType()->isIntOrIntVectorTy()) return b_.CreateSelect(b_.CreateICmpSLT(a, b), a, b);
  llvm::Value* const smaller = b_.CreateSelect(b_.CreateFCmpOLT(a, b), a, b);
  return b_.CreateSelect(b_.CreateFCmpUNO(a, a), a, smaller);
}

// Values known once per row that phase `phase` may use: everything whose operands are rows and known by now.
void KernelEmitter::emit_row_values(Row& row, int phase) {
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& n = kernel_.nodes[i];
    const auto index = static_cast<NodeIndex>(i);
    if (n.per_element || n.phase > phase || row.values[i] != nullptr || !is_computed_here(index)) continue;
    const auto operand = [&](int k) { return row.values[static_cast<size_t>(n.operands[static_cast<size_t>(k)])]; };
    switch (n.kind) {
      case NodeKind::load: row.values[i] = load_arg(row.pointers[static_cast<size_t>(n.arg)], n.arg, row_lanes(), 0); break;
      case NodeKind::constant: {
        llvm::Type* const type = row_type(n.type);
        row.values[i] = type->isFPOrFPVectorTy() ? llvm::ConstantFP::get(type, n.value)
                                                 : llvm::ConstantInt::getSigned(type, static_cast<int64_t>(n.value));
        break;
      }
      case NodeKind::index: row.values[i] = row.index_base[i]; break;
      case NodeKind::center:
        row.values[i] = centered(row, n.operands[1], operand(0), n.operands[2] < 0 ? nullptr : operand(2));
        break;
      case NodeKind::map: {
        std::vector<llvm::Value*> operands;
        for (int k = 0; k < kernel::operand_count(n); ++k) operands.push_back(operand(k));
        row.values[i] = map_value(kernel_.nodes[static_cast<size_t>(index)], operands);
        break;
      }
      case NodeKind::store:
        if (!stores_row_values_) break;
        store_arg(row.pointers[static_cast<size_t>(n.arg)], n.arg, operand(0), n.type, row_lanes(), 0);
        row.values[i] = operand(0);  // marks it as done
        break;
      default: break;  // reductions, and what is read from moments, are set when their loop is done
    }
  }
}

llvm::Value* KernelEmitter::element_value(Row& row, NodeIndex index, const Lanes& lanes, const ElementValues& known) {
  const Node& n = node(index);
  const auto operand = [&](int k) {
    const auto i = static_cast<size_t>(n.operands[static_cast<size_t>(k)]);
    return known[i] != nullptr ? known[i] : widen(row.values[i], lanes.width);
  };
  switch (n.kind) {
    case NodeKind::load:
      return load_arg(row.segment[static_cast<size_t>(n.arg)], n.arg, lanes,
                      kernel_.args[static_cast<size_t>(n.arg)].strides.back());
    case NodeKind::index: {
      const int64_t step = n.coefficients.back();
      llvm::Value* const base =
          b_.CreateAdd(row.index_base[static_cast<size_t>(index)], widen(b_.CreateMul(lanes.offset, i64(step)), row_lanes_));
      if (lanes.width == 1 || rows_in_lanes()) return base;
      auto* const type = llvm::FixedVectorType::get(b_.getInt64Ty(), static_cast<unsigned>(lanes.width));
      return b_.CreateAdd(widen(base, lanes.width), b_.CreateMul(b_.CreateStepVector(type), widen(i64(step), lanes.width)));
    }
    case NodeKind::center: return centered(row, n.operands[1], operand(0), n.operands[2] < 0 ? nullptr : operand(2));
    default: {
      std::vector<llvm::Value*> operands;
      for (int k = 0; k < kernel::operand_count(n); ++k) operands.push_back(operand(k));
      return map_value(n, operands);
    }
  }
}

// x - max(x), as a softmax has it: at most 0, or NaN.
static bool is_below_its_maximum(const kernel::Kernel& kernel, NodeIndex index) {
  const Node& difference = kernel.nodes[static_cast<size_t>(index)];
  if (difference.kind != NodeKind::map || difference.op != MapOp::subtract) return false;
  const Node& maximum = kernel.nodes[static_cast<size_t>(difference.operands[1])];
  return maximum.kind == NodeKind::reduce && maximum.reduction == kernel::Reduction::maximum &&
         maximum.operands[0] == difference.operands[0];
}

llvm::Value* KernelEmitter::map_value(const Node& n, std::vector<llvm::Value*> operands) {
  llvm::Value* const a = operands[0];
  llvm::Value* const b = operands.size() > 1 ? operands[1] : nullptr;
  const bool integer = a->getType()->isIntOrIntVectorTy();
  switch (n.op) {
    case MapOp::add: return integer ? b_.CreateAdd(a, b) : b_.CreateFAdd(a, b);
    case MapOp::subtract: return integer ? b_.CreateSub(a, b) : b_.CreateFSub(a, b);
    case MapOp::multiply: return integer ? b_.CreateMul(a, b) : b_.CreateFMul(a, b);
    case MapOp::divide: return b_.CreateFDiv(a, b);
    case MapOp::maximum: return maximum(a, b);
    case MapOp::minimum: return minimum(a, b);
    case MapOp::negate: return integer ? b_.CreateNeg(a) : b_.CreateFNeg(a);
    case MapOp::absolute: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
    case MapOp::square_root: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a);
    case MapOp::exp:
      return is_below_its_maximum(kernel_, n.operands[0]) ? emit_exp_of_at_most_zero(b_, a, target_) : emit_exp(b_, a, target_);
    case MapOp::expm1: return emit_expm1(b_, a, target_);
    case MapOp::log: return emit_log(b_, a);
    case MapOp::log1p: return emit_log1p(b_, a);
    case MapOp::tanh: return emit_tanh(b_, a, target_);
    case MapOp::erf: return emit_erf(b_, a, target_);
    case MapOp::normal_cdf: return emit_normal_cdf(b_, a, target_);
    case MapOp::sigmoid: return emit_sigmoid(b_, a, target_);
    case MapOp::round_half_even: return emit_round_half_even(b_, a, target_);
    case MapOp::floor: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, a);
    case MapOp::power: return emit_pow_const(b_, a, n.value, target_);
    case MapOp::fma: return fma(a, b, operands[2]);
    case MapOp::equal: return integer ? b_.CreateICmpEQ(a, b) : b_.CreateFCmpOEQ(a, b);
    case MapOp::less: return integer ? b_.CreateICmpSLT(a, b) : b_.CreateFCmpOLT(a, b);
    case MapOp::less_equal: return integer ? b_.CreateICmpSLE(a, b) : b_.CreateFCmpOLE(a, b);
    case MapOp::greater: return integer ? b_.CreateICmpSGT(a, b) : b_.CreateFCmpOGT(a, b);
    case MapOp::greater_equal: return integer ? b_.CreateICmpSGE(a, b) : b_.CreateFCmpOGE(a, b);
    case MapOp::logical_and: return b_.CreateAnd(a, b);
    case MapOp::logical_not: return b_.CreateNot(a);
    case MapOp::select: return b_.CreateSelect(a, b, operands[2]);
    case MapOp::cast: return cast_value(a, node(n.operands[0]).type, n.type);
    case MapOp::round_to: return round_trip(n.dtype, n.type, a);
    case MapOp::philox_word: return emit_philox_word(b_, a, b, operands[2]);
  }
  return nullptr;
}

llvm::Value* KernelEmitter::cast_value(llvm::Value* value, Type from, Type to) {
  const int width = value->getType()->isVectorTy()
                        ? static_cast<int>(llvm::cast<llvm::FixedVectorType>(value->getType())->getNumElements())
                        : 1;
  llvm::Type* const type = llvm_type(to, width);
  const bool from_float = from == Type::f32 || from == Type::f64;
  const bool to_float = to == Type::f32 || to == Type::f64;
  if (from_float && to_float) return b_.CreateFPCast(value, type);
  if (to_float) return from == Type::boolean ? b_.CreateUIToFP(value, type) : b_.CreateSIToFP(value, type);
  if (from_float && to == Type::boolean) return b_.CreateFCmpUNE(value, llvm::Constant::getNullValue(value->getType()));
  if (from_float)
    return from == Type::f32 ? emit_from_f32(b_, data_type_of(to), value, target_)
                             : emit_from_f64(b_, data_type_of(to), value, target_);
  if (to == Type::boolean) return b_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
  return from == Type::boolean ? b_.CreateZExt(value, type) : b_.CreateSExtOrTrunc(value, type);
}

llvm::Value* KernelEmitter::to_compute(DataType dtype, llvm::Value* raw) {
  switch (kernel::compute_type(dtype)) {
    case Type::f64:
    case Type::s32:
    case Type::s64: return raw;
    case Type::boolean: return b_.CreateICmpNE(raw, llvm::Constant::getNullValue(raw->getType()));
    case Type::f32: return emit_to_f32(b_, dtype, raw, target_);
  }
  return nullptr;
}

llvm::Value* KernelEmitter::to_storage(DataType dtype, Type type, llvm::Value* value) {
  switch (type) {
    case Type::f32: return emit_from_f32(b_, dtype, value, target_);
    case Type::f64: return emit_from_f64(b_, dtype, value, target_);
    case Type::boolean: {
      const int width = value->getType()->isVectorTy()
                            ? static_cast<int>(llvm::cast<llvm::FixedVectorType>(value->getType())->getNumElements())
                            : 1;
      return b_.CreateZExt(value, with_width(b_.getInt8Ty(), width));
    }
    default: return value;
  }
}

// As it would read back from memory.
llvm::Value* KernelEmitter::round_trip(DataType dtype, Type type, llvm::Value* value) {
  llvm::Value* const stored = to_storage(dtype, type, value);
  return type == Type::f64 ? emit_to_f64(b_, dtype, stored, target_) : emit_to_f32(b_, dtype, stored, target_);
}

LaneStep KernelEmitter::lane_step(int arg, int64_t stride) const {
  if (rows_in_lanes()) return schedule_.lane_steps[static_cast<size_t>(arg)];
  return stride == 0 ? LaneStep::none : stride == 1 ? LaneStep::one : LaneStep::other;
}

llvm::Value* KernelEmitter::lane_addresses(llvm::Value* first, int arg, const Lanes& lanes, int64_t stride) {
  auto* const words = llvm::FixedVectorType::get(b_.getInt64Ty(), static_cast<unsigned>(lanes.width));
  llvm::Value* const bytes =
      rows_in_lanes() ? bytes_to_next_row(arg) : i64(stride * bytes_of(kernel_.args[static_cast<size_t>(arg)].dtype, 1));
  return b_.CreateGEP(b_.getInt8Ty(), first, b_.CreateMul(b_.CreateStepVector(words), widen(bytes, lanes.width)));
}

llvm::Value* KernelEmitter::load_arg(llvm::Value* pointer, int arg, const Lanes& lanes, int64_t stride) {
  const DataType dtype = kernel_.args[static_cast<size_t>(arg)].dtype;
  if (bits_of(dtype) < 8)
    return to_compute(dtype, load_nibbles(pointer, kernel_.args[static_cast<size_t>(arg)], lanes, stride));
  llvm::Type* const scalar = storage_type(context_, dtype);
  const auto align = llvm::Align(static_cast<uint64_t>(bytes_of(dtype, 1)));
  llvm::Value* const first = stride == 0 ? pointer : b_.CreateGEP(scalar, pointer, b_.CreateMul(lanes.offset, i64(stride)));
  const LaneStep step = lane_step(arg, stride);
  if (lanes.width == 1 || step == LaneStep::none)
    return widen(to_compute(dtype, b_.CreateAlignedLoad(scalar, first, align)), lanes.width);
  if (step == LaneStep::one) return load_vector(first, arg, {lanes.width, nullptr, lanes.mask});
  llvm::Type* const type = with_width(scalar, lanes.width);
  llvm::Value* const mask = lanes.mask != nullptr ? lanes.mask : widen(b_.getTrue(), lanes.width);
  return to_compute(dtype, b_.CreateMaskedGather(type, lane_addresses(first, arg, lanes, stride), align, mask,
                                                 llvm::Constant::getNullValue(type)));
}

llvm::Value* KernelEmitter::load_vector(llvm::Value* pointer, int arg, const Lanes& lanes) {
  const DataType dtype = kernel_.args[static_cast<size_t>(arg)].dtype;
  llvm::Type* const scalar = storage_type(context_, dtype);
  llvm::Type* const type = with_width(scalar, lanes.width);
  const auto align = llvm::Align(static_cast<uint64_t>(bytes_of(dtype, 1)));
  llvm::Value* const first = lanes.offset == nullptr ? pointer : b_.CreateGEP(scalar, pointer, lanes.offset);
  if (lanes.mask == nullptr) return to_compute(dtype, b_.CreateAlignedLoad(type, first, align));
  return to_compute(dtype, b_.CreateMaskedLoad(type, first, align, lanes.mask, llvm::Constant::getNullValue(type)));
}

// Two vectors of f32 become a whole line of 16-bit elements.
bool KernelEmitter::stores_in_twos(int index) const {
  const kernel::Arg& arg = kernel_.args[static_cast<size_t>(index)];
  const bool is_small = (arg.dtype == DataType::bf16 && target_.avx512_bf16) || (arg.dtype == DataType::f16 && target_.avx512);
  return is_small && width_ == 16 && !rows_in_lanes() && arg.strides.back() == 1;
}

llvm::Value* KernelEmitter::side_by_side(llvm::Value* a, llvm::Value* b) {
  std::vector<int> lanes(2 * llvm::cast<llvm::FixedVectorType>(a->getType())->getNumElements());
  std::iota(lanes.begin(), lanes.end(), 0);
  return b_.CreateShuffleVector(a, b, lanes);
}

bool KernelEmitter::streams(int arg) const {
  return streams() && std::find(schedule_.streamed.begin(), schedule_.streamed.end(), arg) != schedule_.streamed.end();
}

void KernelEmitter::mark_non_temporal(llvm::StoreInst* store) {
  auto* const one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(context_, {one}));
}

void KernelEmitter::store_arg(llvm::Value* pointer, int arg, llvm::Value* value, Type type, const Lanes& lanes,
                              int64_t stride) {
  const DataType dtype = kernel_.args[static_cast<size_t>(arg)].dtype;
  llvm::Type* const scalar = storage_type(context_, dtype);
  const auto bytes = static_cast<uint64_t>(bytes_of(dtype, 1));
  if (bits_of(dtype) < 8)
    return store_nibbles(pointer, kernel_.args[static_cast<size_t>(arg)], to_storage(dtype, type, widen(value, lanes.width)),
                         lanes, stride);
  llvm::Value* const first = stride == 0 ? pointer : b_.CreateGEP(scalar, pointer, b_.CreateMul(lanes.offset, i64(stride)));
  const LaneStep step = lane_step(arg, stride);
  if (lanes.width > 1 && step == LaneStep::one)
    return store_vector(first, arg, value, type, {lanes.width, nullptr, lanes.mask});
  llvm::Value* const raw = to_storage(dtype, type, widen(value, lanes.width));
  if (lanes.width == 1) {
    b_.CreateAlignedStore(raw, first, llvm::Align(bytes));
    return;
  }
  llvm::Value* const mask = lanes.mask != nullptr ? lanes.mask : widen(b_.getTrue(), lanes.width);
  b_.CreateMaskedScatter(raw, lane_addresses(first, arg, lanes, stride), llvm::Align(bytes), mask);
}

void KernelEmitter::store_vector(llvm::Value* pointer, int arg, llvm::Value* value, Type type, const Lanes& lanes) {
  const DataType dtype = kernel_.args[static_cast<size_t>(arg)].dtype;
  const auto bytes = static_cast<uint64_t>(bytes_of(dtype, 1));
  llvm::Value* const raw = to_storage(dtype, type, widen(value, lanes.width));
  llvm::Value* const first =
      lanes.offset == nullptr ? pointer : b_.CreateGEP(storage_type(context_, dtype), pointer, lanes.offset);
  if (lanes.mask != nullptr) {
    b_.CreateMaskedStore(raw, first, llvm::Align(bytes), lanes.mask);
    return;
  }
  const bool past_caches = streams(arg);
  llvm::StoreInst* const store =
      b_.CreateAlignedStore(raw, first, llvm::Align(past_caches ? bytes * static_cast<uint64_t>(lanes.width) : bytes));
  if (past_caches) mark_non_temporal(store);
}

}  // namespace lamina::cpu
