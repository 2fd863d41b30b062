// Weights of 4 and 8 bits for products: packs them in panels (program/quantized_panel.h), and makes of these what register
// tiles read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "backends/cpu/dispatch/factor_sources.h"
#include "backends/cpu/program/compiled_code.h"
#include "backends/cpu/program/quantized_panel.h"
#include "backends/cpu/threads/executor.h"
#include "kernels/quantized_matrix.h"

namespace lamina::cpu {

// The weights that ProductDispatch::run gets are packed, or a kernel::QuantizedMemory.
struct QuantizedWeightsProgram {
  kernel::QuantizedMatrix matrix = {};
  QuantizedPanel panel = {};
  bool in_registers = false;  // the register tile dequantises
  bool is_packed = false;

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.matrix), visit(self.panel), visit(self.in_registers), visit(self.is_packed);
  }
};

struct QuantizedWeightsCode {
  CompiledCode dequantise;      // a panel
  CompiledCode words;           // copies words, if the weights are contiguous along k or along columns
  CompiledCode scales_along_k;  // copies scales that are contiguous along k
};

class QuantizedWeights final : public PanelMaker {
 public:
  QuantizedWeights(QuantizedWeightsProgram program, QuantizedWeightsCode code)
      : program_(std::move(program)), matrix_(program_.matrix), panel_(program_.panel), code_(std::move(code)) {}
  static std::unique_ptr<const QuantizedWeights> read(ProgramReader& from);
  void write(ProgramWriter& to) const;
  const QuantizedWeightsProgram& program() const { return program_; }

  size_t packed_bytes() const;
  void pack(const kernel::QuantizedMemory& memory, void* packed, const Executor& executor) const;

  int64_t panel_bytes(int64_t count) const override;
  void make_panel(const void* weights, int64_t first_k, int64_t count, int64_t first_column, int64_t columns,
                  char* panel) const override;

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

  const QuantizedWeightsProgram program_;
  const kernel::QuantizedMatrix& matrix_;
  const QuantizedPanel& panel_;
  const QuantizedWeightsCode code_;
};

}  // namespace lamina::cpu
