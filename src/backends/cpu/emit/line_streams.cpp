// Rows that follow each other without a gap, but do not fill whole lines of 64 bytes, leave as one stream: a line is put
// together from the ends of two neighbouring vectors by a permutation, the first of a row from the end of the row before it.
// The walk itself begins with the row and takes the same iterations in each. Only a thread's first and last line, of which
// others write a part, are written through the caches.
//
// Of a row's vectors v(0), v(1), ... the k-th line has the last `fill` elements of v(k - 1) and the first of v(k), `fill` being
// the elements of the first line that belong to the row before.
#include "backends/cpu/emit/line_streams.h"

#include <numeric>

namespace lamina::cpu {

llvm::AllocaInst* LineStreams::last_vector(int arg) {
  if (ends_.empty()) ends_.assign(kernel_.args.size(), nullptr);
  llvm::AllocaInst*& end = ends_[static_cast<size_t>(arg)];
  if (end == nullptr) end = e_.alloca_at_entry(e_.type(lane_type(), e_.width));
  return end;
}

// Elements between the line's begin and `pointer`.
llvm::Value* LineStreams::fill_at(int arg, llvm::Value* pointer) {
  const int64_t bytes = bytes_of(kernel_.args[static_cast<size_t>(arg)].dtype, 1);
  return b_.CreateAnd(b_.CreateUDiv(b_.CreatePtrToInt(pointer, b_.getInt64Ty()), i64(bytes)), i64(e_.width - 1));
}

// first, first + step, ... as a permutation takes them.
llvm::Value* LineStreams::lane_numbers(llvm::Value* first, int64_t step) {
  llvm::Type* const number = e_.wide ? b_.getInt64Ty() : b_.getInt32Ty();
  llvm::Value* const all = e_.widen(b_.CreateTrunc(first, number), e_.width);
  return step == 0 ? all : b_.CreateAdd(b_.CreateStepVector(all->getType()), all);
}

llvm::Value* LineStreams::lanes_below(llvm::Value* count) {
  return b_.CreateICmpSLT(lane_numbers(i64(0)), lane_numbers(count, 0));
}

// The last `fill` elements of `before`, then the first of `next`.
llvm::Value* LineStreams::join_at(llvm::Value* fill, llvm::Value* before, llvm::Value* next) {
  const auto permute = e_.wide ? llvm::Intrinsic::x86_avx512_vpermi2var_pd_512 : llvm::Intrinsic::x86_avx512_vpermi2var_ps_512;
  return b_.CreateIntrinsic(permute, {}, {before, lane_numbers(b_.CreateSub(i64(e_.width), fill)), next});
}

void LineStreams::store_line(llvm::Value* address, int arg, llvm::Value* line, llvm::Value* mask) {
  memory_.store_vector(address, {arg, lane_type(), mask == nullptr}, line, {e_.width, nullptr, mask});
}

void LineStreams::append(const Row& row, int arg, llvm::Value* value, const Lanes& at) {
  const kernel::Arg& a = kernel_.args[static_cast<size_t>(arg)];
  llvm::AllocaInst* const end = last_vector(arg);
  llvm::Value* const pointer = row.pointers[static_cast<size_t>(arg)];
  llvm::Value* const fill = fill_at(arg, pointer);
  llvm::Value* const before = b_.CreateLoad(end->getAllocatedType(), end);
  value = e_.widen(value, e_.width);
  llvm::Value* const line = join_at(fill, before, value);
  llvm::Value* const address =
      b_.CreateGEP(b_.getInt8Ty(), pointer, b_.CreateMul(b_.CreateSub(at.offset, fill), i64(bytes_of(a.dtype, 1))));
  if (at.mask != nullptr) {
    const int live = static_cast<int>(kernel_.row_size() % e_.width);
    e_.when(b_.CreateICmpSGE(b_.CreateAdd(fill, i64(live)), i64(e_.width)), [&] { store_line(address, arg, line, nullptr); });
    std::vector<int> last(static_cast<size_t>(e_.width));
    std::iota(last.begin(), last.end(), live);
    b_.CreateStore(b_.CreateShuffleVector(before, value, last), end);
    return;
  }
  if (at.begins_row) {
    llvm::Value* const is_shared = b_.CreateAnd(b_.CreateICmpEQ(row.number, e_.row_begin), b_.CreateICmpNE(fill, i64(0)));
    e_.when(is_shared, [&] { store_line(address, arg, line, b_.CreateNot(lanes_below(fill))); });
    e_.when(b_.CreateNot(is_shared), [&] { store_line(address, arg, line, nullptr); });
  } else {
    store_line(address, arg, line, nullptr);
  }
  b_.CreateStore(value, end);
}

void LineStreams::end() {
  if (ends_.empty()) return;
  const ValueList position = e_.row_position(e_.row_end);
  for (const int arg : schedule_.streamed) {
    if (ends_[static_cast<size_t>(arg)] == nullptr) continue;
    llvm::Value* const pointer = e_.row_pointer(arg, position);
    llvm::Value* const fill = fill_at(arg, pointer);
    llvm::Value* const before = b_.CreateLoad(e_.type(lane_type(), e_.width), last_vector(arg));
    llvm::Value* const address =
        b_.CreateGEP(b_.getInt8Ty(), pointer,
                     b_.CreateMul(b_.CreateNeg(fill), i64(bytes_of(kernel_.args[static_cast<size_t>(arg)].dtype, 1))));
    store_line(address, arg, join_at(fill, before, before), lanes_below(fill));
  }
}

}  // namespace lamina::cpu
