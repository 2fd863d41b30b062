// The rows of a product of integers in groups, prepared for its register tiles (program/integer_row.h).
#pragma once

#include <cstdint>
#include <memory>

#include "backends/cpu/dispatch/factor_sources.h"
#include "backends/cpu/program/program_writer.h"
#include "backends/cpu/program/quantized_panel.h"
#include "kernels/integer_rows.h"

namespace lamina::cpu {

struct QuantizedRowsProgram {
  kernel::IntegerRows rows = {};
  QuantizedPanel panel = {};
  int64_t rows_of_entry = 0;  // of the batch

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.rows), visit(self.panel), visit(self.rows_of_entry);
  }
};

// Its src is a kernel::IntegerRowsMemory. All of k is one block.
class QuantizedRows final : public RowSource {
 public:
  explicit QuantizedRows(QuantizedRowsProgram program) : program_(program) {}
  static std::unique_ptr<const QuantizedRows> read(ProgramReader& from);
  void write(ProgramWriter& to) const { to.write(program_); }

  void make_rows(const void* src, int64_t entry, int64_t first_row, int64_t rows, int64_t first_k, int64_t count, char* to,
                 int64_t to_next_row) const override;
  int64_t part() const override { return 0; }
  int64_t to_next_k() const override { return 0; }
  int64_t made_bytes(int64_t /*rows*/, int64_t /*parts*/) const override { return 0; }
  void find_rows(const void*, int64_t, int64_t, int64_t, int64_t, int64_t, const void**, char*) const override {}

 private:
  void make_row(const kernel::IntegerRowsMemory& memory, int64_t row, int64_t count, char* to) const;

  const QuantizedRowsProgram program_;
};

}  // namespace lamina::cpu
