// Runs a compiled kernel: threads take chunks of rows, and column sums are combined in a fixed tree. Its choices do not
// affect the bits of results.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/cpu/dispatch/access_choice.h"
#include "backends/cpu/program/kernel_function.h"
#include "backends/cpu/program/kernel_program.h"
#include "backends/cpu/program/program_writer.h"
#include "backends/cpu/threads/executor.h"

namespace lamina::cpu {

// The machine code of a kernel.
class KernelCode {
 public:
  struct Variant {
    KernelFunction function = nullptr;
    int64_t rows_per_group = 1;  // of those that run in lanes
  };
  virtual ~KernelCode() = default;
  // `code`: of those of the program. `splits`: shares each row among threads. Thread-safe. Throws Error(runtime_error) if the
  // code is for another machine.
  virtual Variant variant(size_t code, bool splits) const = 0;
  virtual bool runs_here() const = 0;
  // All variants, as program_io.cpp reads them.
  virtual void write(ProgramWriter& to) const = 0;
};

class KernelDispatch {
 public:
  KernelDispatch(KernelProgram program, std::unique_ptr<const KernelCode> code);

  // `pointers`: one per arg. `scratch`: scratch_bytes() bytes, 64-byte aligned. Runs on threads of `executor`, or only on the
  // calling thread if there is little work. Allocates no memory, unless the code is compiled at its first use.
  void run(std::span<void* const> pointers, void* scratch, const Executor& executor) const;

  // Whether rows and columns of the kernel can run one by one, on the caller's choice of threads: `Parts` is such a run.
  bool has_parts() const { return program_.has_parts && call_.size() <= kInlineWords && code_->runs_here(); }
  class Parts;

  bool wants_split(int threads) const;  // divides rows among them
  // Partial column sums, and the threads' live values or, if a row may be split, the rows' states.
  size_t scratch_bytes() const;
  const KernelProgram& program() const { return program_; }
  const KernelCode& code() const { return *code_; }

 private:
  bool shares_an_input(size_t output, std::span<void* const> pointers) const;
  bool suits(std::span<void* const> pointers) const;
  static constexpr size_t kInlineWords = 256;  // descriptions of calls up to this size need no allocation
  void run_rows(size_t code, const int64_t* call, void* scratch, const Executor& executor) const;
  void run_split(size_t code, const int64_t* call, void* scratch, const Executor& executor) const;
  struct Group;
  struct Portion;
  struct SplitWork;
  int64_t groups_of_entry(int64_t rows_at_a_time) const;
  Group group_of(int64_t index, int64_t rows_at_a_time) const;
  void run_split_stage(const SplitWork& work, Portion portion, const Group& group, int64_t stage) const;
  void run_column_blocks(size_t code, const int64_t* call, void* scratch, const Executor& executor) const;
  // Rows [first, end) of block `block` of the column sums.
  struct Block {
    int64_t first, end;
  };
  Block block_of(int64_t block) const;
  int64_t columns_of_chunk(int threads) const;
  void combine_partials(const void* partials, const int64_t* call, int64_t begin, int64_t end) const;
  template <typename T>
  void combine_columns(const T* partials, const int64_t* call, int64_t begin, int64_t end) const;
  template <typename T>
  void combine_blocks(const T* partials, int64_t blocks, const KernelProgram::Arg& arg, void* out, int64_t begin,
                      int64_t end) const;
  void store_columns(const KernelProgram::Arg& arg, void* out, int64_t first, int64_t count, const double* sums) const;
  int64_t column_blocks() const { return entries_ * blocks_of_entry_; }
  size_t partial_bytes() const;  // of one block of rows
  size_t column_bytes() const;
  void* live_of(void* scratch, int slot) const;  // the live values of a thread

  KernelProgram program_;
  std::unique_ptr<const KernelCode> code_;
  std::unique_ptr<AccessChoice> access_choice_;  // null: all calls use the same code
  int64_t rows_ = 0, row_size_ = 0;
  int64_t entries_ = 1, rows_of_entry_ = 0, blocks_of_entry_ = 0;  // of column sums
  std::vector<int64_t> call_;  // pointers (filled in by run), outer extents, outer strides in bytes
};

// A run of a kernel that has parts. Threads may run different parts at the same time.
class KernelDispatch::Parts {
 public:
  Parts(const KernelDispatch& kernel, std::span<void* const> pointers);
  // Part of the kernel's elements as a matrix: its elements in their order, with this number of columns.
  void run(int64_t columns, int64_t first_row, int64_t rows, int64_t first_column, int64_t columns_of_part) const;

 private:
  void run_elements(int64_t begin, int64_t end) const;

  KernelFunction function_;
  int64_t row_size_;
  std::array<int64_t, kInlineWords> call_;
};

}  // namespace lamina::cpu
