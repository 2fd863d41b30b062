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
  for (const auto& part : parts_) part_bytes_ = std::max(part_bytes_, part->scratch_bytes());
}

void GroupedSumsStep::run(std::span<void* const> args, void* scratch, const Executor& executor) const {
  int64_t first = 0;
  ends_.for_each(args[2], program_.terms, [&](int64_t group, int64_t end) {
    auto* const dst = static_cast<char*>(args[3]) + group * bytes_of(program_.dtype, program_.group_stride);
    auto* const sums = program_.adds_to_dst ? dst : static_cast<char*>(scratch);
    for_each_rows(executor, [&](int64_t begin, int64_t past) { clear(sums, begin, past); });
    for (size_t part = parts_.size(); first < end;) {
      while (program_.part_terms[part - 1] > end - first) --part;
      add(part - 1, first, args, sums, static_cast<char*>(scratch) + sum_bytes_, executor);
      first += program_.part_terms[part - 1];
    }
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

void GroupedSumsStep::add(size_t part, int64_t first, std::span<void* const> args, char* sums, void* scratch,
                          const Executor& executor) const {
  const char* const src = static_cast<const char*>(args[0]) + first * program_.to_next_column;
  const char* const weights = static_cast<const char*>(args[1]) + first * program_.to_next_row;
  parts_[part]->run(src, weights, nullptr, sums, scratch, executor);
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
  for (const auto& part : parts_) part->write(to);
  copy_out_.write(to);
}

std::unique_ptr<const GroupedSumsStep> GroupedSumsStep::read(ProgramReader& from, size_t args) {
  auto program = from.get<GroupedSumsProgram>();
  check(program);
  require(args == 4, "the args of sums of groups");
  GroupEnds ends = GroupEnds::read(from);
  Parts parts;
  for (const int64_t terms : program.part_terms) {
    parts.push_back(ProductDispatch::read(from));
    const kernel::MatmulStack &matrices = parts.back()->matrices(), &first = parts.front()->matrices();
    require(matrices.k == terms && matrices.m == first.m && matrices.n == first.n && matrices.batch.empty() &&
                !matrices.has_bias && parts.back()->program().adds && matrices.dst.dtype == program.sums &&
                matrices.dst.row_stride == (program.adds_to_dst ? program.row_stride : matrices.n),
            "a product of a group");
  }
  MatrixCopy copy_out = MatrixCopy::read(from);
  return std::make_unique<const GroupedSumsStep>(std::move(program), std::move(ends), std::move(parts), std::move(copy_out),
                                                 "sums of products over groups");
}

}  // namespace lamina::cpu
