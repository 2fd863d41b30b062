// What the emitters of products share: a function under construction, with loops over counts and branches.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cpu/llvm/headers.h"
#include "backends/cpu/product/emit_result_map.h"
#include "backends/cpu/targets/isa/target_hooks.h"
#include "backends/cpu/targets/target.h"
#include "backends/cpu/vector/convert.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

inline int lane_bits_of(kernel::Type type) { return type == kernel::Type::f64 ? 64 : 32; }

// One per letter: p, a pointer; w, a word of 64 bits.
inline std::vector<llvm::Type*> parameter_types(llvm::LLVMContext& context, std::string_view letters) {
  std::vector<llvm::Type*> types;
  for (const char letter : letters)
    types.push_back(letter == 'p' ? static_cast<llvm::Type*>(llvm::PointerType::getUnqual(context))
                                  : llvm::Type::getInt64Ty(context));
  return types;
}

// A function under construction. Its parameters have the types `parameters`.
class ProductFunction {
 public:
  using Values = std::vector<llvm::Value*>;

  ProductFunction(llvm::Module& module, const std::string& symbol, const std::vector<llvm::Type*>& parameters,
                  const Instructions& target, int vector_bits, kernel::Type type, int lane_bits)
      : function(llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(module.getContext()), parameters, false),
                                        llvm::Function::ExternalLinkage, symbol, module)),
        b(llvm::BasicBlock::Create(module.getContext(), "entry", function)),
        scalar(type == kernel::Type::f64   ? b.getDoubleTy()
               : type == kernel::Type::s32 ? static_cast<llvm::Type*>(b.getInt32Ty())
                                           : b.getFloatTy()),
        lanes(vector_bits / lane_bits),
        vector(llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes))),
        instructions(target) {
    function->addFnAttr(llvm::Attribute::NoUnwind);
    target.architecture->hooks->mark(*function, target, vector_bits);
  }

  llvm::Function* const function;
  llvm::IRBuilder<> b;
  llvm::Type* const scalar;
  const int lanes;
  llvm::Type* const vector;
  const Instructions& instructions;

  llvm::Value* arg(unsigned i) { return function->getArg(i); }
  llvm::Value* i64(int64_t value) { return b.getInt64(static_cast<uint64_t>(value)); }
  int64_t vector_bytes() const { return static_cast<int64_t>(vector->getPrimitiveSizeInBits()) / 8; }
  llvm::Value* at(llvm::Value* pointer, llvm::Value* bytes) { return b.CreateGEP(b.getInt8Ty(), pointer, bytes); }
  llvm::Value* load(llvm::Type* type, llvm::Value* pointer) { return b.CreateAlignedLoad(type, pointer, alignment()); }
  // A vector whose first `count` lanes are in memory; the others are 0.
  llvm::Value* load_first(int count, llvm::Value* pointer) {
    llvm::Value* loaded = llvm::Constant::getNullValue(vector);
    for_each_piece(count, [&](int first, int piece) {
      llvm::Value* const part =
          load(llvm::FixedVectorType::get(scalar, static_cast<unsigned>(piece)), element_at(scalar, pointer, first));
      loaded = b.CreateInsertVector(vector, loaded, part, i64(first));
    });
    return loaded;
  }
  // Entry `number` of an array of words of 64 bits.
  llvm::Value* word_at(llvm::Value* array, int number, llvm::Type* type) {
    return b.CreateLoad(type, b.CreateConstGEP1_64(b.getInt64Ty(), array, static_cast<uint64_t>(number)));
  }
  void store(llvm::Value* value, llvm::Value* pointer) { b.CreateAlignedStore(value, pointer, alignment()); }
  void store_first(int count, llvm::Value* value, llvm::Value* pointer) {
    llvm::Type* const element = value->getType()->getScalarType();
    for_each_piece(count, [&](int first, int piece) {
      auto* const type = llvm::FixedVectorType::get(element, static_cast<unsigned>(piece));
      store(b.CreateExtractVector(type, value, i64(first)), element_at(element, pointer, first));
    });
  }
  // Stored elements, as many as `type` has lanes.
  llvm::Value* load_elements(DataType dtype, llvm::Type* type, llvm::Value* pointer) {
    return b.CreateAlignedLoad(storage_for(dtype, type), pointer, alignment_of(dtype));
  }
  void store_elements(DataType dtype, llvm::Value* elements, llvm::Value* pointer) {
    b.CreateAlignedStore(elements, pointer, alignment_of(dtype));
  }
  // Stored elements as `type`, a scalar or vector of `scalar`.
  llvm::Value* load_converted(DataType dtype, llvm::Type* type, llvm::Value* pointer) {
    llvm::Value* const raw = load_elements(dtype, type, pointer);
    return raw->getType() == type ? raw : emit_to_f32(b, dtype, raw, instructions);
  }
  void prefetch(llvm::Value* pointer, bool writes = false) {
    b.CreateIntrinsic(llvm::Intrinsic::prefetch, {b.getPtrTy()},
                      {pointer, b.getInt32(writes ? 1 : 0), b.getInt32(3), b.getInt32(1)});
  }
  // Into the second-level cache.
  void prefetch_second(llvm::Value* pointer) {
    b.CreateIntrinsic(llvm::Intrinsic::prefetch, {b.getPtrTy()}, {pointer, b.getInt32(0), b.getInt32(2), b.getInt32(1)});
  }
  void prefetch_weights(llvm::Value* pointer, bool to_first) { to_first ? prefetch(pointer) : prefetch_second(pointer); }

  // Both branches give values of the same number and types.
  Values either(llvm::Value* condition, const std::function<Values()>& then, const std::function<Values()>& otherwise) {
    auto *const yes = block("then"), *const no = block("else"), *const after = block("after");
    b.CreateCondBr(condition, yes, no);
    b.SetInsertPoint(yes);
    const Values first = then();
    llvm::BasicBlock* const end_of_first = b.GetInsertBlock();
    b.CreateBr(after);
    b.SetInsertPoint(no);
    const Values second = otherwise();
    llvm::BasicBlock* const end_of_second = b.GetInsertBlock();
    b.CreateBr(after);
    b.SetInsertPoint(after);
    Values joined;
    for (size_t i = 0; i < first.size(); ++i) {
      llvm::PHINode* const phi = b.CreatePHI(first[i]->getType(), 2);
      phi->addIncoming(first[i], end_of_first);
      phi->addIncoming(second[i], end_of_second);
      joined.push_back(phi);
    }
    return joined;
  }

  // Repeats `body`, which maps the state of one iteration to that of the next, `count` times.
  Values repeat(llvm::Value* count, Values state, const std::function<Values(const Values&)>& body) {
    llvm::BasicBlock* const before = b.GetInsertBlock();
    auto *const head = block("loop"), *const after = block("end");
    b.CreateCondBr(b.CreateICmpSGT(count, i64(0)), head, after);
    b.SetInsertPoint(head);
    state.push_back(count);
    std::vector<llvm::PHINode*> phis;
    Values current;
    for (llvm::Value* value : state) {
      phis.push_back(b.CreatePHI(value->getType(), 2));
      phis.back()->addIncoming(value, before);
      current.push_back(phis.back());
    }
    llvm::Value* const left = current.back();
    current.pop_back();
    Values next = body(current);
    next.push_back(b.CreateSub(left, i64(1), "", true, true));
    llvm::BasicBlock* const last = b.GetInsertBlock();
    b.CreateCondBr(b.CreateICmpNE(next.back(), i64(0)), head, after);
    b.SetInsertPoint(after);
    Values result;
    for (size_t i = 0; i < phis.size(); ++i) {
      phis[i]->addIncoming(next[i], last);
      llvm::PHINode* const phi = b.CreatePHI(state[i]->getType(), 2);
      phi->addIncoming(state[i], before);
      phi->addIncoming(next[i], last);
      result.push_back(phi);
    }
    result.pop_back();
    return result;
  }

 private:
  llvm::BasicBlock* block(const char* name) { return llvm::BasicBlock::Create(b.getContext(), name, function); }
  // Powers of two, the largest first: each is one load or store.
  template <typename Visit>
  static void for_each_piece(int count, const Visit& visit) {
    for (int first = 0; first < count;) {
      const auto piece = static_cast<int>(std::bit_floor(static_cast<unsigned>(count - first)));
      visit(first, piece);
      first += piece;
    }
  }
  llvm::Value* element_at(llvm::Type* type, llvm::Value* pointer, int number) {
    return b.CreateConstGEP1_64(type, pointer, static_cast<uint64_t>(number));
  }
  static llvm::Align alignment() { return llvm::Align(2); }  // a word may be a pair of bf16
  static llvm::Align alignment_of(DataType dtype) { return llvm::Align(static_cast<uint64_t>(bytes_of(dtype, 1))); }
  llvm::Type* storage_for(DataType dtype, llvm::Type* type) {
    llvm::Type* const element = storage_type(b.getContext(), dtype);
    return type->isVectorTy() ? llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes)) : element;
  }
};

// A register tile under construction (ProductTileFunction): where its sums begin and end.
class TileFunction : public ProductFunction {
 public:
  TileFunction(llvm::Module& module, const std::string& symbol, const Instructions& target, int vector_bits, kernel::Type type,
               int lane_bits, int rows, int vectors, int last_lanes = 0)
      : ProductFunction(module, symbol, parameter_types(module.getContext(), "ppppwpw"), target, vector_bits, type, lane_bits),
        dst(arg(2)),
        rows_(rows),
        vectors_(vectors),
        last_lanes_(last_lanes) {}

  llvm::Value* dst;  // of the tile

  size_t sums() const { return static_cast<size_t>(rows_ * vectors_); }
  // Entry `number` of ProductStrides.
  llvm::Value* stride(int number) { return word_at(arg(5), number, b.getInt64Ty()); }

  Values first_sums() {
    return either(
        b.CreateICmpNE(arg(6), i64(0)), [&] { return loaded(dst, stride(3)); },
        [&] { return Values(sums(), llvm::Constant::getNullValue(vector)); });
  }
  // Of a vector of results that are stored as `dtype`, or as the sums if that is f32.
  int64_t stored_bytes(DataType dtype) const { return dtype == DataType::f32 ? vector_bytes() : bytes_of(dtype, lanes); }

  // Adds the bias if there is one. `state` begins with the sums. `map`: of the last block of k. `stored`: as in ProductTile.
  void store_sums(const Values& state, const ResultMap& map = {}, DataType stored = DataType::f32) {
    if (scalar->isIntegerTy()) return store_all(state);
    const Values results = either(
        b.CreateICmpNE(arg(3), llvm::ConstantPointerNull::get(b.getPtrTy())),
        [&] {
          Values added = loaded(arg(3), stride(4));
          for (size_t i = 0; i < sums(); ++i) added[i] = b.CreateFAdd(state[i], added[i]);
          return added;
        },
        [&] { return Values(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(sums())); });
    if (stored != DataType::f32) return store_all(narrowed(results, stored));
    if (map.is_empty()) return store_all(results);
    store_all(either(
        b.CreateICmpNE(stride(13), i64(0)),
        [&] {
          Values mapped;
          for (llvm::Value* const result : results) mapped.push_back(emit_result_map(b, map, result));
          return mapped;
        },
        [&] { return results; }));
  }

 private:
  Values narrowed(Values results, DataType dtype) {
    for (llvm::Value*& result : results) result = emit_from_f32(b, dtype, result, instructions);
    return results;
  }
  void store_all(const Values& results) {
    llvm::Value* const dst_row = stride(3);
    for (size_t i = 0; i < sums(); ++i) {
      const int64_t bytes = static_cast<int64_t>(results[i]->getType()->getPrimitiveSizeInBits()) / 8;
      llvm::Value* const at = vector_at(dst, dst_row, bytes, i);
      if (is_whole(i))
        store(results[i], at);
      else
        store_first(last_lanes_, results[i], at);
    }
  }
  bool is_whole(size_t sum) const {
    const auto vectors = static_cast<size_t>(vectors_);
    return last_lanes_ == 0 || sum % vectors + 1 < vectors;
  }
  llvm::Value* vector_at(llvm::Value* matrix, llvm::Value* row_stride, int64_t bytes, size_t sum) {
    const auto vectors = static_cast<size_t>(vectors_);
    llvm::Value* const row = at(matrix, b.CreateMul(row_stride, i64(static_cast<int64_t>(sum / vectors))));
    return at(row, i64(static_cast<int64_t>(sum % vectors) * bytes));
  }
  Values loaded(llvm::Value* matrix, llvm::Value* row_stride) {
    Values values;
    for (size_t i = 0; i < sums(); ++i) {
      llvm::Value* const at = vector_at(matrix, row_stride, vector_bytes(), i);
      values.push_back(is_whole(i) ? load(vector, at) : load_first(last_lanes_, at));
    }
    return values;
  }

  const int rows_, vectors_, last_lanes_;
};

}  // namespace lamina::cpu
