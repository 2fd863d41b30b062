// Rows that are contiguous but do not fill whole lines of 64 bytes are stored as one stream. A line is assembled by a
// permutation from two neighbouring pieces of the row; a row's first line also contains the end of the row before it. The
// walk starts with the row and has the same iterations in each row. Only a thread's first and last line, which other threads
// write in part, are written through the caches.
//
// A piece has as many elements as a line: one vector or, for 16-bit elements, two, in the stored type. With a row's pieces
// v(0), v(1), ..., line k has the last `fill` elements of v(k - 1) and the first ones of v(k), where `fill` is the number of
// elements of the first line that belong to the row before.
#include "backends/cpu/emit/line_streams.h"

#include <numeric>

#include "backends/cpu/schedule/tuning.h"
#include "backends/cpu/targets/isa/target_hooks.h"
#include "backends/cpu/vector/convert.h"
#include "interface/status.h"

namespace lamina::cpu {

int LineStreams::lanes_of_line(int arg) const { return static_cast<int>(tuning::kLine / bytes_of(kernel_.arg(arg).dtype, 1)); }

llvm::AllocaInst* LineStreams::last_line(int arg) {
  if (ends_.empty()) ends_.assign(kernel_.args.size(), nullptr);
  llvm::AllocaInst*& end = ends_[static_cast<size_t>(arg)];
  if (end == nullptr)
    end = e_.alloca_at_entry(with_lanes(storage_type(e_.context, kernel_.arg(arg).dtype), lanes_of_line(arg)));
  return end;
}

// The number of elements between the start of the line and `pointer`.
llvm::Value* LineStreams::fill_at(int arg, llvm::Value* pointer) {
  const int64_t bytes = bytes_of(kernel_.arg(arg).dtype, 1);
  return b_.CreateAnd(b_.CreateUDiv(b_.CreatePtrToInt(pointer, b_.getInt64Ty()), i64(bytes)), i64(lanes_of_line(arg) - 1));
}

// first, first + step, ... as the index operand of a permutation of the arg's elements.
llvm::Value* LineStreams::lane_numbers(llvm::Value* first, int arg, int64_t step) {
  llvm::Type* const number = b_.getIntNTy(static_cast<unsigned>(bits_of(kernel_.arg(arg).dtype)));
  llvm::Value* const all = e_.widen(b_.CreateTrunc(first, number), lanes_of_line(arg));
  return step == 0 ? all : b_.CreateAdd(b_.CreateStepVector(all->getType()), all);
}

llvm::Value* LineStreams::lanes_below(llvm::Value* count, int arg) {
  return b_.CreateICmpSLT(lane_numbers(i64(0), arg), lane_numbers(count, arg, 0));
}

// The last `fill` elements of `before`, followed by the first elements of `next`.
llvm::Value* LineStreams::join_at(llvm::Value* fill, llvm::Value* before, llvm::Value* next, int arg) {
  const int lanes = lanes_of_line(arg);
  LAMINA_CHECK(lanes == 8 || lanes == 16 || lanes == 32, "elements of 16, 32 or 64 bits leave as a stream");
  llvm::Value* const from = lane_numbers(b_.CreateSub(i64(lanes), fill), arg);
  llvm::Type* const type = before->getType();
  llvm::Type* const words = lanes == 32 ? from->getType() : type;
  llvm::Value* const joined =
      e_.target->hooks->join_lines(b_, b_.CreateBitCast(before, words), from, b_.CreateBitCast(next, words));
  return b_.CreateBitCast(joined, type);
}

void LineStreams::append(const Row& row, const Store& to, const ValueList& vectors, const Lanes& first, bool ends_row) {
  const int arg = to.arg, lanes = lanes_of_line(arg);
  llvm::AllocaInst* const end = last_line(arg);
  llvm::Value* const pointer = row.pointers[static_cast<size_t>(arg)];
  llvm::Value* const fill = fill_at(arg, pointer);
  llvm::Value* const before = b_.CreateLoad(end->getAllocatedType(), end);
  ValueList pieces = vectors;
  pieces.resize(vectors_of_line(arg), vectors.front());  // missing vectors are not read
  llvm::Value* const piece = memory_.line_of(to, pieces);
  llvm::Value* const line = join_at(fill, before, piece, arg);
  const int64_t bytes = bytes_of(kernel_.arg(arg).dtype, 1);
  llvm::Value* const address =
      b_.CreateGEP(b_.getInt8Ty(), pointer, b_.CreateMul(b_.CreateSub(first.offset, fill), i64(bytes)));
  if (ends_row) {
    const int live = static_cast<int>(kernel_.row_size() % lanes);
    e_.when(b_.CreateICmpSGE(b_.CreateAdd(fill, i64(live)), i64(lanes)), [&] { memory_.store_line(address, line, nullptr); });
    std::vector<int> last(static_cast<size_t>(lanes));
    std::iota(last.begin(), last.end(), live);
    b_.CreateStore(b_.CreateShuffleVector(before, piece, last), end);
    return;
  }
  if (first.begins_row) {
    llvm::Value* const is_shared = b_.CreateAnd(b_.CreateICmpEQ(row.number, e_.row_begin), b_.CreateICmpNE(fill, i64(0)));
    e_.when(is_shared, [&] { memory_.store_line(address, line, b_.CreateNot(lanes_below(fill, arg))); });
    e_.when(b_.CreateNot(is_shared), [&] { memory_.store_line(address, line, nullptr); });
  } else {
    memory_.store_line(address, line, nullptr);
  }
  b_.CreateStore(piece, end);
}

void LineStreams::end() {
  if (ends_.empty()) return;
  const ValueList position = e_.row_position(e_.row_end);
  for (const int arg : schedule_.streamed) {
    llvm::AllocaInst* const end = ends_[static_cast<size_t>(arg)];
    if (end == nullptr) continue;
    llvm::Value* const pointer = e_.row_pointer(arg, position);
    llvm::Value* const fill = fill_at(arg, pointer);
    llvm::Value* const before = b_.CreateLoad(end->getAllocatedType(), end);
    llvm::Value* const address =
        b_.CreateGEP(b_.getInt8Ty(), pointer, b_.CreateMul(b_.CreateNeg(fill), i64(bytes_of(kernel_.arg(arg).dtype, 1))));
    memory_.store_line(address, join_at(fill, before, before, arg), lanes_below(fill, arg));
  }
}

}  // namespace lamina::cpu
