#include "backends/cpu/dispatch/grouped_step.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "backends/cpu/dispatch/program_checks.h"
#include "backends/cpu/dispatch/step_kinds.h"

namespace lamina::cpu {

GroupedStep::GroupedStep(GroupedProgram program, GroupEnds ends, Parts parts, std::string name)
    : program_(std::move(program)),
      ends_(std::move(ends)),
      parts_(std::move(parts)),
      name_(std::move(name)),
      dst_bytes_(aligned(static_cast<size_t>(bytes_of(program_.dtype, program_.part_rows.back() * columns())))) {
  for (const auto& part : parts_) part_bytes_ = std::max(part_bytes_, part->scratch_bytes());
}

void GroupedStep::run(std::span<void* const> args, void* scratch, const Executor& executor) const {
  auto* const part = static_cast<char*>(scratch);
  int64_t row = 0;
  ends_.for_each(args[2], program_.rows, [&](int64_t group, int64_t end) {
    const char* const weights = static_cast<const char*>(args[1]) + group * program_.to_next_matrix;
    while (row < end) {
      const int64_t rows = rows_of_next(end - row);
      compute(row, rows, weights, args, part, executor);
      row += rows;
    }
  });
  std::memset(part, 0, dst_bytes_);
  for (; row < program_.rows; ++row) store_row(part, row, args[3]);
}

// All that are left, if a product of hardly more rows computes them; else a product's own number of rows.
int64_t GroupedStep::rows_of_next(int64_t left) const {
  const std::vector<int64_t>& sizes = program_.part_rows;
  const auto next = std::ranges::lower_bound(sizes, left);
  if (next == sizes.end()) return sizes.back();
  return next == sizes.begin() || *next - left <= left / 8 ? left : *std::prev(next);
}

void GroupedStep::compute(int64_t row, int64_t rows, const char* weights, std::span<void* const> args, char* scratch,
                          const Executor& executor) const {
  const auto size = static_cast<size_t>(std::ranges::lower_bound(program_.part_rows, rows) - program_.part_rows.begin());
  const int64_t first = std::min(row, program_.rows - program_.part_rows[size]);
  const char* const src = static_cast<const char*>(args[0]) + first * program_.to_next_row;
  const bool in_place = writes_dst() && first == row;
  char* const dst = static_cast<char*>(args[3]) + bytes_of(program_.dtype, row * columns());
  parts_[size]->run(src, weights, nullptr, in_place ? dst : scratch, scratch + dst_bytes_, executor);
  if (in_place) return;
  const int64_t row_bytes = bytes_of(program_.dtype, columns());
  for (int64_t i = row; i < row + rows; ++i) store_row(scratch + (i - first) * row_bytes, i, args[3]);
}

void GroupedStep::store_row(const char* from, int64_t row, void* memory) const {
  const int64_t element = bytes_of(program_.dtype, 1), step = element * program_.column_stride;
  char* to = static_cast<char*>(memory) + row * element * program_.row_stride;
  if (program_.column_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(element * columns()));
    return;
  }
  for (int64_t i = 0; i < columns(); ++i, from += element, to += step) std::memcpy(to, from, static_cast<size_t>(element));
}

void GroupedStep::write(ProgramWriter& to) const {
  to.write(StepKind::grouped);
  to.write(program_);
  ends_.write(to);
  for (const auto& part : parts_) part->write(to);
}

std::unique_ptr<const GroupedStep> GroupedStep::read(ProgramReader& from, size_t args) {
  auto program = from.get<GroupedProgram>();
  check(program);
  require(args == 4, "the args of products of groups");
  GroupEnds ends = GroupEnds::read(from);
  Parts parts;
  for (const int64_t rows : program.part_rows) {
    parts.push_back(ProductDispatch::read(from));
    const kernel::MatmulStack& matrices = parts.back()->matrices();
    require(matrices.m == rows && matrices.n == parts.front()->matrices().n && matrices.batch.empty() && !matrices.has_bias &&
                matrices.dst.dtype == program.dtype,
            "a product of a group");
  }
  return std::make_unique<const GroupedStep>(std::move(program), std::move(ends), std::move(parts),
                                             "products of groups of rows");
}

}  // namespace lamina::cpu
