// A product with weights of 4 or 8 bits as a step. Constant weights are packed once. Others are packed panel by panel.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/dispatch/primitive.h"
#include "backends/cpu/dispatch/product_dispatch.h"
#include "backends/cpu/dispatch/quantized_rows.h"
#include "backends/cpu/dispatch/quantized_weights.h"
#include "backends/cpu/program/program_writer.h"
#include "kernels/quantized_matrix.h"

namespace lamina::cpu {

// Inputs, then the output, then scales and zero points that are tensors: those of the weights, then those of the rows.
struct DequantizedPorts {
  size_t inputs = 2;
  std::vector<float> scales, zero_points;                            // of the weights, that are not
  bool has_scales_of_rows = false, has_zero_points_of_rows = false;  // that are
  float scale_of_rows = 1;                                           // that is not
  int32_t zero_point_of_rows = 0;

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.inputs), visit(self.scales), visit(self.zero_points), visit(self.has_scales_of_rows);
    visit(self.has_zero_points_of_rows), visit(self.scale_of_rows), visit(self.zero_point_of_rows);
  }
};

class DequantizedStep final : public Primitive {
 public:
  // `rows`: the first factor of a product of integers; else null.
  DequantizedStep(std::unique_ptr<const QuantizedWeights> weights, std::unique_ptr<const QuantizedRows> rows,
                  std::unique_ptr<const ProductDispatch> product, DequantizedPorts ports, std::string name)
      : weights_(std::move(weights)),
        rows_(std::move(rows)),
        product_(std::move(product)),
        ports_(std::move(ports)),
        name_(std::move(name)) {}
  // Of a step with this number of args.
  static std::unique_ptr<const DequantizedStep> read(ProgramReader& from, size_t args);

  const std::string& name() const override { return name_; }
  size_t scratch_bytes() const override { return product_->scratch_bytes(); }
  size_t packed_bytes() const override { return is_packed() ? weights_->packed_bytes() : 0; }
  void pack(std::span<void* const> args, void* packed, void* /*scratch*/, const Executor& executor) const override {
    weights_->pack(memory_of(args), packed, executor);
  }
  void run(std::span<void* const> args, void* scratch, const Executor& executor) const override;
  void write(ProgramWriter& to) const override;

 private:
  bool is_packed() const { return weights_->program().is_packed; }
  kernel::QuantizedMemory memory_of(std::span<void* const> args) const;
  kernel::IntegerRowsMemory rows_of(std::span<void* const> args) const;

  std::unique_ptr<const QuantizedWeights> weights_;
  std::unique_ptr<const QuantizedRows> rows_;
  std::unique_ptr<const ProductDispatch> product_;
  DequantizedPorts ports_;
  std::string name_;
};

}  // namespace lamina::cpu
