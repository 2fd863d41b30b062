#include "backends/cpu/dispatch/grouped_sums_step.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cpu/dispatch/program_checks.h"
#include "backends/cpu/dispatch/step_kinds.h"
#include "backends/cpu/program/stored_places.h"
#include "interface/index_checks.h"

namespace lamina::cpu {

GroupedSumsStep::GroupedSumsStep(GroupedSumsProgram program, OpPlace place, LogicalTensor offsets, Parts parts,
                                 MatrixCopy copy_out, std::string name)
    : program_(std::move(program)),
      place_(std::move(place)),
      offsets_(std::move(offsets)),
      parts_(std::move(parts)),
      copy_out_(std::move(copy_out)),
      name_(std::move(name)),
      sum_bytes_(aligned(static_cast<size_t>(bytes_of(program_.sums, rows() * columns())))) {
  for (const auto& part : parts_) part_bytes_ = std::max(part_bytes_, part->scratch_bytes());
}

void GroupedSumsStep::run(std::span<void* const> args, void* scratch, const Executor& executor) const {
  for_each_index(offsets_, args[2], [&](int64_t group, int64_t end) { check_group_end(place_, group, end, program_.terms); });
  auto* const sums = static_cast<char*>(scratch);
  int64_t first = 0;
  for_each_index(offsets_, args[2], [&](int64_t group, int64_t end) {
    std::memset(sums, 0, sum_bytes_);
    for (size_t part = parts_.size(); first < end;) {
      while (program_.part_terms[part - 1] > end - first) --part;
      add(part - 1, first, args, sums, executor);
      first += program_.part_terms[part - 1];
    }
    store(sums, static_cast<char*>(args[3]) + group * bytes_of(program_.dtype, program_.group_stride));
  });
}

void GroupedSumsStep::add(size_t part, int64_t first, std::span<void* const> args, char* sums, const Executor& executor) const {
  const char* const src = static_cast<const char*>(args[0]) + first * program_.to_next_column;
  const char* const weights = static_cast<const char*>(args[1]) + first * program_.to_next_row;
  parts_[part]->run(src, weights, nullptr, sums, sums + sum_bytes_, executor);
}

void GroupedSumsStep::store(char* sums, char* group) const {
  const int64_t from = bytes_of(program_.sums, 1), to = bytes_of(program_.dtype, 1);
  copy_out_(sums, {from * columns(), from}, group, {to * program_.row_stride, to * program_.column_stride}, rows(), columns());
}

void GroupedSumsStep::write(ProgramWriter& to) const {
  to.write(StepKind::grouped_sums);
  to.write(program_);
  write_place(to, place_);
  write_tensor(to, offsets_);
  for (const auto& part : parts_) part->write(to);
  copy_out_.write(to);
}

std::unique_ptr<const GroupedSumsStep> GroupedSumsStep::read(ProgramReader& from, size_t args) {
  auto program = from.get<GroupedSumsProgram>();
  check(program);
  require(args == 4, "the args of sums of groups");
  OpPlace place = read_place(from);
  LogicalTensor offsets = read_tensor(from);
  require(offsets.dtype == DataType::s32 || offsets.dtype == DataType::s64, "offsets of groups");
  Parts parts;
  for (const int64_t terms : program.part_terms) {
    parts.push_back(ProductDispatch::read(from));
    const kernel::MatmulStack &matrices = parts.back()->matrices(), &first = parts.front()->matrices();
    require(matrices.k == terms && matrices.m == first.m && matrices.n == first.n && matrices.batch.empty() &&
                !matrices.has_bias && parts.back()->program().adds && matrices.dst.dtype == program.sums,
            "a product of a group");
  }
  MatrixCopy copy_out = MatrixCopy::read(from);
  return std::make_unique<const GroupedSumsStep>(std::move(program), std::move(place), std::move(offsets), std::move(parts),
                                                 std::move(copy_out), "sums of products over groups");
}

}  // namespace lamina::cpu
