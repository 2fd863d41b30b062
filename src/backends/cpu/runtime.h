// Running a compiled kernel: rows among threads, column sums combined in a fixed tree. Nothing here decides a bit of a result.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/cpu/jit.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

class KernelRunner {
 public:
  explicit KernelRunner(kernel::Kernel kernel);  // compiles, or takes the code from the cache

  // `pointers`: one per arg. `scratch`: scratch_bytes() bytes, 64-byte aligned. Runs on up to `threads` threads (0: OpenMP's
  // default), on the calling thread alone when there is little to do. Allocates nothing.
  void run(std::span<void* const> pointers, void* scratch, int threads) const;

  size_t scratch_bytes() const;  // partial column sums, and the rows' states where a row may be split
  const kernel::Kernel& kernel() const { return kernel_; }
  const std::string& symbol() const { return plain_.symbol; }
  bool from_cache() const { return plain_.from_cache; }
  int64_t moved_bytes() const { return moved_bytes_; }

 private:
  struct Column {
    int arg;
    DataType dtype;
  };
  bool may_bypass_caches(std::span<void* const> pointers) const;
  void run_rows(KernelFunction function, const int64_t* call, void* scratch, int threads) const;
  bool wants_split(int threads) const;
  void run_split(const int64_t* call, void* scratch, int threads, bool bypass) const;
  void run_column_blocks(KernelFunction function, const int64_t* call, void* scratch, int threads) const;
  void combine_partials(const void* partials, const int64_t* call, int64_t begin, int64_t end) const;
  template <typename T>
  void combine_columns(const T* partials, const int64_t* call, int64_t begin, int64_t end) const;
  int64_t column_blocks() const;
  size_t column_bytes() const;

  kernel::Kernel kernel_;
  CompiledKernel plain_, non_temporal_;
  CompiledKernel split_, split_non_temporal_;  // where rows may be split
  std::vector<int64_t> call_;   // pointers (filled in by run), outer extents, outer strides in bytes
  std::vector<Column> columns_;  // in the order of the column_sum nodes
  int64_t rows_ = 0, row_size_ = 0, moved_bytes_ = 0;
  bool wide_ = false;  // partial sums are f64
};

}  // namespace lamina::cpu
