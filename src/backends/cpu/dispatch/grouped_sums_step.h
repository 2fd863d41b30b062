// GroupedMatMul with one matrix of weights as a step: groups of columns of src by the same rows of weights, a sum over the
// entries of each group. A long group is computed in parts; each part is added to the sums before it, in the order of the
// entries. The sums are in dst if it has their type and its columns are contiguous, else in scratch memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backends/cpu/dispatch/group_ends.h"
#include "backends/cpu/dispatch/grouped_step.h"
#include "backends/cpu/dispatch/matrix_copy.h"
#include "backends/cpu/dispatch/primitive.h"
#include "backends/cpu/program/grouped_program.h"
#include "backends/cpu/program/program_writer.h"

namespace lamina::cpu {

class GroupedSumsStep final : public Primitive {
 public:
  // Of up to program.part_terms entries: the first part of a group overwrites the sums, the others are added.
  struct Parts {
    GroupedStep::Part first, next;
  };
  // `copy_out`: from sums in scratch memory to dst.
  GroupedSumsStep(GroupedSumsProgram program, GroupEnds ends, Parts parts, MatrixCopy copy_out, std::string name);
  static std::unique_ptr<const GroupedSumsStep> read(ProgramReader& from, size_t args);

  const std::string& name() const override { return name_; }
  size_t scratch_bytes() const override { return sum_bytes_ + part_bytes_; }
  void run(std::span<void* const> args, void* scratch, const Executor& executor) const override;
  void write(ProgramWriter& to) const override;

 private:
  void sum_group(int64_t first, int64_t end, std::span<void* const> args, char* sums, void* scratch,
                 const Executor& executor) const;
  template <typename Visit>
  void for_each_rows(const Executor& executor, const Visit& visit) const;
  void clear(char* sums, int64_t first, int64_t end) const;
  void store(char* sums, char* group, int64_t first, int64_t end) const;
  int64_t sums_row_bytes() const;
  int64_t rows() const { return parts_.first->matrices().m; }
  int64_t columns() const { return parts_.first->matrices().n; }

  const GroupedSumsProgram program_;
  const GroupEnds ends_;
  const Parts parts_;
  const MatrixCopy copy_out_;
  const std::string name_;
  size_t sum_bytes_, part_bytes_ = 0;
};

}  // namespace lamina::cpu
