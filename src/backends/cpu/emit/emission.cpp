#include "backends/cpu/emit/emission.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "backends/cpu/emit/nibbles.h"
#include "backends/cpu/targets/isa/target_hooks.h"
#include "backends/cpu/vector/simple_map.h"

namespace lamina::cpu {

using kernel::Type;

namespace {

llvm::Function* make_function(llvm::Module& module, const std::string& symbol, const Instructions& target, int vector_bits) {
  llvm::LLVMContext& context = module.getContext();
  auto* const pointer = llvm::PointerType::getUnqual(context);
  auto* const word = llvm::Type::getInt64Ty(context);
  auto* const type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, word, word, word, word, pointer, pointer}, false);
  auto* const function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->getArg(6)->addAttr(llvm::Attribute::NoAlias);
  function->getArg(6)->addAttr(llvm::Attribute::getWithAlignment(context, llvm::Align(kLiveAlignment)));
  target.architecture->hooks->mark(*function, target, vector_bits);
  return function;
}

}  // namespace

llvm::Type* with_lanes(llvm::Type* scalar, int lanes) {
  return lanes == 1 ? scalar : llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes));
}

int lanes_of(const llvm::Type* type) {
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return vector == nullptr ? 1 : static_cast<int>(vector->getNumElements());
}

Emission::Emission(llvm::Module& module, const std::string& symbol, const kernel::Kernel& kernel_in,
                   const Schedule& schedule_in, const Instructions& target_in)
    : kernel(kernel_in),
      schedule(schedule_in),
      plan(kernel, loop_policy(kernel, schedule)),
      live(live_values(plan, schedule)),
      target(target_in),
      context(module.getContext()),
      wide(kernel.computes_in_f64()),
      width(std::min(kVirtualLanes, schedule.vector_bits / (wide ? 64 : 32))),
      group(schedule.transposed ? schedule.rows_per_group : 1),
      function(make_function(module, symbol, target, schedule.vector_bits)),
      b(llvm::BasicBlock::Create(context, "entry", function)),
      call(function->getArg(0)),
      row_begin(function->getArg(1)),
      row_end(function->getArg(2)),
      inner_begin(function->getArg(3)),
      inner_end(function->getArg(4)),
      column_sums(function->getArg(5)),
      live_memory(function->getArg(6)) {
  if (live.bytes == 0 || !live.is_on_stack) return;
  llvm::AllocaInst* const on_stack = alloca_at_entry(llvm::ArrayType::get(b.getInt8Ty(), static_cast<uint64_t>(live.bytes)));
  on_stack->setAlignment(llvm::Align(kLiveAlignment));
  live_memory = on_stack;
}

LaneStep Emission::lane_step(int arg, int64_t stride) const {
  if (across_rows()) return schedule.lane_steps[static_cast<size_t>(arg)];
  return stride == 0 ? LaneStep::none : stride == 1 ? LaneStep::one : LaneStep::other;
}

void Emission::loop(llvm::Value* begin, llvm::Value* end, llvm::Value* step, const std::function<void(llvm::Value*)>& body) {
  llvm::BasicBlock* const before = b.GetInsertBlock();
  auto* const head = llvm::BasicBlock::Create(context, "loop", function);
  auto* const after = llvm::BasicBlock::Create(context, "after", function);
  b.CreateCondBr(b.CreateICmpSLT(begin, end), head, after);
  b.SetInsertPoint(head);
  llvm::PHINode* const i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(begin, before);
  body(i);
  llvm::Value* const next = b.CreateAdd(i, step, "", true, true);
  i->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, end), head, after);
  b.SetInsertPoint(after);
}

void Emission::when(llvm::Value* condition, const std::function<void()>& body) {
  auto* const then = llvm::BasicBlock::Create(context, "then", function);
  auto* const after = llvm::BasicBlock::Create(context, "after", function);
  b.CreateCondBr(condition, then, after);
  b.SetInsertPoint(then);
  body();
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

llvm::Value* Emission::choose(llvm::Value* condition, const std::function<llvm::Value*()>& then,
                              const std::function<llvm::Value*()>& otherwise) {
  const std::array blocks{llvm::BasicBlock::Create(context, "then", function),
                          llvm::BasicBlock::Create(context, "otherwise", function)};
  auto* const after = llvm::BasicBlock::Create(context, "after", function);
  b.CreateCondBr(condition, blocks[0], blocks[1]);
  std::array<std::pair<llvm::Value*, llvm::BasicBlock*>, 2> results;
  for (size_t i = 0; i < blocks.size(); ++i) {
    b.SetInsertPoint(blocks[i]);
    llvm::Value* const value = i == 0 ? then() : otherwise();
    results[i] = {value, b.GetInsertBlock()};
    b.CreateBr(after);
  }
  b.SetInsertPoint(after);
  llvm::PHINode* const result = b.CreatePHI(results[0].first->getType(), 2);
  for (const auto& [value, block] : results) result->addIncoming(value, block);
  return result;
}

llvm::AllocaInst* Emission::alloca_at_entry(llvm::Type* type) {
  llvm::BasicBlock& entry = function->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  return at_entry.CreateAlloca(type);
}

llvm::Type* Emission::type(Type type, int lanes) const {
  switch (type) {
    case Type::f32: return with_lanes(llvm::Type::getFloatTy(context), lanes);
    case Type::f64: return with_lanes(llvm::Type::getDoubleTy(context), lanes);
    case Type::boolean: return with_lanes(llvm::Type::getInt1Ty(context), lanes);
    default: break;
  }
  return with_lanes(llvm::Type::getIntNTy(context, static_cast<unsigned>(bits_of(kernel::data_type_of(type)))), lanes);
}

llvm::Value* Emission::widen(llvm::Value* scalar, int lanes) {
  return lanes == 1 || scalar->getType()->isVectorTy() ? scalar : b.CreateVectorSplat(static_cast<unsigned>(lanes), scalar);
}

llvm::Value* Emission::fma(llvm::Value* x, llvm::Value* y, llvm::Value* z) {
  return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
}

llvm::Value* Emission::maximum(llvm::Value* x, llvm::Value* y) { return emit_maximum(b, x, y); }
llvm::Value* Emission::minimum(llvm::Value* x, llvm::Value* y) { return emit_minimum(b, x, y); }

llvm::Value* Emission::side_by_side(llvm::Value* x, llvm::Value* y) {
  std::vector<int> lanes(2 * llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements());
  std::iota(lanes.begin(), lanes.end(), 0);
  return b.CreateShuffleVector(x, y, lanes);
}

llvm::Value* Emission::side_by_side(ValueList vectors) {
  while (vectors.size() > 1) {
    const size_t half = vectors.size() / 2;
    for (size_t i = 0; i < half; ++i) vectors[i] = side_by_side(vectors[2 * i], vectors[2 * i + 1]);
    vectors.resize(half);
  }
  return vectors[0];
}

ValueList Emission::row_position(llvm::Value* row) {
  const auto outer = static_cast<size_t>(kernel.outer_rank);
  ValueList position(outer, row);
  llvm::Value* rest = row;
  for (size_t d = outer; d-- > 1;) {
    llvm::Value* const extent = call_word(kernel.args.size() + d);
    position[d] = b.CreateURem(rest, extent);
    rest = b.CreateUDiv(rest, extent);
  }
  if (outer > 0) position[0] = rest;
  return position;
}

// No store of the function changes the call, so that loops of rows load it once.
llvm::Value* Emission::call_word(size_t i, llvm::Type* type) {
  llvm::LoadInst* const word = b.CreateLoad(type, b.CreateConstGEP1_64(b.getInt64Ty(), call, i));
  word->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context, {}));
  return word;
}

llvm::Value* Emission::row_pointer(int arg, const ValueList& position) {
  const auto outer = static_cast<size_t>(kernel.outer_rank), a = static_cast<size_t>(arg);
  llvm::Value* pointer = call_word(a, b.getPtrTy());
  if (bits_of(kernel.args[a].dtype) < 8) pointer = nibble_address(b, pointer);
  for (size_t d = 0; d < outer; ++d) {
    if (kernel.args[a].strides[d] == 0) continue;
    llvm::Value* const bytes = call_word(kernel.args.size() + outer + a * outer + d);
    pointer = b.CreateGEP(b.getInt8Ty(), pointer, b.CreateMul(position[d], bytes));
  }
  return pointer;
}

llvm::Value* Emission::row_index(const kernel::Node& index, const ValueList& position) {
  llvm::Value* base = i64(0);
  for (size_t d = 0; d < position.size(); ++d) base = b.CreateAdd(base, b.CreateMul(position[d], i64(index.coefficients[d])));
  return base;
}

llvm::Value* Emission::bytes_to_next_row(int arg) {
  const auto outer = static_cast<size_t>(kernel.outer_rank);
  return call_word(kernel.args.size() + outer + static_cast<size_t>(arg) * outer + outer - 1);
}

}  // namespace lamina::cpu
