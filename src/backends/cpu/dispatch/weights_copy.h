// Copies panels of a product's weights from their matrix.
#pragma once

#include <cstdint>
#include <utility>

#include "backends/cpu/dispatch/matrix_copy.h"
#include "backends/cpu/program/compiled_code.h"
#include "interface/data_type.h"
#include "kernels/matrix_stack.h"

namespace lamina::cpu {

// What a copy depends on.
struct WeightsCopyProgram {
  kernel::MatrixStack matrix = {};
  DataType to = DataType::f32;  // of panels
  int64_t entries = 1;          // of k in an element
  bool multiplies_pairs = false;
  int32_t zero_point = 0;

  bool is_along_k() const { return matrix.row_stride == 1 && matrix.column_stride != 1; }

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.matrix), visit(self.to), visit(self.entries), visit(self.multiplies_pairs), visit(self.zero_point);
  }
};

class WeightsCopy {
 public:
  WeightsCopy() = default;
  // `convert`: copies element by element.
  WeightsCopy(WeightsCopyProgram program, MatrixCopy convert) : program_(std::move(program)), convert_(std::move(convert)) {}

  // Copies `entries` of k of `columns` columns to a panel of `width` columns, by `code` if it is there and the panel is whole.
  // The other columns become 0.
  void operator()(const CompiledCode& code, const char* from, int64_t columns, int64_t width, int64_t entries, char* to) const;

  void write(ProgramWriter& to) const;
  static WeightsCopy read(ProgramReader& from);

 private:
  Steps steps() const;
  void copy_pairs(const char* from, int64_t columns, int64_t width, int64_t entries, char* to) const;

  WeightsCopyProgram program_;
  MatrixCopy convert_;  // element by element
};

}  // namespace lamina::cpu
