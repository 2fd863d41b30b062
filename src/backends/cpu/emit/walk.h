// Iterations over a row. A *run* covers some elements of it, iteration after iteration. A *walk* covers all elements of a row
// that belong to a call of the function, run after run. Each kind is a file, and is selected once for each emitted loop.
#pragma once

#include <functional>
#include <memory>

#include "backends/cpu/emit/body.h"

namespace lamina::cpu {

class Run : protected Part {
 public:
  virtual ~Run() = default;
  // `count` elements, starting at `begin`.
  virtual void count(const Row& row, llvm::Value* begin, int64_t count, const Body& body) const = 0;
  // A range whose length is known only at run time.
  virtual void range(const Row& row, llvm::Value* begin, llvm::Value* end, const Body& body) const = 0;

 protected:
  Run(Emission& emission, int step) : Part(emission), step_(step) {}
  const int step_;  // elements, or positions, per iteration
};
std::unique_ptr<Run> run_by_chunks(Emission& emission, int step);
std::unique_ptr<Run> run_along_lines(Emission& emission, int step);
std::unique_ptr<Run> run_across_rows(Emission& emission, int step);

class Walk : protected Part {
 public:
  virtual ~Walk() = default;
  virtual void over(const std::vector<Row*>& rows, const Body& body) const = 0;

 protected:
  explicit Walk(Emission& emission) : Part(emission) {}
};
std::unique_ptr<Walk> walk_whole(Emission& emission, const Run& run);
std::unique_ptr<Walk> walk_part(Emission& emission, const Run& run);  // the call's inner range
// The columns of it that start at `strip`.
std::unique_ptr<Walk> walk_strip(Emission& emission, const Run& run, llvm::Value* strip, bool follows_lines);
std::unique_ptr<Walk> walk_realigned(Emission& emission, int step);
// Several inner dims: a run covers the innermost. `flush`, if given, ends a block of segments.
std::unique_ptr<Walk> walk_segments(Emission& emission, const Run& run, const std::function<void()>& flush);

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
  std::unique_ptr<Run> run;

  // `strip`: null for whole rows.
  std::unique_ptr<Walk> choose(llvm::Value* strip, const std::function<void()>& flush) const;

 private:
  // Chunks begin where the lines of the streamed outputs do.
  bool follows_lines() const { return body.streams() && e_.schedule.follows_lines; }

  Emission& e_;
};

}  // namespace lamina::cpu
