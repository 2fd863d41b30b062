// Iterations over a row. A *run* covers some elements of it, iteration after iteration. A *walk* covers all elements of a row
// that belong to a call of the function, run after run. Each kind is a file; PhaseWalk selects one for each emitted loop.
#pragma once

#include <functional>

#include "backends/cpu/emit/body.h"

namespace lamina::cpu {

// Covers elements from `begin` on: `count` of them, or a range whose length is known only at run time.
struct Run {
  enum class Kind { chunks, lines, across };
  Kind kind;
  int step;  // elements, or positions across rows, per iteration

  void count(Emission& e, const Row& row, llvm::Value* begin, int64_t count, const Body& body) const;
  void range(Emission& e, const Row& row, llvm::Value* begin, llvm::Value* end, const Body& body) const;
};
void run_chunks(Emission& e, int step, llvm::Value* begin, int64_t count, const Body& body);
void run_chunks(Emission& e, int step, llvm::Value* begin, llvm::Value* end, const Body& body);
void run_lines(Emission& e, int step, const Row& row, llvm::Value* begin, llvm::Value* end, const Body& body);
void run_across(Emission& e, int step, const Row& group, llvm::Value* begin, int64_t count, const Body& body);
void run_across(Emission& e, int step, const Row& group, llvm::Value* begin, llvm::Value* end, const Body& body);

// The columns of a row that start at `strip`.
void walk_strip(Emission& e, const Run& run, const Row& row, llvm::Value* strip, bool follows_lines, const Body& body);
void walk_realigned(Emission& e, int step, const Body& body);
// Several inner dims: a run covers the innermost. `flush`, if given, ends a block of segments.
void walk_segments(Emission& e, const Run& run, const std::vector<Row*>& rows, const std::function<void()>& flush,
                   const Body& body);

// A range of fewer elements than a chunk, in vectors with a computed mask.
void run_masked_vectors(Emission& e, llvm::Value* begin, llvm::Value* end, const Body& body);
// The number of elements from `begin` to the next line of the first streamed output.
llvm::Value* elements_to_line(Emission& e, const Row& row, llvm::Value* begin);
// The range of columns that a call covers.
llvm::Value* first_column(Emission& e);
llvm::Value* past_columns(Emission& e);

// The roots of a phase for some rows, and everything that a walk for them needs.
class PhaseWalk {
 public:
  PhaseWalk(Parts& parts, const std::vector<Row*>& rows, const NodeList& roots_of_phase, int phase);
  PhaseWalk(const PhaseWalk&) = delete;
  PhaseWalk& operator=(const PhaseWalk&) = delete;

  std::vector<Root> roots;
  const WalkTask task;
  const Body body;
  const Run run;

  // Walks over the rows. `strip`: the start of a strip of columns; null: whole rows. `flush`: as in walk_segments.
  void emit(llvm::Value* strip, const std::function<void()>& flush) const;

 private:
  Emission& e_;
};

}  // namespace lamina::cpu
