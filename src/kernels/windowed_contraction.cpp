#include "kernels/windowed_contraction.h"

#include <algorithm>
#include <cmath>

#include "interface/status.h"
#include "kernels/convolution_ports.h"

namespace lamina::kernel {

namespace {

using Made = ConvolutionPorts::Made;
using Dim = WindowedContraction::Dim;
using Axis = WindowedContraction::Axis;

// Position and tap of the positions' and the image's axis.
Axis axis_of(const ConvolutionPorts& ports, size_t axis) {
  const int64_t stride = ports.strides[axis], dilation = ports.dilations[axis], pad = ports.pads_begin[axis];
  const AxesInOrder &image = ports.image, &positions = ports.positions, &weights = ports.weights;
  const size_t at = axis + 2;
  const int64_t pixels = image.dims[at], places = positions.dims[at], taps = weights.dims[at];
  switch (ports.made) {
    case Made::positions:
      return {places, taps, pixels, stride, dilation, -pad, 1, image.strides[at], weights.strides[at], positions.strides[at]};
    case Made::image:
      return {pixels, taps, places, 1, -dilation, pad, stride, positions.strides[at], weights.strides[at], image.strides[at]};
    case Made::weights:
      return {taps, places, pixels, dilation, stride, -pad, 1, image.strides[at], positions.strides[at], weights.strides[at]};
  }
  fail_check("a role", __FILE__, __LINE__, "");
}

WindowedContraction::Tensor tensor(const AxesInOrder& axes) { return {axes.dtype, axes.port}; }

// Channels are the columns, and the channels of the left factor are terms.
void take_data(WindowedContraction& made, const ConvolutionPorts& ports, const AxesInOrder& left, const AxesInOrder& dst,
               size_t left_axis_of_weights) {
  const AxesInOrder& weights = ports.weights;
  const size_t dst_axis = 1 - left_axis_of_weights;
  const int64_t groups = ports.groups, terms = left.dims[1] / groups, columns = dst.dims[1] / groups;
  const int64_t bias = ports.bias.dims.empty() ? 0 : ports.bias.strides[0];
  const int64_t positions_per_group = ports.positions.dims[1] / groups;
  made.left = tensor(left), made.right = tensor(weights), made.dst = tensor(dst), made.bias = tensor(ports.bias);
  made.groups = {groups, terms * left.strides[1], positions_per_group * weights.strides[0], columns * dst.strides[1],
                 columns * bias};
  made.outer_rows = {dst.dims[0], left.strides[0], 0, dst.strides[0], 0};
  made.inner_terms = {terms, left.strides[1], weights.strides[left_axis_of_weights], 0, 0};
  made.columns = {columns, 0, weights.strides[dst_axis], dst.strides[1], bias};
}

void take_weights(WindowedContraction& made, const ConvolutionPorts& ports) {
  const AxesInOrder &image = ports.image, &positions = ports.positions, &weights = ports.weights;
  const int64_t groups = ports.groups, rows = image.dims[1] / groups, columns = positions.dims[1] / groups;
  made.left = tensor(image), made.right = tensor(positions), made.dst = tensor(weights);
  made.sums_samples = true;
  made.groups = {groups, rows * image.strides[1], columns * positions.strides[1], columns * weights.strides[0], 0};
  made.inner_rows = {rows, image.strides[1], 0, weights.strides[1], 0};
  made.outer_terms = {image.dims[0], image.strides[0], positions.strides[0], 0, 0};
  made.columns = {columns, 0, positions.strides[1], weights.strides[0], 0};
}

// The offsets of an entry of the rows or terms in each tensor, and its place along each axis.
struct Entry {
  int64_t left = 0, right = 0, dst = 0;
  std::vector<int64_t> places;
};

template <typename Extent>
Entry entry_of(int64_t index, const Dim& outer, const std::vector<Axis>& axes, const Dim& inner, const Extent& extent) {
  Entry entry{0, 0, 0, std::vector<int64_t>(axes.size())};
  const auto take = [&](const Dim& dim, int64_t place) {
    entry.left += place * dim.left, entry.right += place * dim.right, entry.dst += place * dim.dst;
  };
  take(inner, index % inner.extent);
  index /= inner.extent;
  for (size_t a = axes.size(); a-- > 0; index /= extent(axes[a])) entry.places[a] = index % extent(axes[a]);
  take(outer, index);
  return entry;
}

struct Memory {
  const void *left, *right, *bias;
  void* dst;
};

template <typename T>
T element(const WindowedContraction::Tensor& tensor, const void* memory, int64_t at) {
  return static_cast<T>(load_as_double(tensor.dtype, memory, at));
}

template <typename T>
T left_element(const WindowedContraction& c, const Memory& memory, const Entry& row, const Entry& term, int64_t first) {
  int64_t at = first + row.left + term.left;
  for (size_t a = 0; a < c.axes.size(); ++a) {
    const int64_t pixel = c.axes[a].pixel(row.places[a], term.places[a]);
    if (pixel < 0) return 0;
    at += pixel * c.axes[a].left;
  }
  const T value = element<T>(c.left, memory.left, at);
  return c.integers ? value - static_cast<T>(c.integers->src_zero_point) : value;
}

template <typename T>
T right_element(const WindowedContraction& c, const Memory& memory, const Entry& term, int64_t at) {
  at += term.right;
  for (size_t a = 0; a < c.axes.size(); ++a) at += term.places[a] * c.axes[a].right;
  const T value = element<T>(c.right, memory.right, at);
  return c.integers ? value - static_cast<T>(c.integers->weights_zero_point) : value;
}

double multiply_add(double a, double b, double sum) { return std::fma(a, b, sum); }
float multiply_add(float a, float b, float sum) { return std::fma(a, b, sum); }
int64_t multiply_add(int64_t a, int64_t b, int64_t sum) { return a * b + sum; }

// `column`: of all groups.
double scaled(const WindowedContraction&, double sum, int64_t) { return sum; }
float scaled(const WindowedContraction&, float sum, int64_t) { return sum; }
float scaled(const WindowedContraction& c, int64_t sum, int64_t column) {
  const std::vector<float>& scales = c.integers->scales;
  return static_cast<float>(sum) * scales[scales.size() == 1 ? 0 : static_cast<size_t>(column)];
}

template <typename T>
void interpret_rows(const WindowedContraction& c, const Memory& memory, int64_t group) {
  std::vector<Entry> terms;
  for (int64_t i = 0; i < c.term_count(); ++i)
    terms.push_back(entry_of(i, c.outer_terms, c.axes, c.inner_terms, [](const Axis& axis) { return axis.terms; }));
  for (int64_t r = 0; r < c.row_count(); ++r) {
    const Entry row = entry_of(r, c.outer_rows, c.axes, c.inner_rows, [](const Axis& axis) { return axis.rows; });
    int64_t to = group * c.groups.dst + row.dst;
    for (size_t a = 0; a < c.axes.size(); ++a) to += row.places[a] * c.axes[a].dst;
    for (int64_t column = 0; column < c.columns.extent; ++column) {
      T sum = 0;
      for (const Entry& term : terms)
        sum = multiply_add(left_element<T>(c, memory, row, term, group * c.groups.left),
                           right_element<T>(c, memory, term, group * c.groups.right + column * c.columns.right), sum);
      auto result = scaled(c, sum, group * c.columns.extent + column);
      if (c.has_bias())
        result += element<decltype(result)>(c.bias, memory.bias, group * c.groups.bias + column * c.columns.bias);
      store_from_double(c.dst.dtype, memory.dst, to + column * c.columns.dst, static_cast<double>(result));
    }
  }
}

}  // namespace

int64_t WindowedContraction::row_count() const {
  int64_t count = outer_rows.extent * inner_rows.extent;
  for (const Axis& axis : axes) count *= axis.rows;
  return count;
}

int64_t WindowedContraction::term_count() const {
  int64_t count = outer_terms.extent * inner_terms.extent;
  for (const Axis& axis : axes) count *= axis.terms;
  return count;
}

Type WindowedContraction::sum_type() const {
  if (integers) return Type::s32;
  return left.dtype == DataType::f64 || right.dtype == DataType::f64 ? Type::f64 : Type::f32;
}

WindowedContraction windowed_contraction_of(const LibraryStep& step) {
  LAMINA_CHECK(!step.post_ops, join(describe(step.op), " is not a plain convolution"));
  const ConvolutionPorts ports = convolution_ports(step);
  WindowedContraction made;
  for (size_t axis = 0; axis < ports.strides.size(); ++axis) made.axes.push_back(axis_of(ports, axis));
  switch (ports.made) {
    case Made::positions: take_data(made, ports, ports.image, ports.positions, 1); break;
    case Made::image: take_data(made, ports, ports.positions, ports.image, 0); break;
    case Made::weights: take_weights(made, ports); break;
  }
  if (step.quantized) made.integers = integer_factors_of(step, made.left.dtype, made.right.dtype, made.term_count());
  return made;
}

std::string print(const WindowedContraction& contraction) {
  const auto extents = [&](int64_t rows, int64_t columns) { return join("[", rows, ", ", columns, "]"); };
  const int64_t rows = contraction.row_count(), terms = contraction.term_count(), columns = contraction.columns.extent;
  return join(contraction.groups.extent, contraction.groups.extent == 1 ? " group of " : " groups of ", extents(rows, terms),
              " ", name_of(contraction.left.dtype), " windows by ", extents(terms, columns));
}

void interpret(const WindowedContraction& contraction, const void* left, const void* right, const void* bias, void* dst) {
  for (int64_t group = 0; group < contraction.groups.extent; ++group) {
    const Memory memory{left, right, bias, dst};
    if (contraction.integers)
      interpret_rows<int64_t>(contraction, memory, group);
    else if (contraction.sum_type() == Type::f64)
      interpret_rows<double>(contraction, memory, group);
    else
      interpret_rows<float>(contraction, memory, group);
  }
}

}  // namespace lamina::kernel
