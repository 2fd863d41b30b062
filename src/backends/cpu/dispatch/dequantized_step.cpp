#include "backends/cpu/dispatch/dequantized_step.h"

#include "backends/cpu/dispatch/program_checks.h"
#include "backends/cpu/dispatch/step_kinds.h"

namespace lamina::cpu {

void DequantizedStep::run(std::span<void* const> args, void* scratch, const Executor& executor) const {
  const kernel::QuantizedMemory memory = is_packed() ? kernel::QuantizedMemory{} : memory_of(args);
  const void* const weights = is_packed() ? args[1] : static_cast<const void*>(&memory);
  const bool has_bias = product_->matrices().has_bias;
  product_->run(args[0], weights, has_bias ? args[2] : nullptr, args[ports_.inputs], scratch, executor);
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

void DequantizedStep::write(ProgramWriter& to) const {
  to.write(StepKind::dequantized);
  to.write(ports_);
  weights_->write(to);
  product_->write(to);
}

std::unique_ptr<const DequantizedStep> DequantizedStep::read(ProgramReader& from, size_t args) {
  auto ports = from.get<DequantizedPorts>();
  auto weights = QuantizedWeights::read(from);
  auto product = ProductDispatch::read(from, nullptr, weights.get());
  require(ports.inputs >= (product->matrices().has_bias ? 3U : 2U) && ports.inputs < args, "the args of a product");
  return std::make_unique<const DequantizedStep>(std::move(weights), std::move(product), std::move(ports), "product");
}

}  // namespace lamina::cpu
