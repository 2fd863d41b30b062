#include "backends/cpu/dispatch/dequantized_step.h"

#include "backends/cpu/dispatch/program_checks.h"
#include "backends/cpu/dispatch/step_kinds.h"

namespace lamina::cpu {

void DequantizedStep::run(std::span<void* const> args, void* scratch, const Executor& executor) const {
  const kernel::QuantizedMemory memory = is_packed() ? kernel::QuantizedMemory{} : memory_of(args);
  const void* const weights = is_packed() ? args[1] : static_cast<const void*>(&memory);
  const bool has_bias = product_->matrices().has_bias;
  const kernel::IntegerRowsMemory rows = rows_ == nullptr ? kernel::IntegerRowsMemory{} : rows_of(args);
  const void* const src = rows_ == nullptr ? args[0] : static_cast<const void*>(&rows);
  product_->run(src, weights, has_bias ? args[2] : nullptr, args[ports_.inputs], scratch, executor);
}

kernel::QuantizedMemory DequantizedStep::memory_of(std::span<void* const> args) const {
  size_t operand = ports_.inputs + 1;
  const auto given_or_next = [&](const std::vector<float>& given) -> const void* {
    if (!given.empty()) return given.data();
    return operand < args.size() ? args[operand++] : nullptr;
  };
  const void* const scales = given_or_next(ports_.scales);
  return {args[1], scales, given_or_next(ports_.zero_points)};
}

kernel::IntegerRowsMemory DequantizedStep::rows_of(std::span<void* const> args) const {
  size_t operand = args.size();  // theirs are the last ones
  const void* const zero_points =
      ports_.has_zero_points_of_rows ? args[--operand] : static_cast<const void*>(&ports_.zero_point_of_rows);
  const void* const scales = ports_.has_scales_of_rows ? args[--operand] : static_cast<const void*>(&ports_.scale_of_rows);
  return {args[0], scales, zero_points};
}

void DequantizedStep::write(ProgramWriter& to) const {
  to.write(StepKind::dequantized);
  to.write(ports_);
  weights_->write(to);
  to.write(rows_ != nullptr);
  if (rows_ != nullptr) rows_->write(to);
  product_->write(to);
}

std::unique_ptr<const DequantizedStep> DequantizedStep::read(ProgramReader& from, size_t args) {
  auto ports = from.get<DequantizedPorts>();
  auto weights = QuantizedWeights::read(from);
  auto rows = from.get<bool>() ? QuantizedRows::read(from) : nullptr;
  auto product = ProductDispatch::read(from, rows.get(), weights.get());
  require(ports.inputs >= (product->matrices().has_bias ? 3U : 2U) && ports.inputs < args, "the args of a product");
  return std::make_unique<const DequantizedStep>(std::move(weights), std::move(rows), std::move(product), std::move(ports),
                                                 "product");
}

}  // namespace lamina::cpu
