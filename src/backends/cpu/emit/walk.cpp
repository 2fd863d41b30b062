#include "backends/cpu/emit/walk.h"

#include <algorithm>
#include <bit>

#include "backends/cpu/emit/register_pressure.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

using kernel::NodeIndex;

namespace {

// Whole blocks, else as many positions as registers can hold values for.
int step_across(Parts& parts, const NodeList& nodes, std::span<const Root> roots) {
  Emission& e = parts.e;
  const auto transposed = [&](NodeIndex i) { return parts.transpose.transposes(e.kernel.node(i)); };
  const bool transposes = std::any_of(nodes.begin(), nodes.end(), transposed) ||
                          std::any_of(roots.begin(), roots.end(), [&](const Root& root) { return transposed(root.node); });
  return transposes ? e.group : may_spill(parts.e, nodes) ? 1 : tuning::kPositionsPerIteration * e.width / e.group;
}

// A walk without sums may use fewer vectors per iteration, which reduces the code of bodies that run vector by vector anyway:
// as many as fill a line of the narrowest output.
int step_along(Parts& parts, const NodeList& nodes, std::span<const Root> roots, size_t rows) {
  if (reduce(roots)) return kVirtualLanes;
  const Emission& e = parts.e;
  // Uses whole vectors for rows that are shorter than a chunk, because only those are streamed. A walk along lines needs
  // powers of two.
  int step = kVirtualLanes;
  const bool follows_lines = !e.schedule.streamed.empty() && e.schedule.follows_lines;
  if (const int64_t row = e.kernel.row_size(); row >= e.width && row < kVirtualLanes)
    step = follows_lines ? static_cast<int>(std::bit_floor(static_cast<uint64_t>(row)))
                         : static_cast<int>(row) / e.width * e.width;
  if (parts.values.any_takes_chunks(nodes) || (rows == 1 && !may_spill(parts.e, nodes))) return step;
  constexpr int kLineBits = 8 * static_cast<int>(tuning::kLine);
  int narrowest = 64;
  for (const kernel::Arg& arg : e.kernel.args) {
    if (arg.output && !arg.column) narrowest = std::min(narrowest, std::max(bits_of(arg.dtype), 8));
  }
  return std::clamp(kLineBits / narrowest, e.width, step);
}

WalkTask make_task(Parts& parts, const std::vector<Row*>& rows, const NodeList& roots_of_phase, std::span<Root> roots,
                   int phase) {
  WalkTask task{rows, parts.e.plan.nodes_for(roots_of_phase, phase), roots, phase, 0};
  task.step = parts.e.across_rows() ? step_across(parts, task.nodes, roots) : step_along(parts, task.nodes, roots, rows.size());
  return task;
}

}  // namespace

PhaseWalk::PhaseWalk(Parts& parts, const std::vector<Row*>& rows, const NodeList& roots_of_phase, int phase)
    : roots(parts.reductions.begin(*rows.front(), roots_of_phase, phase)),
      task(make_task(parts, rows, roots_of_phase, roots, phase)),
      body(parts, task),
      run{body.streams() && parts.e.schedule.follows_lines ? Run::Kind::lines
          : parts.e.across_rows()                          ? Run::Kind::across
                                                           : Run::Kind::chunks,
          task.step},
      e_(parts.e) {}

void PhaseWalk::emit(llvm::Value* strip, const std::function<void()>& flush) const {
  const Row& row = *task.rows.front();
  const bool is_flat = !e_.kernel.has_row_reduction() && !e_.kernel.has_column_sum();  // with any length
  if (is_flat) return run.range(e_, row, e_.inner_begin, e_.inner_end, body);
  if (e_.inner_rank() > 1) return walk_segments(e_, run, task.rows, flush, body);
  if (e_.schedule.realigns && body.streams()) return walk_realigned(e_, task.step, body);
  if (strip != nullptr) return walk_strip(e_, run, row, strip, run.kind == Run::Kind::lines, body);
  if (e_.schedule.split) return run.range(e_, row, e_.inner_begin, e_.inner_end, body);
  run.count(e_, row, e_.i64(0), e_.kernel.row_size(), body);
}

void Run::count(Emission& e, const Row& row, llvm::Value* begin, int64_t count, const Body& body) const {
  switch (kind) {
    case Kind::chunks: return run_chunks(e, step, begin, count, body);
    case Kind::lines: return run_lines(e, step, row, begin, e.b.CreateAdd(begin, e.i64(count)), body);
    case Kind::across: return run_across(e, step, row, begin, count, body);
  }
}

void Run::range(Emission& e, const Row& row, llvm::Value* begin, llvm::Value* end, const Body& body) const {
  switch (kind) {
    case Kind::chunks: return run_chunks(e, step, begin, end, body);
    case Kind::lines: return run_lines(e, step, row, begin, end, body);
    case Kind::across: return run_across(e, step, row, begin, end, body);
  }
}

}  // namespace lamina::cpu
