// GroupedMatMul: each group of rows by its own matrix, with the code of ProductRunner. The number of rows of a group is known
// when it runs, so there is a runner for 1, 2, 4, ... rows, and a group is computed in parts. A part of another size is
// computed with rows beside it, whose results are dropped. An element is one chain of products, so its bits do not depend on
// the parts.
#include "backends/cpu/library/products/grouped_products.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cpu/library/products/machine_of.h"
#include "backends/cpu/library/products/product_runner.h"
#include "interface/indices.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using kernel::Contraction;
using kernel::MatrixStack;

constexpr int64_t kMostRows = 64;  // of a part: enough to reuse each panel of weights from the cache

MatrixStack matrix_of(const LogicalTensor& tensor) {
  const Dims& shape = *tensor.shape;
  const size_t rank = shape.size();
  return {shape[rank - 2], shape[rank - 1], tensor.strides[rank - 2], tensor.strides[rank - 1], {}, tensor.dtype};
}

MatrixStack weights_of(const kernel::LibraryStep& step) {
  MatrixStack weights = matrix_of(step.inputs[1]);
  if (step.op.attribute<bool>("transpose_b")) {
    std::swap(weights.rows, weights.columns);
    std::swap(weights.row_stride, weights.column_stride);
  }
  return weights;
}

// The product of `rows` rows by one matrix, into contiguous rows.
Contraction part_of(int64_t rows, const MatrixStack& src, const MatrixStack& weights, DataType dst, const Machine& machine) {
  Contraction contraction;
  contraction.matrices.m = rows;
  contraction.matrices.n = weights.columns;
  contraction.matrices.k = weights.rows;
  contraction.matrices.src = {rows, src.columns, src.row_stride, src.column_stride, {}, src.dtype};
  contraction.matrices.weights = weights;
  contraction.matrices.dst = {rows, weights.columns, weights.columns, 1, {}, dst};
  contraction.multiplies_pairs = multiplies_pairs(src.dtype, weights.dtype, machine);
  return contraction;
}

class GroupedProduct final : public Primitive {
 public:
  GroupedProduct(const kernel::LibraryStep& step, const PrimitiveUse& use)
      : op_(step.op),
        offsets_(step.inputs[2]),
        src_(matrix_of(step.inputs[0])),
        dst_(matrix_of(step.outputs[0])),
        to_next_row_(bytes_of(src_.dtype, src_.row_stride)),
        to_next_matrix_(bytes_of(step.inputs[1].dtype, step.inputs[1].strides[0])) {
    const MatrixStack weights = weights_of(step);
    const Machine machine = machine_of(use);
    const int64_t most_rows = std::min(src_.rows, kMostRows);
    for (int64_t rows = 1; rows < most_rows; rows *= 2) add_part(rows, weights, machine, use.threads);
    add_part(std::max<int64_t>(most_rows, 1), weights, machine, use.threads);
    dst_bytes_ = aligned(static_cast<size_t>(bytes_of(dst_.dtype, part_rows_.back() * dst_.columns)));
    for (const auto& part : parts_) part_bytes_ = std::max(part_bytes_, part->scratch_bytes());
    name_ = join("products of groups of rows, up to ", part_rows_.back(), " at once, ", describe(parts_.back()->schedule()));
  }

  const std::string& name() const override { return name_; }
  size_t scratch_bytes() const override { return dst_bytes_ + part_bytes_; }

  void run(std::span<void* const> args, void* scratch, const Executor& executor) const override {
    for_each_index(offsets_, args[2], [&](int64_t group, int64_t end) { check_group_end(op_, group, end, src_.rows); });
    auto* const part = static_cast<char*>(scratch);
    int64_t row = 0;
    for_each_index(offsets_, args[2], [&](int64_t group, int64_t end) {
      const char* const weights = static_cast<const char*>(args[1]) + group * to_next_matrix_;
      while (row < end) {
        const int64_t rows = std::min(end - row, part_rows_.back());
        compute(row, rows, weights, args, part, executor);
        row += rows;
      }
    });
    std::memset(part, 0, dst_bytes_);
    for (; row < src_.rows; ++row) store_row(part, row, args[3]);
  }

 private:
  void add_part(int64_t rows, const MatrixStack& weights, const Machine& machine, int threads) {
    const Contraction part = part_of(rows, src_, weights, dst_.dtype, machine);
    part_rows_.push_back(rows);
    parts_.push_back(
        std::make_unique<ProductRunner>(part, machine, choose_product_schedule(part, machine, {threads}), threads));
  }

  void compute(int64_t row, int64_t rows, const char* weights, std::span<void* const> args, char* scratch,
               const Executor& executor) const {
    const auto size = static_cast<size_t>(std::ranges::lower_bound(part_rows_, rows) - part_rows_.begin());
    const int64_t first = std::min(row, src_.rows - part_rows_[size]);
    const char* const src = static_cast<const char*>(args[0]) + first * to_next_row_;
    parts_[size]->run(src, weights, nullptr, scratch, scratch + dst_bytes_, executor);
    const int64_t row_bytes = bytes_of(dst_.dtype, dst_.columns);
    for (int64_t i = row; i < row + rows; ++i) store_row(scratch + (i - first) * row_bytes, i, args[3]);
  }

  void store_row(const char* from, int64_t row, void* memory) const {
    const int64_t element = bytes_of(dst_.dtype, 1), step = element * dst_.column_stride;
    char* to = static_cast<char*>(memory) + row * element * dst_.row_stride;
    if (dst_.column_stride == 1) {
      std::memcpy(to, from, static_cast<size_t>(element * dst_.columns));
      return;
    }
    for (int64_t i = 0; i < dst_.columns; ++i, from += element, to += step) std::memcpy(to, from, static_cast<size_t>(element));
  }

  const Op op_;
  const LogicalTensor offsets_;
  const MatrixStack src_, dst_;
  const int64_t to_next_row_, to_next_matrix_;  // in bytes
  std::vector<int64_t> part_rows_;              // ascending
  std::vector<std::unique_ptr<const ProductRunner>> parts_;
  size_t dst_bytes_ = 0, part_bytes_ = 0;
  std::string name_;
};

}  // namespace

std::unique_ptr<const Primitive> grouped_product(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  return std::make_unique<GroupedProduct>(step, use);
}

}  // namespace lamina::cpu
