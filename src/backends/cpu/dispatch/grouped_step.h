// GroupedMatMul as a step: each group of rows by its own matrix. The number of rows of a group is known when it runs, so there
// are products of several numbers of rows, and a group is computed in parts. A part of another size is computed with rows
// beside it: those behind it are computed again by their own group, those before it are dropped. An element is one chain of
// products, so its bits do not depend on the parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/dispatch/group_ends.h"
#include "backends/cpu/dispatch/primitive.h"
#include "backends/cpu/dispatch/product_dispatch.h"
#include "backends/cpu/program/grouped_program.h"
#include "backends/cpu/program/program_writer.h"

namespace lamina::cpu {

class GroupedStep final : public Primitive {
 public:
  using Part = std::unique_ptr<const ProductDispatch>;
  using Parts = std::vector<Part>;
  // `parts`: of program.part_rows rows each, by one matrix, into contiguous rows.
  GroupedStep(GroupedProgram program, GroupEnds ends, Parts parts, std::string name);
  static std::unique_ptr<const GroupedStep> read(ProgramReader& from, size_t args);

  const std::string& name() const override { return name_; }
  size_t scratch_bytes() const override { return dst_bytes_ + part_bytes_; }
  void run(std::span<void* const> args, void* scratch, const Executor& executor) const override;
  void write(ProgramWriter& to) const override;

 private:
  int64_t rows_of_next(int64_t left) const;
  void compute(int64_t row, int64_t rows, const char* weights, std::span<void* const> args, char* scratch,
               const Executor& executor) const;
  void store_row(const char* from, int64_t row, void* memory) const;
  int64_t columns() const { return parts_.front()->matrices().n; }
  // dst has the rows of a part one after the other.
  bool writes_dst() const { return program_.column_stride == 1 && program_.row_stride == columns(); }

  const GroupedProgram program_;
  const GroupEnds ends_;
  const Parts parts_;
  const std::string name_;
  size_t dst_bytes_, part_bytes_ = 0;
};

}  // namespace lamina::cpu
