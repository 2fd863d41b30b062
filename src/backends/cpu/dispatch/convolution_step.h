// A convolution as a step: a matrix product whose left factor is read in place, by pointers to the pixels that the window sees,
// or from copies of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "backends/cpu/dispatch/matrix_copy.h"
#include "backends/cpu/dispatch/primitive.h"
#include "backends/cpu/dispatch/product_dispatch.h"
#include "backends/cpu/dispatch/window_rows.h"
#include "backends/cpu/program/program_writer.h"
#include "backends/cpu/program/window_program.h"
#include "backends/cpu/threads/executor.h"

namespace lamina::cpu {

class ConvolutionStep final : public Primitive {
 public:
  // `rows`: null if left is read in place; those of `product`.
  ConvolutionStep(ConvolutionProgram program, std::unique_ptr<const WindowRows> rows,
                  std::unique_ptr<const ProductDispatch> product, std::string name, bool has_following = false);
  // Of a step with this number of args.
  static std::unique_ptr<const ConvolutionStep> read(ProgramReader& from, size_t args);

  const ProductDispatch& product() const { return *product_; }

  const std::string& name() const override { return name_; }
  bool has_following() const override { return has_following_; }
  size_t scratch_bytes() const override { return aligned(product_->scratch_bytes()) + static_cast<size_t>(matrix_bytes_); }
  size_t packed_bytes() const override { return product_->packed_bytes(); }
  void pack(std::span<void* const> args, void* packed, void* scratch, const Executor& executor) const override;
  void run(std::span<void* const> args, void* scratch, const Executor& executor) const override {
    run(args, scratch, executor, nullptr);
  }
  int64_t columns_of_parts() const override;
  void run_in_parts(std::span<void* const> args, void* scratch, const Executor& executor,
                    const std::function<void(const ResultPart&)>& ended) const override;
  std::string packing() const override;
  void write(ProgramWriter& to) const override;

 private:
  void run(std::span<void* const> args, void* scratch, const Executor& executor, const ProductDispatch::UnitEnded& ended) const;
  const void* matrix(const void* weights, void* scratch, const Executor& executor) const;
  void copy_terms(const char* weights, int64_t group, int64_t place, char* to) const;

  const ConvolutionProgram c_;
  const std::unique_ptr<const WindowRows> rows_;
  const std::unique_ptr<const ProductDispatch> product_;
  const int64_t places_;        // of the outer terms and the axes
  const int64_t matrix_bytes_;  // of the weights of all groups, if they are copied
  const MatrixCopy copy_;
  const std::string name_;
  const bool has_following_;  // in its code
};

}  // namespace lamina::cpu
