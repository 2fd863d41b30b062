#include "backends/cpu/dispatch/quantized_weights.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/dispatch/primitive.h"
#include "backends/cpu/dispatch/program_checks.h"
#include "backends/cpu/program/product_calls.h"
#include "backends/cpu/program/tuning.h"

namespace lamina::cpu {

namespace {

// Copies elements of `bytes` bytes, which the compiler knows.
template <size_t bytes>
void copy_strided(const char* from, int64_t step, char* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + static_cast<size_t>(i) * bytes, from + i * step, bytes);
}

}  // namespace

void QuantizedWeights::write(ProgramWriter& to) const {
  to.write(program_);
  for (const CompiledCode* const code : {&code_.dequantise, &code_.words, &code_.scales_along_k}) cpu::write(to, *code);
}

std::unique_ptr<const QuantizedWeights> QuantizedWeights::read(ProgramReader& from) {
  auto program = from.get<QuantizedWeightsProgram>();
  check(program.matrix, program.panel);
  QuantizedWeightsCode code;
  for (CompiledCode* const part : {&code.dequantise, &code.words, &code.scales_along_k}) *part = read_code(from);
  require(program.in_registers || code.dequantise, "the code that dequantises a panel");
  return std::make_unique<const QuantizedWeights>(std::move(program), std::move(code));
}

// Scales, zero points and words, each from a line on.
QuantizedWeights::Layout QuantizedWeights::layout_of(int64_t runs) const {
  const int64_t columns = panel_.columns();
  Layout layout{};
  layout.zero_points = aligned(bytes_of(panel_.scales, runs * columns));
  layout.words = layout.zero_points + (panel_.has_zero_points ? aligned(bytes_of(DataType::f32, runs * columns)) : 0);
  layout.bytes = layout.words + aligned(runs * panel_.words_of_run() * columns * int64_t{sizeof(uint32_t)});
  return layout;
}

size_t QuantizedWeights::packed_bytes() const {
  const int64_t panels = (matrix_.values.columns + panel_.columns() - 1) / panel_.columns();
  return static_cast<size_t>(panels * layout_of(matrix_.values.rows / panel_.run).bytes);
}

void QuantizedWeights::pack(const kernel::QuantizedMemory& memory, void* packed, const Executor& executor) const {
  const int64_t columns = matrix_.values.columns, runs = matrix_.values.rows / panel_.run;
  const Layout layout = layout_of(runs);
  for_each_tile((columns + panel_.columns() - 1) / panel_.columns(), executor, [&](int64_t panel, int) {
    const int64_t first = panel * panel_.columns();
    fill(memory, {0, runs, first, std::min(panel_.columns(), columns - first)}, layout,
         static_cast<char*>(packed) + panel * layout.bytes);
  });
}

// A panel of floats, or a QuantizedPanelMemory; behind it, the integers if they are not packed.
int64_t QuantizedWeights::bytes_before_integers(int64_t count) const {
  return program_.in_registers ? tuning::kLine : aligned(count * panel_.columns() * int64_t{sizeof(float)});
}

int64_t QuantizedWeights::panel_bytes(int64_t count) const {
  return bytes_before_integers(count) + (program_.is_packed ? 0 : layout_of(count / panel_.run).bytes);
}

QuantizedPanelMemory QuantizedWeights::panel_at(const char* integers, const Layout& layout, int64_t run) const {
  const int64_t groups = run * panel_.columns();
  return {integers + layout.words + groups * panel_.words_of_run() * int64_t{sizeof(uint32_t)},
          integers + bytes_of(panel_.scales, groups), integers + layout.zero_points + bytes_of(DataType::f32, groups)};
}

void QuantizedWeights::make_panel(const void* weights, int64_t first_k, int64_t count, int64_t first_column, int64_t columns,
                                  char* panel) const {
  const int64_t first_run = first_k / panel_.run, runs = count / panel_.run;
  QuantizedPanelMemory memory{};
  if (program_.is_packed) {
    const Layout layout = layout_of(matrix_.values.rows / panel_.run);
    memory = panel_at(static_cast<const char*>(weights) + first_column / panel_.columns() * layout.bytes, layout, first_run);
  } else {
    const Layout layout = layout_of(runs);
    char* const integers = panel + bytes_before_integers(count);
    fill(*static_cast<const kernel::QuantizedMemory*>(weights), {first_run, runs, first_column, columns}, layout, integers);
    memory = panel_at(integers, layout, 0);
  }
  if (program_.in_registers)
    std::memcpy(panel, &memory, sizeof(memory));
  else
    code_.dequantise.as<ProductTileFunction>()(nullptr, &memory, panel, nullptr, count, nullptr, 0);
}

void QuantizedWeights::fill(const kernel::QuantizedMemory& memory, const Block& block, const Layout& layout,
                            char* integers) const {
  const bool is_whole = block.columns == panel_.columns();
  if (!is_whole) std::memset(integers, 0, static_cast<size_t>(layout.bytes));
  if (is_whole && code_.scales_along_k.address != nullptr) {
    const kernel::MatrixStack& scales = matrix_.scales;
    const int64_t first = block.first_run + block.first_column * scales.column_stride;
    code_.scales_along_k.as<PanelCopyFunction>()(static_cast<const char*>(memory.scales) + bytes_of(DataType::f32, first),
                                                 bytes_of(DataType::f32, scales.column_stride), integers, block.runs);
  } else {
    copy_groups(matrix_.scales, memory.scales, block, panel_.scales, integers);
  }
  if (matrix_.zero_points)
    copy_groups(*matrix_.zero_points, memory.zero_points, block, DataType::f32, integers + layout.zero_points);
  copy_words(memory.values, block, integers + layout.words);
}

// The row of each run. Zero points become f32, as scales of fewer bits do in the register tile.
void QuantizedWeights::copy_groups(const kernel::MatrixStack& groups, const void* memory, const Block& block, DataType dtype,
                                   char* to) const {
  const int64_t bytes = bytes_of(dtype, 1), row_bytes = bytes * panel_.columns();
  for (int64_t run = 0; run < block.runs; ++run, to += row_bytes) {
    const int64_t row = (block.first_run + run) * panel_.run / matrix_.group_rows * groups.row_stride;
    if (groups.dtype == dtype && matrix_.group_columns == 1) {
      const char* const from = static_cast<const char*>(memory) + bytes * (row + block.first_column * groups.column_stride);
      const auto copy = bytes == sizeof(uint32_t) ? copy_strided<sizeof(uint32_t)> : copy_strided<sizeof(uint16_t)>;
      copy(from, bytes * groups.column_stride, to, block.columns);
      continue;
    }
    for (int64_t column = 0; column < block.columns; ++column) {
      const int64_t group = (block.first_column + column) / matrix_.group_columns;
      store_from_double(dtype, to, column, load_as_double(groups.dtype, memory, row + group * groups.column_stride));
    }
  }
}

// Whether successive entries from there on begin in a new byte and continue in whole bytes, along either axis.
bool QuantizedWeights::has_whole_bytes(int64_t first_row, int64_t first_column) const {
  const kernel::MatrixStack& values = matrix_.values;
  const int64_t per_byte = 8 / bits_of(values.dtype),
                across = values.row_stride == 1 ? values.column_stride : values.row_stride;
  return across % per_byte == 0 && (first_row * values.row_stride + first_column * values.column_stride) % per_byte == 0;
}

void QuantizedWeights::copy_words(const void* values, const Block& block, char* words) const {
  const kernel::MatrixStack& stack = matrix_.values;
  const int64_t first_row = block.first_run * panel_.run;
  if (code_.words.address == nullptr || block.columns < panel_.columns() || !has_whole_bytes(first_row, block.first_column))
    return copy_each_word(values, block, words);
  const int64_t first = first_row * stack.row_stride + block.first_column * stack.column_stride;
  const int64_t stride = stack.row_stride == 1 ? stack.column_stride : stack.row_stride;
  code_.words.as<PanelCopyFunction>()(static_cast<const char*>(values) + bytes_of(stack.dtype, first),
                                      bytes_of(stack.dtype, stride), words, block.runs * panel_.words_of_run());
}

void QuantizedWeights::copy_each_word(const void* values, const Block& block, char* words) const {
  const kernel::MatrixStack& stack = matrix_.values;
  const int64_t entries = panel_.entries_of_word(), bits = bits_of(stack.dtype);
  for (int64_t run = 0; run < block.runs; ++run) {
    for (int64_t word = 0; word < panel_.words_of_run(); ++word, words += panel_.columns() * int64_t{sizeof(uint32_t)}) {
      const int64_t first = word * entries, last = std::min(first + entries, panel_.run);
      for (int64_t column = 0; column < block.columns; ++column) {
        uint32_t all = 0;
        for (int64_t entry = first; entry < last; ++entry) {
          const int64_t row = (block.first_run + run) * panel_.run + entry;
          const double value =
              load_as_double(stack.dtype, values, row * stack.row_stride + (block.first_column + column) * stack.column_stride);
          const auto code = static_cast<uint32_t>(static_cast<int32_t>(value)) & ((uint32_t{1} << bits) - 1);
          all |= code << ((entry - first) * bits);
        }
        std::memcpy(words + static_cast<size_t>(column) * sizeof(all), &all, sizeof(all));
      }
    }
  }
}

}  // namespace lamina::cpu
