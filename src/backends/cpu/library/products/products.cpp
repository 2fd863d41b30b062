// MatMul of f32 and f64 by generated code.
#include <algorithm>

#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/library/library_ops.h"
#include "backends/cpu/library/products/product_runner.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using kernel::Contraction;

bool is_generated(DataType dtype) { return dtype == DataType::f32 || dtype == DataType::f64; }

class Product final : public Primitive {
 public:
  Product(const Contraction& contraction, bool swaps_factors, size_t ports, const PrimitiveUse& use)
      : Product(contraction, swaps_factors, ports, use, host_machine()) {}

  const std::string& name() const override { return name_; }
  size_t scratch_bytes() const override { return runner_.scratch_bytes(); }
  void run(std::span<void* const> args, void* scratch, const Executor& executor) const override {
    const void *src = args[0], *weights = args[1];
    if (swaps_factors_) std::swap(src, weights);
    runner_.run(src, weights, has_bias_ ? args[2] : nullptr, args[ports_], scratch, executor);
  }

 private:
  Product(const Contraction& contraction, bool swaps_factors, size_t ports, const PrimitiveUse& use, const Machine& machine)
      : runner_(contraction, machine, choose_product_schedule(contraction, machine, use.threads), use.threads),
        swaps_factors_(swaps_factors),
        has_bias_(contraction.matrices.has_bias),
        ports_(ports),
        name_(join("product, ", describe(runner_.schedule()))) {}

  ProductRunner runner_;
  bool swaps_factors_;
  bool has_bias_;
  size_t ports_;  // number of inputs
  std::string name_;
};

// A result that is narrower than a vector is computed as its transpose.
bool is_better_transposed(const Contraction& contraction, const Machine& machine) {
  const int64_t lanes = vector_bits(machine) / (contraction.sum_type() == kernel::Type::f64 ? 64 : 32);
  return contraction.matrices.n < std::min(lanes, contraction.matrices.m);
}

std::unique_ptr<const Primitive> product(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  const DataType dtype = step.outputs[0].dtype;
  const bool has_one_type = std::all_of(step.inputs.begin(), step.inputs.end(), [dtype](const LogicalTensor& tensor) {
    return tensor.is_empty_port() || tensor.dtype == dtype;
  });
  if (step.quantized || step.post_ops || !is_generated(dtype) || !has_one_type) return nullptr;
  Contraction contraction = kernel::contraction_of(step);
  const bool swaps = is_better_transposed(contraction, host_machine());
  if (swaps) contraction = kernel::transposed(std::move(contraction));
  return std::make_unique<Product>(contraction, swaps, step.inputs.size(), use);
}

}  // namespace

std::vector<LibraryOp> product_ops() { return {{.kind = OpKind::MatMul, .compile = product, .is_fast_in = is_generated}}; }

}  // namespace lamina::cpu
