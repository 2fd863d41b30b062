// MatMul of f32 and f64 by generated code, and of f32 by weights of 4 and 8 bits, which it dequantises.
#include <algorithm>

#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/library/library_ops.h"
#include "backends/cpu/library/products/product_runner.h"
#include "backends/cpu/library/products/quantized_weights.h"
#include "interface/status.h"
#include "kernels/quantized_matrix.h"

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

// Constant weights are packed once. Others are packed panel by panel.
class DequantizedProduct final : public Primitive {
 public:
  DequantizedProduct(const kernel::LibraryStep& step, const PrimitiveUse& use)
      : DequantizedProduct(step, kernel::quantized_matrix(step), use) {}

  const std::string& name() const override { return name_; }
  size_t scratch_bytes() const override { return runner_.scratch_bytes(); }
  size_t packed_bytes() const override { return is_packed_ ? weights_.packed_bytes() : 0; }
  void pack(std::span<void* const> args, void* packed, void*, const Executor& executor) const override {
    weights_.pack(memory_of(args), packed, executor);
  }
  void run(std::span<void* const> args, void* scratch, const Executor& executor) const override {
    const kernel::QuantizedMemory memory = is_packed_ ? kernel::QuantizedMemory{} : memory_of(args);
    const void* const weights = is_packed_ ? args[1] : static_cast<const void*>(&memory);
    runner_.run(args[0], weights, contraction_.matrices.has_bias ? args[2] : nullptr, args[ports_], scratch, executor);
  }

 private:
  DequantizedProduct(const kernel::LibraryStep& step, const kernel::QuantizedMatrix& matrix, const PrimitiveUse& use)
      : DequantizedProduct(step, matrix, kernel::dequantized_contraction_of(step), host_machine(), use) {}
  DequantizedProduct(const kernel::LibraryStep& step, const kernel::QuantizedMatrix& matrix, Contraction contraction,
                     const Machine& machine, const PrimitiveUse& use)
      : contraction_(std::move(contraction)),
        schedule_(choose_dequantized_schedule(contraction_, QuantizedWeights::run_of(matrix), machine, use.threads)),
        ports_(step.inputs.size()),
        scales_(step.dequantized->given_scales),
        zero_points_(step.dequantized->given_zero_points),
        is_packed_(use.packs_weights && !use.in_a_tile),
        weights_(matrix, machine, schedule_, is_packed_),
        runner_(contraction_, machine, schedule_.product, use.threads, &weights_),
        name_(join("product by ", kernel::print(matrix), ", ", describe(schedule_))) {}

  kernel::QuantizedMemory memory_of(std::span<void* const> args) const {
    size_t operand = ports_ + 1;
    const auto given_or_next = [&](const std::vector<float>& given) -> const void* {
      if (!given.empty()) return given.data();
      return operand < args.size() ? args[operand++] : nullptr;
    };
    const void* const scales = given_or_next(scales_);
    return {args[1], scales, given_or_next(zero_points_)};
  }

  const Contraction contraction_;
  const DequantizedSchedule schedule_;
  const size_t ports_;  // number of inputs
  const std::vector<float> scales_, zero_points_;
  const bool is_packed_;
  const QuantizedWeights weights_;
  const ProductRunner runner_;
  const std::string name_;
};

// A result that is narrower than a vector is computed as its transpose.
bool is_better_transposed(const Contraction& contraction, const Machine& machine) {
  const int64_t lanes = vector_bits(machine) / (contraction.sum_type() == kernel::Type::f64 ? 64 : 32);
  return contraction.matrices.n < std::min(lanes, contraction.matrices.m);
}

std::unique_ptr<const Primitive> product(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  if (step.dequantized) return std::make_unique<DequantizedProduct>(step, use);
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

std::vector<LibraryOp> product_ops() {
  return {{.kind = OpKind::MatMul, .compile = product, .is_fast_in = is_generated, .dequantizes_weights = true}};
}

}  // namespace lamina::cpu
