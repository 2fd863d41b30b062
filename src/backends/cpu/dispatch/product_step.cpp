#include "backends/cpu/dispatch/product_step.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/dispatch/matrix_copy.h"
#include "backends/cpu/dispatch/program_checks.h"
#include "backends/cpu/dispatch/step_kinds.h"

namespace lamina::cpu {

void ProductStep::run(std::span<void* const> args, void* scratch, const Executor& executor) const {
  run_product(args, scratch, executor, nullptr);
}

void ProductStep::run_product(std::span<void* const> args, void* scratch, const Executor& executor,
                              const ProductDispatch::UnitEnded& ended) const {
  const void *src = args[0], *weights = args[1];
  if (ports_.swaps_factors) std::swap(src, weights);
  const bool has_bias = product_->matrices().has_bias;
  product_->run(transposed_src(src, scratch, executor), weights, has_bias ? args[2] : nullptr, args[ports_.inputs],
                static_cast<char*>(scratch) + src_bytes(), executor, ended);
}

size_t ProductStep::src_bytes() const {
  const kernel::MatrixStack& src = product_->matrices().src;
  return ports_.src_column == 0 ? 0 : static_cast<size_t>(bytes_of(src.dtype, src.rows * src.row_stride));
}

const void* ProductStep::transposed_src(const void* src, void* scratch, const Executor& executor) const {
  constexpr int64_t kRowsAtOnce = 64;
  if (ports_.src_column == 0) return src;
  const kernel::MatrixStack& to = product_->matrices().src;
  const int64_t element = bytes_of(to.dtype, 1), row_bytes = bytes_of(to.dtype, to.row_stride);
  const MatrixCopy copy(element, element, {});
  for_each_tile(parts(to.rows, kRowsAtOnce), executor.at_most(product_->program().threads), [&](int64_t i, int) {
    const int64_t row = i * kRowsAtOnce, rows = std::min(kRowsAtOnce, to.rows - row);
    copy(static_cast<const char*>(src) + row * element, {element, ports_.src_column},
         static_cast<char*>(scratch) + row * row_bytes, {row_bytes, element}, rows, to.columns);
  });
  return scratch;
}

int64_t ProductStep::columns_of_parts() const {
  const bool has_parts = ports_.is_matrix && product_->unit_count() >= product_->program().threads;
  const kernel::MatmulStack& matrices = product_->matrices();
  if (!has_parts) return 0;
  return ports_.swaps_factors ? matrices.m : matrices.n;
}

void ProductStep::run_in_parts(std::span<void* const> args, void* scratch, const Executor& executor,
                               const std::function<void(const ResultPart&)>& ended) const {
  const kernel::MatmulStack& matrices = product_->matrices();
  const struct {
    bool swaps;
    int64_t rows;  // of dst, of an entry of the batch
    const std::function<void(const ResultPart&)>& ended;
  } of{ports_.swaps_factors, ports_.swaps_factors ? matrices.n : matrices.m, ended};
  run_product(args, scratch, executor, [&of](int64_t entry, int64_t row, int64_t rows, int64_t column, int64_t columns) {
    if (of.swaps) std::swap(row, column), std::swap(rows, columns);
    of.ended({entry * of.rows + row, rows, column, columns});
  });
}

void ProductStep::write(ProgramWriter& to) const {
  to.write(StepKind::product);
  to.write(ports_);
  product_->write(to);
}

std::unique_ptr<const ProductStep> ProductStep::read(ProgramReader& from) {
  const auto ports = from.get<ProductPorts>();
  auto product = ProductDispatch::read(from);
  const kernel::MatrixStack& src = product->matrices().src;
  require(ports.src_column == 0 || (ports.src_column > 0 && src.column_stride == 1 && src.row_stride >= src.columns &&
                                    product->matrices().batch.empty() && bits_of(src.dtype) >= 8),
          "a product of a transposed factor");
  return std::make_unique<const ProductStep>(std::move(product), ports, "product");
}

}  // namespace lamina::cpu
