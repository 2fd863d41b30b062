// Walks over a row's elements: in chunks of the 64 virtual lanes where they reduce, along the lines of a streamed output where
// they do not.
#include <algorithm>

#include "backends/cpu/emit/kernel_emitter.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;

using tuning::kLine;

// The 64 lanes at `offset`, of which the first `live` exist.
std::vector<Lanes> KernelEmitter::chunk_at(llvm::Value* offset, int live) {
  std::vector<Lanes> lanes;
  for (int start = 0; start < live; start += e_.width) {
    Lanes vector{e_.width, b_.CreateAdd(offset, i64(start)), nullptr, lanes.size()};
    if (live - start < e_.width) {
      std::vector<llvm::Constant*> bits;
      for (int lane = 0; lane < e_.width; ++lane) bits.push_back(b_.getInt1(lane < live - start));
      vector.mask = llvm::ConstantVector::get(bits);
    }
    lanes.push_back(vector);
  }
  return lanes;
}

void KernelEmitter::walk_inner(const std::vector<Row*>& rows, const Body& body, const std::function<void()>& flush) {
  segment_index_ = nullptr;
  if (!kernel_.has_row_reduction() && !kernel_.has_column_sum()) {
    if (e_.across_rows())
      walk_position_range(e_.inner_begin, e_.inner_end, body);
    else if (follows_lines())
      walk_lines(*rows.front(), e_.inner_begin, e_.inner_end, body);
    else
      walk_range(e_.inner_begin, e_.inner_end, body);
    return;
  }
  if (e_.inner_rank() > 1) {
    // Lanes follow the innermost dim; after about a block's worth of segments they are folded into the total.
    const int64_t run = std::max<int64_t>(kernel_.extents.back(), 1);
    const int64_t segments_per_block = std::max<int64_t>(1, kBlock / run);
    llvm::AllocaInst* const done = e_.alloca_at_entry(b_.getInt64Ty());
    b_.CreateStore(i64(0), done);
    walk_segments(rows, static_cast<size_t>(kernel_.outer_rank), body, [&] {
      llvm::Value* const count = b_.CreateAdd(b_.CreateLoad(b_.getInt64Ty(), done), i64(1));
      b_.CreateStore(count, done);
      if (!flush) return;
      llvm::Value* const full = b_.CreateICmpEQ(b_.CreateURem(count, i64(segments_per_block)), i64(0));
      e_.when(full, flush);
    });
    for (Row* row : rows) row->segment = row->pointers;
    segment_index_ = nullptr;
    if (flush) flush();
    return;
  }
  if (schedule_.realigns && streams())
    walk_realigned(body);
  else if (strip_ != nullptr)
    walk_strip(*rows.front(), body);
  else if (schedule_.split && follows_lines())
    walk_lines(*rows.front(), e_.inner_begin, e_.inner_end, body);
  else if (schedule_.split)
    walk_range(e_.inner_begin, e_.inner_end, body);
  else
    walk_run(*rows.front(), i64(0), kernel_.row_size(), body);
}

// A strip of columns of one row. Where walks follow the lines of an output, which begin at other elements in each row, so does
// a strip, and each row's lies a line further to the left than the row's before it: a column's rows keep their order.
void KernelEmitter::walk_strip(const Row& row, const Body& body) {
  llvm::Value *const first = walk_begin(), *const past = walk_end();
  llvm::Value* const next = b_.CreateAdd(strip_, i64(schedule_.strip));
  if (!follows_lines()) return walk_range(strip_, e_.smaller(next, past), body);
  const int64_t line = kLine / bytes_of(kernel_.args[static_cast<size_t>(schedule_.streamed.front())].dtype, 1);
  llvm::Value* const shift = b_.CreateSub(to_line(row, i64(0)), b_.CreateMul(row.place, i64(line)));
  llvm::Value* const begin =
      b_.CreateSelect(b_.CreateICmpEQ(strip_, first), first, e_.smaller(b_.CreateAdd(strip_, shift), past));
  llvm::Value* const end = b_.CreateSelect(b_.CreateICmpSGE(next, past), past, e_.smaller(b_.CreateAdd(next, shift), past));
  walk_lines(row, begin, end, body);
}

// Elements from `begin` to where a line of the first streamed output begins.
llvm::Value* KernelEmitter::to_line(const Row& row, llvm::Value* begin) {
  const auto leader = static_cast<size_t>(schedule_.streamed.front());
  const int64_t bytes = bytes_of(kernel_.args[leader].dtype, 1);
  llvm::Value* const address =
      b_.CreateAdd(b_.CreatePtrToInt(row.segment[leader], b_.getInt64Ty()), b_.CreateMul(begin, i64(bytes)));
  return b_.CreateUDiv(b_.CreateAnd(b_.CreateNeg(address), i64(kLine - 1)), i64(bytes));
}

// Loops over the inner dims from `dim` on; the innermost one is a run.
void KernelEmitter::walk_segments(const std::vector<Row*>& rows, size_t dim, const Body& body,
                                  const std::function<void()>& after_segment) {
  if (dim + 1 == kernel_.extents.size()) {
    walk_run(*rows.front(), i64(0), kernel_.extents.back(), body);
    after_segment();
    return;
  }
  std::vector<std::vector<llvm::Value*>> outer_pointers, outer_bases;
  for (Row* row : rows) {
    outer_pointers.push_back(row->segment);
    outer_bases.push_back(row->index_base);
  }
  llvm::Value* const outer_index = segment_index_;
  e_.loop(i64(0), i64(kernel_.extents[dim]), i64(1), [&](llvm::Value* i) {
    for (size_t r = 0; r < rows.size(); ++r) {
      for (size_t a = 0; a < kernel_.args.size(); ++a) {
        const kernel::Arg& arg = kernel_.args[a];
        const int64_t bytes = arg.strides[dim] * bytes_of(arg.dtype, 1);
        rows[r]->segment[a] =
            bytes == 0 ? outer_pointers[r][a] : b_.CreateGEP(b_.getInt8Ty(), outer_pointers[r][a], b_.CreateMul(i, i64(bytes)));
      }
      for (size_t n = 0; n < kernel_.nodes.size(); ++n) {
        if (outer_bases[r][n] == nullptr) continue;
        rows[r]->index_base[n] =
            b_.CreateAdd(outer_bases[r][n], e_.widen(b_.CreateMul(i, i64(kernel_.nodes[n].coefficients[dim])), row_lanes_));
      }
    }
    segment_index_ = outer_index == nullptr ? i : b_.CreateAdd(b_.CreateMul(outer_index, i64(kernel_.extents[dim])), i);
    walk_segments(rows, dim + 1, body, after_segment);
  });
  for (size_t r = 0; r < rows.size(); ++r) {
    rows[r]->segment = outer_pointers[r];
    rows[r]->index_base = outer_bases[r];
  }
  segment_index_ = outer_index;
}

// `count` elements from `begin`: whole chunks of 64 in a loop, then the masked rest.
void KernelEmitter::walk_run(const Row& row, llvm::Value* begin, int64_t count, const Body& body) {
  if (follows_lines()) {
    walk_lines(row, begin, b_.CreateAdd(begin, i64(count)), body);
    return;
  }
  if (e_.across_rows()) return walk_positions(begin, count, body);
  const int64_t whole = count / step_ * step_;
  if (whole > 0) {
    e_.loop(begin, b_.CreateAdd(begin, i64(whole)), i64(step_), [&](llvm::Value* at) { body(chunk_at(at, step_)); });
  }
  if (count > whole) body(chunk_at(b_.CreateAdd(begin, i64(whole)), static_cast<int>(count - whole)));
}

// A range known at run time only: whole chunks, then vectors with a computed mask.
void KernelEmitter::walk_range(llvm::Value* begin, llvm::Value* end, const Body& body) {
  llvm::Value* const chunks = b_.CreateSDiv(b_.CreateSub(end, begin), i64(step_));
  llvm::Value* const rest = b_.CreateAdd(begin, b_.CreateMul(chunks, i64(step_)));
  e_.loop(begin, rest, i64(step_), [&](llvm::Value* at) { body(chunk_at(at, step_)); });
  walk_vectors(rest, end, body);
}

// A range whose chunks begin where a line of the streamed outputs does: vectors with a computed mask up to there, chunks,
// lines, and vectors again. Reductions have no place here: it is not their lanes' order.
void KernelEmitter::walk_lines(const Row& row, llvm::Value* begin, llvm::Value* end, const Body& body) {
  const int64_t bytes = bytes_of(kernel_.args[static_cast<size_t>(schedule_.streamed.front())].dtype, 1);
  llvm::Value* const line = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateAdd(begin, to_line(row, begin)), end);
  const int per_line = std::clamp(static_cast<int>(kLine / bytes), e_.width, step_);
  const auto after_whole = [&](int64_t size) { return b_.CreateAdd(line, b_.CreateAnd(b_.CreateSub(end, line), i64(-size))); };
  llvm::Value *const chunks_end = after_whole(step_), *const lines_end = after_whole(per_line);
  // Both ends share the code of the masked vectors.
  e_.loop(i64(0), i64(2), i64(1), [&](llvm::Value* part) {
    llvm::Value* const is_head = b_.CreateICmpEQ(part, i64(0));
    walk_vectors(b_.CreateSelect(is_head, begin, lines_end), b_.CreateSelect(is_head, line, end), body);
    e_.loop(b_.CreateSelect(is_head, line, chunks_end), chunks_end, i64(step_),
            [&](llvm::Value* at) { body(chunk_at(at, step_)); });
    if (per_line == step_) return;
    e_.loop(b_.CreateSelect(is_head, chunks_end, lines_end), lines_end, i64(per_line),
            [&](llvm::Value* at) { body(chunk_at(at, per_line)); });
  });
}

void KernelEmitter::walk_vectors(llvm::Value* begin, llvm::Value* end, const Body& body) {
  e_.loop(begin, end, i64(e_.width), [&](llvm::Value* at) {
    llvm::Value* mask = nullptr;
    if (e_.width > 1) {
      auto* const vector = llvm::FixedVectorType::get(b_.getInt32Ty(), static_cast<unsigned>(e_.width));
      llvm::Value* const left = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateSub(end, at), i64(e_.width));
      mask = b_.CreateICmpSLT(b_.CreateStepVector(vector),
                              b_.CreateVectorSplat(static_cast<unsigned>(e_.width), b_.CreateTrunc(left, b_.getInt32Ty())));
    }
    body({Lanes{e_.width, at, mask}});
  });
}

}  // namespace lamina::cpu
