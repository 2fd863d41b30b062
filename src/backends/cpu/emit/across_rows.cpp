// The transposed schedule: a lane is a row. A *group* is as many rows as one or a few vectors have lanes. A value per row is
// a vector, and so is the value of one element of each row. The 64 virtual lanes of a row are in memory, one vector each.
//
// An arg whose elements are contiguous along a row, not across rows, is transposed in registers when it is read or written, in
// blocks with as many positions as rows. Column sums, which add row after row, use such blocks too.
#include <algorithm>

#include "backends/cpu/emit/schedules.h"
#include "backends/cpu/emit/tiles.h"
#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

namespace {

class Groups : private Part {
 public:
  explicit Groups(Emission& emission) : Part(emission), p_(emission), row_phases_(p_), tiles_(p_, row_phases_) {}
  void emit();

 private:
  int64_t groups_ahead() const;
  void emit_group(llvm::Value* first, llvm::Value* count);
  void emit_tile(llvm::Value* first, const Frame& frame);

  Parts p_;
  RowPhases row_phases_;
  Tiles tiles_;
};

// The rows of a group are consecutive along the last outer dim. A group has fewer rows at the end of that dim and at the end
// of the call's rows.
void Groups::emit() {
  llvm::Value* const extent = e_.call_word(kernel_.args.size() + static_cast<size_t>(kernel_.outer_rank) - 1);
  llvm::AllocaInst* const next = e_.alloca_at_entry(b_.getInt64Ty());
  b_.CreateStore(e_.row_begin, next);
  auto* const head = llvm::BasicBlock::Create(e_.context, "rows", e_.function);
  auto* const body = llvm::BasicBlock::Create(e_.context, "group", e_.function);
  auto* const after = llvm::BasicBlock::Create(e_.context, "after", e_.function);
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::Value* const first = b_.CreateLoad(b_.getInt64Ty(), next);
  b_.CreateCondBr(b_.CreateICmpSLT(first, e_.row_end), body, after);
  b_.SetInsertPoint(body);
  llvm::Value* const left = e_.smaller(b_.CreateSub(extent, b_.CreateURem(first, extent)), b_.CreateSub(e_.row_end, first));
  llvm::Value* const count = e_.smaller(left, i64(e_.group));
  emit_group(first, count);
  b_.CreateStore(b_.CreateAdd(first, count), next);
  b_.CreateBr(head);
  b_.SetInsertPoint(after);
}

// The distance to the group that is prefetched meanwhile.
int64_t Groups::groups_ahead() const {
  return std::max<int64_t>(1, tuning::kNeededAhead / std::max<int64_t>(1, e_.group * footprint(kernel_).read));
}

// Groups with fewer rows have separate code, with masks.
void Groups::emit_group(llvm::Value* first, llvm::Value* count) {
  llvm::Value* const is_full = b_.CreateICmpEQ(count, i64(e_.group));
  const auto full_group = [&] {
    const Row ahead = p_.rows.begin(b_.CreateAdd(first, i64(e_.group * groups_ahead())), i64(0), {.lanes = e_.group});
    emit_tile(first, {.lanes = e_.group, .group_ahead = ahead.pointers});
  };
  const auto part_of_group = [&] {
    auto* const words = llvm::FixedVectorType::get(b_.getInt64Ty(), static_cast<unsigned>(e_.group));
    llvm::Value* const mask = b_.CreateICmpSLT(b_.CreateStepVector(words), e_.widen(count, e_.group));
    emit_tile(first, {.lanes = e_.group, .rows = count, .mask = mask});
  };
  if (schedule_.whole_groups) return full_group();
  e_.when(is_full, full_group);
  e_.when(b_.CreateNot(is_full), part_of_group);
}

void Groups::emit_tile(llvm::Value* first, const Frame& frame) {
  RowStore store(e_);
  tiles_.emit({first, i64(1), e_.row_begin, &store, frame});
}

}  // namespace

void emit_across_rows(Emission& emission) { Groups(emission).emit(); }

}  // namespace lamina::cpu
