#include "backends/cpu/dispatch/product_step.h"

#include <utility>

#include "backends/cpu/dispatch/step_kinds.h"

namespace lamina::cpu {

void ProductStep::run(std::span<void* const> args, void* scratch, const Executor& executor) const {
  const void *src = args[0], *weights = args[1];
  if (ports_.swaps_factors) std::swap(src, weights);
  const bool has_bias = product_->matrices().has_bias;
  product_->run(src, weights, has_bias ? args[2] : nullptr, args[ports_.inputs], scratch, executor);
}

int64_t ProductStep::columns_of_parts() const {
  const bool has_parts = ports_.is_matrix && product_->unit_count() >= product_->program().threads;
  return has_parts ? product_->matrices().n : 0;
}

void ProductStep::run_in_parts(std::span<void* const> args, void* scratch, const Executor& executor,
                               const std::function<void(const ResultPart&)>& ended) const {
  const struct {
    int64_t m;
    const std::function<void(const ResultPart&)>& ended;
  } of{product_->matrices().m, ended};
  product_->run(args[0], args[1], product_->matrices().has_bias ? args[2] : nullptr, args[ports_.inputs], scratch, executor,
                [&of](int64_t entry, int64_t row, int64_t rows, int64_t column, int64_t columns) {
                  of.ended({entry * of.m + row, rows, column, columns});
                });
}

void ProductStep::write(ProgramWriter& to) const {
  to.write(StepKind::product);
  to.write(ports_);
  product_->write(to);
}

std::unique_ptr<const ProductStep> ProductStep::read(ProgramReader& from) {
  const auto ports = from.get<ProductPorts>();
  return std::make_unique<const ProductStep>(ProductDispatch::read(from), ports, "product");
}

}  // namespace lamina::cpu
