#include "backends/cpu/library/products/weights_copy.h"

#include <cstring>

namespace lamina::cpu {

DataType type_of_panels(const kernel::Contraction& contraction) {
  return contraction.multiplies_pairs ? DataType::f32 : contraction.matrices.weights.dtype;
}

WeightsCopy::WeightsCopy(const kernel::Contraction& contraction, DataType to, const Machine& machine, int vector_bits)
    : matrix_(contraction.matrices.weights),
      from_(type_of_panels(contraction)),
      to_(to),
      entries_(contraction.entries()),
      multiplies_pairs_(contraction.multiplies_pairs),
      zero_point_(contraction.integers ? contraction.integers->weights_zero_point : 0),
      vector_bits_(vector_bits) {
  if (entries_ == 1) convert_ = MatrixCopy(matrix_.dtype, to, machine, vector_bits);
}

Steps WeightsCopy::steps() const {
  const int64_t bytes = bytes_of(matrix_.dtype, 1);
  return {matrix_.row_stride * bytes, matrix_.column_stride * bytes};
}

CompiledCode WeightsCopy::code(int vectors, int64_t bytes_ahead, const Machine& machine) const {
  if (!is_along_k() && matrix_.column_stride != 1) return {};
  return compile_code(source_of(PanelCopy{.from = is_along_k() ? from_ : matrix_.dtype,
                                          .to = to_,
                                          .zero_point = zero_point_,
                                          .joins_rows = multiplies_pairs_ && !is_along_k(),
                                          .vector_bits = vector_bits_,
                                          .vectors = vectors,
                                          .along_k = is_along_k(),
                                          .bytes_ahead = bytes_ahead}),
                      machine);
}

void WeightsCopy::operator()(const CompiledCode& code, const char* from, int64_t columns, int64_t width, int64_t entries,
                             char* to) const {
  const auto [row, column] = steps();
  int64_t copied = 0;
  if (code.address != nullptr && columns == width) {
    copied = entries / entries_;
    code.as<PanelCopyFunction>()(from, is_along_k() ? column : row, to, copied);
    if (copied * entries_ == entries) return;
  }
  const int64_t bytes = element_bytes(to_), rest = entries - copied * entries_;
  to += copied * width * bytes;
  // The second entry of a last pair of bf16 must not be a NaN, though it is multiplied by 0.
  if (columns < width || multiplies_pairs_)
    std::memset(to, 0, static_cast<size_t>((rest + entries_ - 1) / entries_ * width * bytes));
  from += copied * entries_ * row;
  if (entries_ > 1) return copy_pairs(from, columns, width, rest, to);
  convert_(from, {row, column}, to, {width * bytes, bytes}, rest, columns);
}

// One by one.
void WeightsCopy::copy_pairs(const char* from, int64_t columns, int64_t width, int64_t entries, char* to) const {
  const auto [row, to_next_column] = steps();
  for (int64_t i = 0; i < entries; ++i) {
    for (int64_t column = 0; column < columns; ++column) {
      const char* const entry = from + i * row + column * to_next_column;
      const int64_t place = (i / entries_ * width + column) * entries_ + i % entries_;
      if (multiplies_pairs_) {
        std::memcpy(to + place * int64_t{sizeof(uint16_t)}, entry, sizeof(uint16_t));
      } else if (is_byte_integer(to_)) {
        to[place] = *entry;
      } else {
        const int value = matrix_.dtype == DataType::s8 ? static_cast<int8_t>(*entry) : static_cast<uint8_t>(*entry);
        const auto half = static_cast<int16_t>(value - zero_point_);
        std::memcpy(to + place * int64_t{sizeof(half)}, &half, sizeof(half));
      }
    }
  }
}

}  // namespace lamina::cpu
