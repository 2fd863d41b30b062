// A matrix product as a step.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "backends/cpu/dispatch/primitive.h"
#include "backends/cpu/dispatch/product_dispatch.h"
#include "backends/cpu/program/program_writer.h"
#include "backends/cpu/threads/executor.h"

namespace lamina::cpu {

// Inputs are the factors, then a bias if the product has one.
struct ProductPorts {
  size_t inputs = 2;
  bool swaps_factors = false;  // dst is computed as its transpose
  bool is_matrix = false;      // dst is one dense matrix, with the rows of all entries of the batch
  // Bytes from one column of src to the next, if src is contiguous along its rows and is transposed to scratch memory; else 0.
  int64_t src_column = 0;

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.inputs), visit(self.swaps_factors), visit(self.is_matrix), visit(self.src_column);
  }
};

class ProductStep final : public Primitive {
 public:
  ProductStep(std::unique_ptr<const ProductDispatch> product, const ProductPorts& ports, std::string name)
      : product_(std::move(product)), ports_(ports), name_(std::move(name)) {}
  static std::unique_ptr<const ProductStep> read(ProgramReader& from);

  size_t arg_count() const { return ports_.inputs + 1; }
  const ProductDispatch& product() const { return *product_; }

  const std::string& name() const override { return name_; }
  size_t scratch_bytes() const override { return src_bytes() + product_->scratch_bytes(); }
  void run(std::span<void* const> args, void* scratch, const Executor& executor) const override;
  int64_t columns_of_parts() const override;
  void run_in_parts(std::span<void* const> args, void* scratch, const Executor& executor,
                    const std::function<void(const ResultPart&)>& ended) const override;
  size_t packed_bytes() const override { return product_->packed_bytes(); }
  void pack(std::span<void* const> args, void* packed, void* /*scratch*/, const Executor& executor) const override {
    product_->pack(args[1], packed, executor);
  }
  std::string packing() const override { return product_->packing(); }
  bool sums_in_order() const override { return true; }
  void write(ProgramWriter& to) const override;

 private:
  void run_product(std::span<void* const> args, void* scratch, const Executor& executor,
                   const ProductDispatch::UnitEnded& ended) const;
  size_t src_bytes() const;
  const void* transposed_src(const void* src, void* scratch, const Executor& executor) const;

  std::unique_ptr<const ProductDispatch> product_;
  ProductPorts ports_;
  std::string name_;
};

}  // namespace lamina::cpu
