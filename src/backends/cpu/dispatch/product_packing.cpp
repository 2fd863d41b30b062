// Weights that are packed ahead: one panel after the other.
#include <algorithm>
#include <string>

#include "backends/cpu/dispatch/product_dispatch.h"
#include "backends/cpu/program/bytes.h"

namespace lamina::cpu {

void ProductDispatch::plan_packed_weights() {
  const int64_t rest = stack_.n % program_.columns, columns = stack_.n - rest + (rest == 0 ? 0 : code_of(rest).columns);
  packed_matrix_bytes_ = aligned(program_.k * columns * program_.entries * weights_bytes_);
  packed_strides_ = stack_.weights.batch_strides;
  for (size_t d = packed_strides_.size(); d-- > 0;) {
    if (packed_strides_[d] == 0) continue;
    packed_strides_[d] = packed_matrices_ * packed_matrix_bytes_ / weights_bytes_;
    packed_matrices_ *= stack_.batch[d];
  }
}

std::string ProductDispatch::packing() const {
  ByteWriter text;
  text.write(stack_.weights);
  text.write(stack_.batch);
  for (const int64_t number : {stack_.n, stack_.k, program_.entries, program_.columns, program_.vectors}) text.write(number);
  text.write(program_.splits_panels);
  text.write(program_.copied_type);
  return text.bytes();
}

void ProductDispatch::pack(const void* weights, void* packed, const Executor& executor) const {
  const int64_t width = packed_together(), panels = parts(stack_.n, width);
  for_each_tile(packed_matrices_ * panels, executor.at_most(program_.threads), [&](int64_t i, int) {
    const int64_t column = i % panels * width, columns = std::min(width, stack_.n - column);
    int64_t matrix = i / panels, at = column * stack_.weights.column_stride;
    for (size_t d = stack_.batch.size(); d-- > 0;) {
      if (packed_strides_[d] == 0) continue;
      at += matrix % stack_.batch[d] * stack_.weights.batch_strides[d];
      matrix /= stack_.batch[d];
    }
    const bool has_whole = program_.splits_panels && code_.whole.columns > 0;
    const ProductCode::PanelCode& code = has_whole ? code_.whole : code_of(columns);
    code_.copy_weights(code.copy, static_cast<const char*>(weights) + at * weights_bytes_, columns,
                       program_.splits_panels ? width : code.columns, stack_.k,
                       static_cast<char*>(packed) + i / panels * packed_matrix_bytes_ +
                           column * program_.k * program_.entries * weights_bytes_);
  });
}

// Columns that are beside each other in packed weights: of a panel, or of a vector.
int64_t ProductDispatch::packed_together() const {
  return program_.splits_panels ? program_.columns / program_.vectors : program_.columns;
}

// Of k in packed weights, which another product may have packed.
int64_t ProductDispatch::packed_entries() const {
  return program_.packed_k > 0 ? parts(program_.packed_k, program_.entries) : program_.k;
}

// Of the panel that was packed with this first column.
int64_t ProductDispatch::packed_columns(int64_t column) const {
  if (panels_ != nullptr) return program_.columns;
  const int64_t lanes = program_.columns / program_.vectors;
  if (program_.splits_panels) return lanes;
  const int64_t rest = (program_.packed_n > 0 ? program_.packed_n : stack_.n) - column;
  return std::min(parts(rest, lanes) * lanes, program_.columns);
}

}  // namespace lamina::cpu
