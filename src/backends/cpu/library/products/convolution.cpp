// A convolution is a matrix product (kernels/windowed_contraction.h), whose left factor is read in place, by pointers to the
// pixels that the window sees, or from copies of rows.
#include "backends/cpu/library/products/convolution.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/dispatch/convolution_step.h"
#include "backends/cpu/dispatch/window_rows.h"
#include "backends/cpu/library/library_ops.h"
#include "backends/cpu/library/products/lines.h"
#include "backends/cpu/library/products/machine_of.h"
#include "backends/cpu/library/products/product_runner.h"
#include "backends/cpu/library/products/taps.h"
#include "backends/cpu/product/tuning.h"
#include "interface/status.h"
#include "kernels/convolution_ports.h"
#include "kernels/windowed_contraction.h"

namespace lamina::cpu {

namespace {

using kernel::WindowedContraction;
using Axis = WindowedContraction::Axis;

// A dim of the rows, and its strides in left and dst; or of the terms, in left and right.
struct Run {
  int64_t extent, left, other;
};

// Whether an index over all dims has one stride, of the last one. Dims of one entry have any stride.
bool is_uniform(const std::vector<Run>& dims, int64_t Run::* stride) {
  std::optional<int64_t> next;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d].extent == 1) continue;
    if (next && dims[d].*stride != *next) return false;
    next = dims[d].*stride * dims[d].extent;
  }
  return true;
}
int64_t stride_of(const std::vector<Run>& dims, int64_t Run::* stride) {
  const auto last = std::find_if(dims.rbegin(), dims.rend(), [](const Run& dim) { return dim.extent > 1; });
  return last == dims.rend() ? 0 : (*last).*stride;
}
int64_t extent_of(const std::vector<Run>& dims) {
  int64_t extent = 1;
  for (const Run& dim : dims) extent *= dim.extent;
  return extent;
}

std::vector<Run> rows_of(const WindowedContraction& c) {
  std::vector<Run> dims{{c.outer_rows.extent, c.outer_rows.left, c.outer_rows.dst}};
  for (const Axis& axis : c.axes) dims.push_back({axis.rows, axis.per_row * axis.left, axis.dst});
  dims.push_back({c.inner_rows.extent, c.inner_rows.left, c.inner_rows.dst});
  return dims;
}
std::vector<Run> terms_of(const WindowedContraction& c) {
  std::vector<Run> dims{{c.outer_terms.extent, c.outer_terms.left, c.outer_terms.right}};
  for (const Axis& axis : c.axes) dims.push_back({axis.terms, axis.per_term * axis.left, axis.right});
  dims.push_back({c.inner_terms.extent, c.inner_terms.left, c.inner_terms.right});
  return dims;
}

bool has_type_of_sums(const WindowedContraction& c) { return c.left.dtype == kernel::data_type_of(c.sum_type()); }

// Windows of one tap inside of the image, or as large as it: a row is in memory.
bool has_whole_rows(const WindowedContraction& c) {
  const auto is_inside = [](const Axis& axis) {
    return axis.divisor == 1 && axis.first == 0 && axis.lowest() == 0 && axis.highest() < axis.pixels;
  };
  return std::all_of(c.axes.begin(), c.axes.end(), is_inside) && is_uniform(terms_of(c), &Run::left) && has_type_of_sums(c);
}

// The last dims of the rows, which are a matrix in dst. Those before them are batch dims of the product.
std::vector<Run> rows_of_product(const WindowedContraction& c) {
  std::vector<Run> rows = rows_of(c);
  while (!is_uniform(rows, &Run::other)) rows.erase(rows.begin());
  return rows;
}

// Whether left is a matrix in memory, too.
bool is_read_in_place(const WindowedContraction& c, const ColumnGroups& groups) {
  return groups.columns == 0 && has_whole_rows(c) && is_uniform(rows_of_product(c), &Run::left);
}

// The weights are copied to a matrix if they are none.
bool has_matrix(const WindowedContraction& c) { return is_uniform(terms_of(c), &Run::other); }

// Groups, samples and perhaps dims of the image are the batch.
kernel::Contraction product_of(const WindowedContraction& c, const ColumnGroups& groups) {
  const bool in_place = is_read_in_place(c, groups);
  const std::vector<Run> all = rows_of(c), rows = rows_of_product(c);
  const std::vector<Run> batch(all.begin(), all.end() - static_cast<std::ptrdiff_t>(rows.size()));
  kernel::MatmulStack stack;
  stack.m = extent_of(rows), stack.n = c.columns.extent, stack.k = c.term_count();
  stack.batch = {c.groups.extent};
  stack.src = {stack.m, stack.k, 0, 1, {0}, c.left.dtype};
  if (in_place) {
    stack.src.row_stride = stride_of(rows, &Run::left), stack.src.column_stride = stride_of(terms_of(c), &Run::left);
    stack.src.batch_strides = {c.groups.left};
  }
  stack.weights = {stack.k, stack.n, stride_of(terms_of(c), &Run::other), c.columns.right, {c.groups.right}, c.right.dtype};
  if (!has_matrix(c))
    stack.weights.row_stride = stack.n, stack.weights.column_stride = 1, stack.weights.batch_strides = {stack.k * stack.n};
  stack.dst = {stack.m, stack.n, stride_of(rows, &Run::other), c.columns.dst, {c.groups.dst}, c.dst.dtype};
  stack.has_bias = c.has_bias();
  stack.bias = {1, stack.n, 0, c.columns.bias, {c.groups.bias}, c.has_bias() ? c.bias.dtype : DataType::f32};
  for (const Run& dim : batch) {
    stack.batch.push_back(dim.extent);
    for (kernel::MatrixStack* matrix : {&stack.weights, &stack.bias}) matrix->batch_strides.push_back(0);
    stack.src.batch_strides.push_back(in_place ? dim.left : 0);
    stack.dst.batch_strides.push_back(dim.other);
  }
  kernel::Contraction product{stack};
  if (c.integers) {
    product.integers = c.integers;
    product.integers->scale_strides = Dims(stack.batch.size(), 0);
    if (c.integers->scales.size() > 1) product.integers->scale_strides[0] = stack.n;
  }
  kernel::verify(product);
  return product;
}

// Few channels in each group, those of all groups contiguous: a vector has columns of several groups. The weights of all groups
// are one matrix then.
ColumnGroups groups_in_vectors(const WindowedContraction& c, const Machine& machine) {
  const int64_t columns = c.columns.extent, lanes = lanes_of(machine, c.left.dtype);
  if (c.groups.extent <= 1 || columns == 0 || lanes % columns != 0 || !has_type_of_sums(c)) return {};
  const bool are_adjacent = c.groups.left == c.inner_terms.extent && (c.inner_terms.extent == 1 || c.inner_terms.left == 1) &&
                            c.groups.dst == columns && (columns == 1 || c.columns.dst == 1);
  const bool are_one_matrix = columns == 1 || c.groups.right == columns * c.columns.right;
  const bool are_one_bias = !c.has_bias() || columns == 1 || c.groups.bias == columns * c.columns.bias;
  if (!are_adjacent || !are_one_matrix || !are_one_bias) return {};
  return {static_cast<int>(columns), c.groups.left};
}

WindowedContraction with_groups_as_columns(WindowedContraction c) {
  if (c.columns.extent == 1) {
    const int64_t left = c.columns.left;
    c.columns = c.groups;
    c.columns.left = left;
  } else {
    c.columns.extent *= c.groups.extent;
  }
  c.groups = {};
  return c;
}

// Whether dst is one dense matrix, whose columns are those of all groups.
bool makes_matrix(const WindowedContraction& c) {
  const int64_t columns = c.groups.extent * c.columns.extent;
  const bool are_contiguous =
      (c.columns.extent == 1 || c.columns.dst == 1) && (c.groups.extent == 1 || c.groups.dst == c.columns.extent);
  const std::vector<Run> rows = rows_of(c);
  return are_contiguous && is_uniform(rows, &Run::other) && (extent_of(rows) == 1 || stride_of(rows, &Run::other) == columns);
}

struct Form {
  WindowedContraction window;
  ColumnGroups groups;  // of the columns of window
  kernel::Contraction product;
};
Form form_of(const WindowedContraction& c, const Machine& machine) {
  const ColumnGroups groups = groups_in_vectors(c, machine);
  const WindowedContraction window = groups.columns == 0 ? c : with_groups_as_columns(c);
  return {window, groups, product_of(window, groups)};
}

constexpr size_t kMostAxesOfOneDnn = 3;

MatrixCopy copy_of(const WindowedContraction& c, const Machine& machine, int vector_bits) {
  if (c.integers) return copy_of_integers(c.left.dtype, c.integers->src_zero_point, machine, vector_bits);
  return matrix_copy(c.left.dtype, kernel::data_type_of(c.sum_type()), machine, vector_bits);
}

// Whether a line without pads is contiguous in memory.
bool has_contiguous_lines(const WindowedContraction& c) {
  const Axis& last = c.axes.back();
  return (c.inner_terms.extent == 1 || c.inner_terms.left == 1) && last.per_term == 1 && last.divisor == 1 &&
         last.left == c.inner_terms.extent;
}

// A pointer per line pays off for few channels. Lines with pads are made.
bool finds_lines(const WindowedContraction& c, const ColumnGroups& groups) {
  return groups.columns == 0 && has_contiguous_lines(c) && c.inner_terms.extent <= product_tuning::kChannelsOfLines;
}

// The entries of k for which pointers to the rows suffice; 0: rows are copied, because they are converted or these are few.
int64_t part_of(const WindowedContraction& c, const ColumnGroups& groups) {
  if (bytes_of(c.left.dtype, 1) != bytes_of(kernel::data_type_of(c.sum_type()), 1)) return 0;
  if (finds_lines(c, groups)) return c.axes.back().terms * c.inner_terms.extent;
  return groups.columns == 0 && c.inner_terms.extent < product_tuning::kLeastPart ? 0 : c.inner_terms.extent;
}

std::unique_ptr<const WindowRows> rows_of(const WindowedContraction& c, const ColumnGroups& groups, int64_t rows,
                                          const Machine& machine, int vector_bits) {
  const int64_t row_bytes = c.integers ? int64_t{sizeof(int16_t)} : bytes_of(kernel::data_type_of(c.sum_type()), 1);
  return std::make_unique<const WindowRows>(
      WindowRowsProgram{.groups = c.groups,
                        .outer_rows = c.outer_rows,
                        .inner_rows = c.inner_rows,
                        .outer_terms = c.outer_terms,
                        .inner_terms = c.inner_terms,
                        .axes = c.axes,
                        .rows = rows,
                        .column_groups = groups,
                        .column_group_count = groups.columns == 0 ? 0 : c.columns.extent / groups.columns,
                        .element_bytes = bytes_of(c.left.dtype, 1),
                        .row_bytes = row_bytes,
                        .is_contiguous = has_contiguous_lines(c),
                        .finds_lines = finds_lines(c, groups)},
      copy_of(c, machine, vector_bits));
}

ConvolutionProgram program_of(const WindowedContraction& c) {
  return {.left = c.left.port,
          .right = c.right.port,
          .dst = c.dst.port,
          .bias = c.has_bias() ? std::optional(c.bias.port) : std::nullopt,
          .groups = c.groups.extent,
          .columns = c.columns.extent,
          .is_matrix = makes_matrix(c),
          .copies_weights = !has_matrix(c),
          .weight_bytes = bytes_of(c.right.dtype, 1),
          .group_stride = c.groups.right,
          .column_stride = c.columns.right,
          .outer_terms = c.outer_terms,
          .inner_terms = c.inner_terms,
          .axes = c.axes};
}

// Windows of one tap, of contiguous channels.
bool is_matrix_of_pixels(const WindowedContraction& c) { return has_whole_rows(c) && c.inner_terms.left == 1; }

// Null if there is other code for it.
std::unique_ptr<const Primitive> by_lines(const WindowedContraction& c, const Machine& machine, const PrimitiveUse& use) {
  const ColumnGroups groups = groups_in_vectors(c, machine);
  if (groups.columns > 0 && groups.step == 1)
    return line_convolution(with_groups_as_columns(c), groups.columns, makes_matrix(c), machine, use);
  if (groups.columns > 0 || is_matrix_of_pixels(c)) return nullptr;
  return line_convolution(c, 0, makes_matrix(c), machine, use);
}

std::unique_ptr<const Primitive> convolution(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  if (step.post_ops) return nullptr;
  return generated_convolution(kernel::windowed_contraction_of(step), machine_of(use), use);
}

// Strided windows of many channels: neighbours share few pixels, which is what oneDNN's code is made for.
bool is_sparse(const WindowedContraction& c) {
  const auto strides = [](const Axis& axis) { return axis.divisor == 1 && axis.per_row > 1 && axis.terms > 1; };
  return std::any_of(c.axes.begin(), c.axes.end(), strides) && c.groups.extent == 1 && has_type_of_sums(c) &&
         std::min(c.inner_terms.extent, c.columns.extent) >= product_tuning::kLeastSparseChannels;
}

// The weight gradient of a linear layer that is written as a convolution of images of one pixel.
bool is_gradient_of_linear(const WindowedContraction& c) {
  const auto is_one = [](const Axis& axis) { return axis.rows == 1 && axis.terms == 1; };
  return c.sums_samples && c.groups.extent == 1 && std::all_of(c.axes.begin(), c.axes.end(), is_one) && has_whole_rows(c);
}

// With the channels of both tensors contiguous, and full registers: windows of one tap, and sparse ones. Neither the number of
// samples nor packed weights decide: an image's bits are its own.
bool is_fast(const WindowedContraction& c, const Machine& machine) {
  if (is_gradient_of_linear(c)) return true;
  return (has_whole_rows(c) || is_sparse(c)) && c.inner_terms.left == 1 && c.columns.dst == 1 &&
         c.columns.extent >= lanes_of(machine, c.left.dtype);
}

// Groups of few channels: oneDNN's primitive, unless its code is slower than generated code.
std::unique_ptr<const Primitive> convolution_in_groups(const kernel::LibraryStep& step, const WindowedContraction& contraction,
                                                       const PrimitiveUse& use) {
  for (const LibraryOp& op : onednn_ops()) {
    if (op.kind != step.op.kind) continue;
    auto theirs = op.compile(step, use);
    const bool is_slow = op.is_slow_for_groups != nullptr && op.is_slow_for_groups(theirs->name(), vector_bits(host_machine()));
    if (!is_slow) return theirs;
  }
  return generated_convolution(contraction, machine_of(use), use);
}

std::unique_ptr<const Primitive> fast_convolution(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  const bool has_many_axes = step.inputs[0].shape->size() > kMostAxesOfOneDnn + 2;
  if (step.post_ops || (step.quantized && !has_many_axes)) return nullptr;
  const WindowedContraction contraction = kernel::windowed_contraction_of(step);
  const bool is_only_choice = contraction.sum_type() == kernel::Type::f64 || has_many_axes;
  const Machine machine = machine_of(use);
  if (is_only_choice || is_fast(contraction, machine)) return generated_convolution(contraction, machine, use);
  if (auto made = by_lines(contraction, machine, use)) return made;
  if (auto made = depthwise_weight_gradient(contraction, machine, use)) return made;
  const bool has_groups = groups_in_vectors(contraction, machine).columns > 0;
  return has_groups ? convolution_in_groups(step, contraction, use) : nullptr;
}

std::vector<LibraryOp> ops_with(decltype(LibraryOp::compile) compile, decltype(LibraryOp::takes_integers) takes_integers) {
  const auto is_fast_in = [](DataType dtype) { return dtype == DataType::f32 || dtype == DataType::f64; };
  std::vector<LibraryOp> ops;
  for (const OpKind kind : kernel::convolution_kinds())
    ops.push_back({.kind = kind, .compile = compile, .is_fast_in = is_fast_in, .takes_integers = takes_integers});
  return ops;
}

}  // namespace

std::unique_ptr<const Primitive> generated_convolution(const WindowedContraction& contraction, const Machine& machine,
                                                       const PrimitiveUse& use) {
  if (auto made = by_lines(contraction, machine, use)) return made;
  if (auto made = depthwise_weight_gradient(contraction, machine, use)) return made;
  const Form form = form_of(contraction, machine);
  const auto* const like = dynamic_cast<const ConvolutionStep*>(use.like);
  // Packed weights are input 1, which is the left factor of a gradient of transposed weights.
  const bool may_pack = use.packs_weights && !use.reads_packed_once && contraction.right.port == 1;
  const bool is_packed = like != nullptr ? like->packed_bytes() > 0 : may_pack;
  const bool in_place = is_read_in_place(form.window, form.groups);
  const ProductSchedule schedule = choose_product_schedule(
      form.product, machine,
      {.threads = use.threads,
       .packs_ahead = is_packed,
       .vectors = is_packed && like != nullptr ? static_cast<int>(like->product().program().vectors) : 0,
       .splits_panels = is_packed && like != nullptr && like->product().program().splits_panels,
       .makes_rows = !in_place,
       .part = part_of(form.window, form.groups)});
  auto rows = in_place ? nullptr : rows_of(form.window, form.groups, form.product.matrices.m, machine, schedule.vector_bits);
  const ProductWeights weights{.are_packed_ahead = is_packed};
  const ResultMap map = use.following != nullptr && may_map_results(form.product, weights)
                            ? result_map_of(*use.following, contraction.sum_type())
                            : ResultMap{};
  auto product = std::make_unique<const ProductRunner>(form.product, machine, schedule, use.threads, weights, rows.get(), map);
  std::string name = join("convolution, ", describe(schedule), is_packed ? ", weights packed" : "");
  return std::make_unique<const ConvolutionStep>(program_of(form.window), std::move(rows), std::move(product), std::move(name),
                                                 !map.is_empty());
}

std::vector<LibraryOp> fast_convolution_ops() { return ops_with(fast_convolution, nullptr); }
// Where oneDNN has no exact convolutions of integers, its convolutions of floats are faster than generated code.
std::vector<LibraryOp> convolution_ops() {
  return ops_with(convolution, [] { return onednn_ops().empty(); });
}

}  // namespace lamina::cpu
