#include "backends/cpu/vector/lanes.h"

#include <bit>
#include <limits>
#include <vector>

#include "backends/cpu/targets/target_hooks.h"
#include "kernels/polynomials.h"

namespace lamina::cpu {
namespace {

using llvm::Value;

constexpr double kLog2E = 0x1.71547652b82fep+0;

}  // namespace

FloatLanes::FloatLanes(llvm::IRBuilder<>& builder, llvm::Type* type)
    : b_(builder), type_(type), int_type_(nullptr), double_(type->getScalarType()->isDoubleTy()) {
  LAMINA_CHECK(double_ || type->getScalarType()->isFloatTy(), "vector mathematics is for float and double");
  LAMINA_CHECK(!builder.getFastMathFlags().any(), "fast-math flags would change bits");
  int_type_ = type->getWithNewType(builder.getIntNTy(double_ ? 64 : 32));
}

int FloatLanes::width() const {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type_);
  return vector != nullptr ? static_cast<int>(vector->getNumElements()) : 1;
}

Value* FloatLanes::constant(double value) const { return llvm::ConstantFP::get(type_, value); }

Value* FloatLanes::nan() const { return llvm::ConstantFP::getQNaN(type_); }

uint64_t FloatLanes::bits_of_float(bool is_double, double value) {
  return is_double ? std::bit_cast<uint64_t>(value) : std::bit_cast<uint32_t>(static_cast<float>(value));
}

Value* FloatLanes::estrin(std::span<const double> c, Value* x) const {
  std::vector<Value*> terms;
  for (const double coefficient : c) terms.push_back(constant(coefficient));
  for (Value* power = x; terms.size() > 1; power = mul(power, power)) {
    for (size_t i = 0; i < terms.size(); i += 2)
      terms[i / 2] = i + 1 < terms.size() ? fma(terms[i + 1], power, terms[i]) : terms[i];
    terms.resize((terms.size() + 1) / 2);
  }
  return terms.front();
}

Value* FloatLanes::where_any(Value* condition, Value* usual, const std::function<Value*()>& rare,
                             const Instructions& target) const {
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(condition->getType());
  Value* any = condition;
  if (vector != nullptr && !target.architecture->tests_masks_as_bits) {
    any = b_.CreateOrReduce(condition);
  } else if (vector != nullptr) {
    Value* const all = b_.CreateBitCast(condition, b_.getIntNTy(vector->getNumElements()));
    any = b_.CreateICmpNE(all, llvm::ConstantInt::get(all->getType(), 0));
  }
  llvm::Function* const function = b_.GetInsertBlock()->getParent();
  llvm::BasicBlock* const before = b_.GetInsertBlock();
  auto* const there = llvm::BasicBlock::Create(b_.getContext(), "rare", function);
  auto* const after = llvm::BasicBlock::Create(b_.getContext(), "usual", function);
  b_.CreateCondBr(any, there, after, llvm::MDBuilder(b_.getContext()).createUnlikelyBranchWeights());
  b_.SetInsertPoint(there);
  Value* const rare_result = rare();
  llvm::BasicBlock* const rare_end = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  llvm::PHINode* const result = b_.CreatePHI(usual->getType(), 2);
  result->addIncoming(usual, before);
  result->addIncoming(rare_result, rare_end);
  return result;
}

Value* FloatLanes::with_rare(Value* is_rare, Value* usual, const std::function<Value*()>& rare,
                             const Instructions& target) const {
  return where_any(is_rare, usual, [&] { return select(is_rare, rare(), usual); }, target);
}

Value* FloatLanes::horner(std::span<const double> c, Value* x) const {
  Value* total = constant(c.back());
  for (size_t i = c.size() - 1; i-- > 0;) total = fma(total, x, constant(c[i]));
  return total;
}

ExpReduction reduce_exp(const FloatLanes& l, Value* y, Value* low, int64_t offset, double least_k) {
  // Adding 1.5 2^mantissa_bits moves the nearest integer, plus the offset, to the lowest bits.
  const double shifter = std::ldexp(1.5, l.mantissa_bits()) + static_cast<double>(offset);
  Value* shifted = l.fma(y, l.constant(kLog2E), l.constant(shifter));
  if (std::isfinite(least_k)) shifted = l.at_least(shifted, shifter + least_k);
  Value* k = l.sub(shifted, shifter);
  Value* r = l.fma(k, l.constant(-l.pick(kLn2HighFloat, kLn2HighDouble)), y);
  Value* ln2_low = l.constant(-l.pick(kLn2LowFloat, kLn2LowDouble));
  r = low != nullptr ? l.add(r, l.fma(k, ln2_low, low)) : l.fma(k, ln2_low, r);
  return {r, k, l.bits(shifted)};
}

static Value* exp_tail(const FloatLanes& l, Value* r) {
  return l.is_double() ? l.horner(kernel::kDoublePolynomials.exp_tail, r) : l.horner(kernel::kFloatPolynomials.exp_tail, r);
}

Value* exp_polynomial(const FloatLanes& l, Value* r) {
  Value* one = l.constant(1);
  return l.fma(l.fma(exp_tail(l, r), r, one), r, one);
}

Value* expm1_polynomial(const FloatLanes& l, Value* r) { return l.fma(l.mul(exp_tail(l, r), r), r, r); }

Value* scale_by_power(const FloatLanes& l, Value* x, const ExpReduction& reduction, const Instructions& target) {
  if (target->hooks != nullptr && target->hooks->scale_by_power != nullptr) {
    if (Value* const scaled = target->hooks->scale_by_power(l.builder(), x, reduction.k)) return scaled;
  }
  // Two factors with about half of the exponent each, both normal numbers. The first product is exact, the second rounds.
  auto& b = l.builder();
  Value* mantissa_bits = l.int_constant(static_cast<uint64_t>(l.mantissa_bits()));
  Value* half = b.CreateLShr(reduction.bits, 1);
  Value* first = l.from_bits(b.CreateShl(half, mantissa_bits));
  Value* second = l.from_bits(b.CreateShl(b.CreateSub(reduction.bits, half), mantissa_bits));
  return l.mul(l.mul(x, first), second);
}

Value* power_field(const FloatLanes& l, const ExpReduction& reduction) {
  return l.builder().CreateShl(reduction.bits, l.int_constant(static_cast<uint64_t>(l.mantissa_bits())));
}

Value* power(const FloatLanes& l, const ExpReduction& reduction) { return l.from_bits(power_field(l, reduction)); }

LogReduction reduce_log(const FloatLanes& l, Value* x, bool may_be_subnormal) {
  auto& b = l.builder();
  const double smallest_normal = std::ldexp(1.0, 1 - l.bias());
  const int lift = l.mantissa_bits() + 1;
  Value* tiny = may_be_subnormal ? l.less(x, smallest_normal) : nullptr;
  if (tiny != nullptr) x = l.select(tiny, l.mul(x, std::ldexp(1.0, lift)), x);

  Value* mantissa_bits = l.int_constant(static_cast<uint64_t>(l.mantissa_bits()));
  Value* bits = l.bits(x);
  Value* k_int = b.CreateAShr(b.CreateSub(bits, l.int_constant(l.bits_of(std::sqrt(0.5)))), mantissa_bits);
  Value* f = l.sub(l.from_bits(b.CreateSub(bits, b.CreateShl(k_int, mantissa_bits))), 1.0);
  Value* k = nullptr;
  if (l.is_double()) {  // converting i64 to double is slow on many machines; an exponent fits the low bits of 1.5 2^52
    const double shifter = 0x1.8p52;
    k = l.sub(l.from_bits(b.CreateAdd(k_int, l.int_constant(l.bits_of(shifter)))), shifter);
  } else {
    k = b.CreateSIToFP(k_int, l.type());
  }
  if (tiny != nullptr) k = l.select(tiny, l.sub(k, lift), k);
  return {f, k, k_int};
}

}  // namespace lamina::cpu
