// Weights of 4 and 8 bits for products: packs them in panels (product/dequantized_code.h), and makes of these what register
// tiles read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/code/jit.h"
#include "backends/cpu/library/products/sources.h"
#include "backends/cpu/product/dequantized_code.h"
#include "backends/cpu/product/dequantized_schedule.h"
#include "backends/cpu/threads/executor.h"
#include "kernels/quantized_matrix.h"

namespace lamina::cpu {

// The weights that ProductRunner::run gets are packed, or a kernel::QuantizedMemory.
class QuantizedWeights final : public PanelSource {
 public:
  QuantizedWeights(const kernel::QuantizedMatrix& matrix, const Machine& machine, const DequantizedSchedule& schedule,
                   bool is_packed);

  // The longest run for which a panel can be made (QuantizedPanel::run).
  static int64_t run_of(const kernel::QuantizedMatrix& matrix);

  size_t packed_bytes() const;
  void pack(const kernel::QuantizedMemory& memory, void* packed, const Executor& executor) const;

  int64_t panel_bytes(int64_t count) const override;
  void make_panel(const void* weights, int64_t first_k, int64_t count, int64_t first_column, int64_t columns,
                  char* panel) const override;
  CodeSource tile(const ProductTile& of_floats) const override;

 private:
  struct Layout {
    int64_t zero_points, words, bytes;  // the first two: offsets
  };
  // Runs and columns of the weights.
  struct Block {
    int64_t first_run, runs, first_column, columns;
  };
  Layout layout_of(int64_t runs) const;
  int64_t bytes_before_integers(int64_t count) const;
  QuantizedPanelMemory panel_at(const char* integers, const Layout& layout, int64_t run) const;
  void fill(const kernel::QuantizedMemory& memory, const Block& block, const Layout& layout, char* integers) const;
  void copy_words(const void* values, const Block& block, char* words) const;
  void copy_each_word(const void* values, const Block& block, char* words) const;
  void copy_groups(const kernel::MatrixStack& groups, const void* memory, const Block& block, DataType dtype, char* to) const;
  bool has_whole_bytes(int64_t first_row, int64_t first_column) const;

  kernel::QuantizedMatrix matrix_;
  QuantizedPanel panel_;
  bool in_registers_, is_packed_;
  CompiledCode dequantise_;      // a panel
  CompiledCode words_;           // copies words, if the weights are contiguous along k or along columns
  CompiledCode scales_along_k_;  // copies scales that are contiguous along k
};

}  // namespace lamina::cpu
