// Several inner dims: loops over the outer ones of them, with a segment, a run of the innermost dim, in each iteration. The
// lanes restart with each segment. At the end of a block (kernels/numerics.h) they are folded into the total.
#include <algorithm>

#include "backends/cpu/emit/walk.h"

namespace lamina::cpu {

namespace {

class SegmentWalk : private Part {
 public:
  SegmentWalk(Emission& emission, const Run& run, const std::function<void()>& flush, const Body& body)
      : Part(emission), run_(run), flush_(flush), body_(body) {}
  void over(const std::vector<Row*>& rows) const;

 private:
  void over_segment(const Row& row) const;
  void from_dim(const std::vector<Row*>& rows, size_t dim, const std::function<void()>& after_segment) const;
  void enter(Row& row, const Row& outer, size_t dim, llvm::Value* i) const;

  const Run& run_;
  const std::function<void()>& flush_;
  const Body& body_;
};

void SegmentWalk::over(const std::vector<Row*>& rows) const {
  const int64_t segments_per_block = numerics::runs_of_block(kernel_.extents.back());
  llvm::AllocaInst* const done = e_.alloca_at_entry(b_.getInt64Ty());
  b_.CreateStore(i64(0), done);
  from_dim(rows, static_cast<size_t>(kernel_.outer_rank), [&] {
    llvm::Value* const count = b_.CreateAdd(b_.CreateLoad(b_.getInt64Ty(), done), i64(1));
    b_.CreateStore(count, done);
    if (!flush_) return;
    llvm::Value* const full = b_.CreateICmpEQ(b_.CreateURem(count, i64(segments_per_block)), i64(0));
    e_.when(full, flush_);
  });
  for (Row* row : rows) row->segment = row->pointers;
  if (flush_) flush_();
}

// A segment of several blocks is folded after each of them; the caller folds the last one.
void SegmentWalk::over_segment(const Row& row) const {
  const int64_t size = kernel_.extents.back(), full = flush_ && size > kBlock ? (size - 1) / kBlock * kBlock : 0;
  if (full > 0) {
    e_.loop(i64(0), i64(full), i64(kBlock), [&](llvm::Value* start) {
      run_.count(e_, row, start, kBlock, body_);
      flush_();
    });
  }
  run_.count(e_, row, i64(full), size - full, body_);
}

// Loops over the inner dims from `dim` on. The innermost one is a segment.
void SegmentWalk::from_dim(const std::vector<Row*>& rows, size_t dim, const std::function<void()>& after_segment) const {
  if (dim + 1 == kernel_.extents.size()) {
    over_segment(*rows.front());
    after_segment();
    return;
  }
  std::vector<Row> outer;
  for (const Row* row : rows) outer.push_back(*row);
  e_.loop(i64(0), i64(kernel_.extents[dim]), i64(1), [&](llvm::Value* i) {
    for (size_t r = 0; r < rows.size(); ++r) enter(*rows[r], outer[r], dim, i);
    llvm::Value* const before = outer[0].segment_number;
    llvm::Value* const number = before == nullptr ? i : b_.CreateAdd(b_.CreateMul(before, i64(kernel_.extents[dim])), i);
    for (Row* row : rows) row->segment_number = number;
    from_dim(rows, dim + 1, after_segment);
    body_.end_segments(dim + 1);
  });
  for (size_t r = 0; r < rows.size(); ++r) {
    rows[r]->segment = outer[r].segment;
    rows[r]->index_base = outer[r].index_base;
    rows[r]->segment_number = outer[r].segment_number;
  }
}

void SegmentWalk::enter(Row& row, const Row& outer, size_t dim, llvm::Value* i) const {
  for (size_t a = 0; a < kernel_.args.size(); ++a) {
    const kernel::Arg& arg = kernel_.args[a];
    const int64_t bytes = arg.strides[dim] * bytes_of(arg.dtype, 1);
    row.segment[a] =
        bytes == 0 ? outer.segment[a] : b_.CreateGEP(b_.getInt8Ty(), outer.segment[a], b_.CreateMul(i, i64(bytes)));
  }
  for (size_t n = 0; n < kernel_.nodes.size(); ++n) {
    if (outer.index_base[n] == nullptr) continue;
    row.index_base[n] =
        b_.CreateAdd(outer.index_base[n], e_.widen(b_.CreateMul(i, i64(kernel_.nodes[n].coefficients[dim])), e_.group));
  }
}

}  // namespace

void walk_segments(Emission& e, const Run& run, const std::vector<Row*>& rows, const std::function<void()>& flush,
                   const Body& body) {
  SegmentWalk(e, run, flush, body).over(rows);
}

}  // namespace lamina::cpu
