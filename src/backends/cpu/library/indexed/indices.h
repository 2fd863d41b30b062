// Tensors as rows, and indices that are checked before they are used.
#pragma once

#include <cstdint>
#include <optional>

#include "interface/logical_tensor.h"
#include "interface/op.h"

namespace lamina::cpu {

// Some axes of a tensor, in row-major order.
struct Axes {
  Dims extents, strides;  // strides in elements

  Axes(const LogicalTensor& tensor, size_t first, size_t count);
  int64_t count() const;
  int64_t offset(int64_t position) const;  // of the position-th element, in elements
};

// The entries of a row in two tensors. Axes that are contiguous in both are merged into one run.
class RowPair {
 public:
  RowPair(const Axes& a, const Axes& b);  // with equal extents

  int64_t runs() const { return runs_; }
  int64_t length() const { return length_; }  // of a run
  int64_t step_of_a() const { return step_[0]; }
  int64_t step_of_b() const { return step_[1]; }
  // Calls visit(offset in a, offset in b) for each run.
  template <typename Visit>
  void for_each_run(Visit&& visit) const {
    for (int64_t run = 0; run < runs_; ++run) {
      int64_t rest = run, a = 0, b = 0;
      for (size_t d = extents_.size(); d-- > 0; rest /= extents_[d]) {
        a += rest % extents_[d] * strides_[0][d];
        b += rest % extents_[d] * strides_[1][d];
      }
      visit(a, b);
    }
  }

 private:
  Dims extents_, strides_[2];  // of the axes before that of the run
  int64_t runs_ = 1, length_ = 1, step_[2] = {1, 1};
};

// Converts indices of s32 or s64 to non-negative `entries`; -1 for ignored ones. Throws Error(invalid_arguments) for the
// first index that is out of range.
void read_indices(const Op& op, const LogicalTensor& indices, const void* memory, int64_t extent,
                  std::optional<int64_t> ignored, int64_t* entries);

}  // namespace lamina::cpu
