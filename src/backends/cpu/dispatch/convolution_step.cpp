#include "backends/cpu/dispatch/convolution_step.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/dispatch/program_checks.h"
#include "backends/cpu/dispatch/step_kinds.h"

namespace lamina::cpu {

namespace {

int64_t places_of(const ConvolutionProgram& c) {
  int64_t places = c.outer_terms.extent;
  for (const kernel::WindowAxis& axis : c.axes) places *= axis.terms;
  return places;
}

}  // namespace

ConvolutionStep::ConvolutionStep(ConvolutionProgram program, std::unique_ptr<const WindowRows> rows,
                                 std::unique_ptr<const ProductDispatch> product, std::string name, bool has_following)
    : c_(std::move(program)),
      rows_(std::move(rows)),
      product_(std::move(product)),
      places_(places_of(c_)),
      matrix_bytes_(c_.copies_weights ? c_.groups * places_ * c_.inner_terms.extent * c_.columns * c_.weight_bytes : 0),
      copy_(c_.weight_bytes, c_.weight_bytes, {}),
      name_(std::move(name)),
      has_following_(has_following) {}

void ConvolutionStep::pack(std::span<void* const> args, void* packed, void* scratch, const Executor& executor) const {
  product_->pack(matrix(args[c_.right], scratch, executor), packed, executor);
}

int64_t ConvolutionStep::columns_of_parts() const {
  return c_.is_matrix && product_->unit_count() >= product_->program().threads ? c_.groups * c_.columns : 0;
}

void ConvolutionStep::run_in_parts(std::span<void* const> args, void* scratch, const Executor& executor,
                                   const std::function<void(const ResultPart&)>& ended) const {
  const kernel::MatmulStack& product = product_->matrices();
  const struct {
    int64_t m, n, entries;
    const std::function<void(const ResultPart&)>& ended;
  } of{product.m, product.n, product.products() / c_.groups, ended};
  run(args, scratch, executor, [&of](int64_t entry, int64_t row, int64_t rows, int64_t column, int64_t columns) {
    of.ended({entry % of.entries * of.m + row, rows, entry / of.entries * of.n + column, columns});
  });
}

void ConvolutionStep::run(std::span<void* const> args, void* scratch, const Executor& executor,
                          const ProductDispatch::UnitEnded& ended) const {
  const void* const given = args[c_.right];
  product_->run(args[c_.left], packed_bytes() > 0 ? given : matrix(given, scratch, executor),
                c_.bias ? args[*c_.bias] : nullptr, args[c_.dst], scratch, executor, ended);
}

// The weights of all groups as matrices: in place, or a copy in scratch memory.
const void* ConvolutionStep::matrix(const void* weights, void* scratch, const Executor& executor) const {
  if (!c_.copies_weights) return weights;
  char* const to = static_cast<char*>(scratch) + aligned(product_->scratch_bytes());
  for_each_tile(c_.groups * places_, executor, [&](int64_t i, int) {
    const int64_t bytes = c_.inner_terms.extent * c_.columns * c_.weight_bytes;
    copy_terms(static_cast<const char*>(weights), i / places_, i % places_, to + i * bytes);
  });
  return to;
}

// The inner terms of one place along the axes.
void ConvolutionStep::copy_terms(const char* weights, int64_t group, int64_t place, char* to) const {
  const int64_t bytes = c_.weight_bytes;
  int64_t at = group * c_.group_stride;
  for (size_t a = c_.axes.size(); a-- > 0; place /= c_.axes[a].terms) at += place % c_.axes[a].terms * c_.axes[a].right;
  at += place * c_.outer_terms.right;
  copy_(weights + at * bytes, {c_.inner_terms.right * bytes, c_.column_stride * bytes}, to, {c_.columns * bytes, bytes},
        c_.inner_terms.extent, c_.columns);
}

std::string ConvolutionStep::packing() const {
  ByteWriter text;
  text.write(c_.copies_weights);
  if (c_.copies_weights) text.write(c_);
  return "convolution" + text.bytes() + product_->packing();
}

void ConvolutionStep::write(ProgramWriter& to) const {
  to.write(StepKind::convolution);
  to.write(c_);
  to.write(rows_ != nullptr);
  if (rows_ != nullptr) rows_->write(to);
  product_->write(to);
}

std::unique_ptr<const ConvolutionStep> ConvolutionStep::read(ProgramReader& from, size_t args) {
  auto program = from.get<ConvolutionProgram>();
  check(program, args);
  std::unique_ptr<const WindowRows> rows = from.get<bool>() ? WindowRows::read(from) : nullptr;
  auto product = ProductDispatch::read(from, rows.get());
  require(product->matrices().has_bias == program.bias.has_value() && product->matrices().products() % program.groups == 0,
          "the product of a convolution");
  require(product->packed_bytes() == 0 || program.right == 1, "packed weights of a convolution");
  return std::make_unique<const ConvolutionStep>(std::move(program), std::move(rows), std::move(product), "convolution");
}

}  // namespace lamina::cpu
