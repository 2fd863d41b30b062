#include "backends/cpu/dispatch/grouped_sums_step.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cpu/dispatch/program_checks.h"
#include "backends/cpu/dispatch/step_kinds.h"

namespace lamina::cpu {

GroupedSumsStep::GroupedSumsStep(GroupedSumsProgram program, GroupEnds ends, Parts parts, MatrixCopy copy_out, std::string name)
    : program_(std::move(program)),
      ends_(std::move(ends)),
      parts_(std::move(parts)),
      copy_out_(std::move(copy_out)),
      name_(std::move(name)),
      sum_bytes_(program_.adds_to_dst ? 0 : aligned(static_cast<size_t>(rows() * sums_row_bytes()))) {
  part_bytes_ = std::max(parts_.first->scratch_bytes(), parts_.next->scratch_bytes());
}

void GroupedSumsStep::run(std::span<void* const> args, void* scratch, const Executor& executor) const {
  int64_t first = 0;
  ends_.for_each(args[2], program_.terms, [&](int64_t group, int64_t end) {
    auto* const dst = static_cast<char*>(args[3]) + group * bytes_of(program_.dtype, program_.group_stride);
    auto* const sums = program_.adds_to_dst ? dst : static_cast<char*>(scratch);
    if (first >= end) for_each_rows(executor, [&](int64_t begin, int64_t past) { clear(sums, begin, past); });
    sum_group(first, end, args, sums, static_cast<char*>(scratch) + sum_bytes_, executor);
    first = std::max(first, end);
    if (!program_.adds_to_dst) for_each_rows(executor, [&](int64_t begin, int64_t past) { store(sums, dst, begin, past); });
  });
}

int64_t GroupedSumsStep::sums_row_bytes() const {
  return bytes_of(program_.sums, program_.adds_to_dst ? program_.row_stride : columns());
}

// Calls visit(begin, end) for ranges of rows of a group, on several threads.
template <typename Visit>
void GroupedSumsStep::for_each_rows(const Executor& executor, const Visit& visit) const {
  constexpr int64_t kBytes = 1 << 16;
  const int64_t at_once = std::max<int64_t>(kBytes / std::max<int64_t>(bytes_of(program_.sums, columns()), 1), 1);
  const int64_t chunks = (rows() + at_once - 1) / at_once;
  executor.at_most(chunks).run(
      1, Scheduling::static_ranges, [&](int64_t) { return chunks; },
      [&](const Piece& piece) { visit(piece.begin * at_once, std::min(piece.end * at_once, rows())); });
}

void GroupedSumsStep::clear(char* sums, int64_t first, int64_t end) const {
  for (int64_t row = first; row < end; ++row)
    std::memset(sums + row * sums_row_bytes(), 0, static_cast<size_t>(bytes_of(program_.sums, columns())));
}

void GroupedSumsStep::sum_group(int64_t first, int64_t end, std::span<void* const> args, char* sums, void* scratch,
                                const Executor& executor) const {
  for (int64_t at = first; at < end; at += program_.part_terms) {
    const char* const src = static_cast<const char*>(args[0]) + at * program_.to_next_column;
    const char* const weights = static_cast<const char*>(args[1]) + at * program_.to_next_row;
    const GroupedStep::Part& part = at == first ? parts_.first : parts_.next;
    part->run_terms(src, weights, sums, scratch, executor, std::min(end - at, program_.part_terms));
  }
}

void GroupedSumsStep::store(char* sums, char* group, int64_t first, int64_t end) const {
  const int64_t from = bytes_of(program_.sums, 1), to = bytes_of(program_.dtype, 1), to_next_row = to * program_.row_stride;
  copy_out_(sums + first * sums_row_bytes(), {sums_row_bytes(), from}, group + first * to_next_row,
            {to_next_row, to * program_.column_stride}, end - first, columns());
}

void GroupedSumsStep::write(ProgramWriter& to) const {
  to.write(StepKind::grouped_sums);
  to.write(program_);
  ends_.write(to);
  for (const auto* const part : {&parts_.first, &parts_.next}) (*part)->write(to);
  copy_out_.write(to);
}

std::unique_ptr<const GroupedSumsStep> GroupedSumsStep::read(ProgramReader& from, size_t args) {
  auto program = from.get<GroupedSumsProgram>();
  check(program);
  require(args == 4, "the args of sums of groups");
  GroupEnds ends = GroupEnds::read(from);
  Parts parts;
  for (auto* const part : {&parts.first, &parts.next}) {
    *part = ProductDispatch::read(from);
    const kernel::MatmulStack &matrices = (*part)->matrices(), &first = parts.first->matrices();
    const ProductProgram& product = (*part)->program();
    require(matrices.k == program.part_terms && matrices.m == first.m && matrices.n == first.n && matrices.batch.empty() &&
                !matrices.has_bias && product.adds == (part == &parts.next) && matrices.dst.dtype == program.sums &&
                (product.entries == 1 || (product.copies_rows && product.copies_panels)) && !product.are_packed_ahead &&
                matrices.dst.row_stride == (program.adds_to_dst ? program.row_stride : matrices.n),
            "a product of a group");
  }
  MatrixCopy copy_out = MatrixCopy::read(from);
  return std::make_unique<const GroupedSumsStep>(std::move(program), std::move(ends), std::move(parts), std::move(copy_out),
                                                 "sums of products over groups");
}

}  // namespace lamina::cpu
