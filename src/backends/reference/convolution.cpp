// Convolution, its transpose, and the gradients of both. All six are sums of products of three arrays: an image, weights, and
// the values at the positions of the window (window.h).
//
//   positions[n, o, c'] = sum over taps k and channels c of the group: image[n, pixel(o, k), c] * weights[k, c, c']
//     Convolution (image src, positions dst), ConvTransposeBackwardData (image diff_dst, positions diff_src)
//   image[n, i, c] = sum over taps k and channels c' of the group: positions[n, position(i, k), c'] * weights[k, c, c']
//     ConvolutionBackwardData (image diff_src, positions diff_dst), ConvTranspose (image dst, positions src)
//   weights[k, c, c'] = sum over samples n and positions o: image[n, pixel(o, k), c] * positions[n, o, c']
//     ConvolutionBackwardWeights (image src, positions diff_dst), ConvTransposeBackwardWeights (image diff_dst, positions src)
#include <algorithm>
#include <array>

#include "backends/reference/op_run.h"
#include "backends/reference/products.h"
#include "backends/reference/rows.h"
#include "backends/reference/window.h"
#include "interface/shape_rules.h"
#include "interface/status.h"

namespace lamina::reference {
namespace {

// Data with the channels last: [batch, pixels, channels].
struct ChannelsLastImage {
  int64_t batch = 0, pixels = 0, channels = 0;
  std::vector<double> values;

  const double* row(int64_t n, int64_t pixel) const { return values.data() + (n * pixels + pixel) * channels; }
  double* row(int64_t n, int64_t pixel) { return values.data() + (n * pixels + pixel) * channels; }
};

ChannelsLastImage image_of(const OpRun& run, const Tensor& tensor) {
  const ChannelLayout layout = channel_layout(run, tensor);
  ChannelsLastImage pixels{layout.batch, layout.space, layout.channels, {}};
  if (layout.channels_last) {
    pixels.values = tensor.values;
    return pixels;
  }
  pixels.values.resize(tensor.values.size());
  parallel_for(layout.batch * layout.space, layout.channels, [&](int64_t i) {
    const int64_t n = i / layout.space, s = i % layout.space;
    for (int64_t c = 0; c < layout.channels; ++c) pixels.row(n, s)[c] = tensor[layout.at(n, c, s)];
  });
  return pixels;
}

ChannelsLastImage zero_image(const OpRun& run, const Tensor& tensor) {
  const ChannelLayout layout = channel_layout(run, tensor);
  return {layout.batch, layout.space, layout.channels, std::vector<double>(tensor.values.size(), 0.0)};
}

// `tensor` = `pixels` + bias. A null bias means 0.
void write_image(const OpRun& run, const ChannelsLastImage& pixels, const Tensor* bias, Tensor& tensor) {
  const ChannelLayout layout = channel_layout(run, tensor);
  parallel_for(layout.batch * layout.space, layout.channels, [&](int64_t i) {
    const int64_t n = i / layout.space, s = i % layout.space;
    for (int64_t c = 0; c < layout.channels; ++c)
      tensor[layout.at(n, c, s)] = pixels.row(n, s)[c] + (bias == nullptr ? 0 : (*bias)[c]);
  });
}

// The offset of the weight of tap k, group g, input channel i and output channel o of the group. In a convolution, the axis
// of the output channels contains all groups one after the other; in a transposed one, the axis of the input channels does.
struct Weights {
  Dims kernel;
  int64_t taps = 0, groups = 0, inputs = 0, outputs = 0;  // channels of one group
  int64_t tap_stride = 0, group_stride = 0, input_stride = 0, output_stride = 0;

  int64_t at(int64_t k, int64_t g, int64_t i, int64_t o) const {
    return k * tap_stride + g * group_stride + i * input_stride + o * output_stride;
  }
};

Weights weights_of(const OpRun& run, const Dims& shape, bool transposed) {
  const auto& format = run.attribute<std::string>("weights_format");
  const bool taps_last = format == "OIX" || format == "IOX";
  const bool inputs_first = format == "IOX" || format == "XIO";
  const auto rank = static_cast<std::ptrdiff_t>(shape.size());
  const auto channels = shape.begin() + (taps_last ? 0 : rank - 2);  // the two channel axes
  Weights w;
  w.kernel = taps_last ? Dims(shape.begin() + 2, shape.end()) : Dims(shape.begin(), shape.end() - 2);
  w.taps = count_of(w.kernel, 0, w.kernel.size());
  w.groups = run.attribute<int64_t>("groups");
  const int64_t inner = taps_last ? w.taps : 1;  // stride of the second channel axis
  const int64_t outer = channels[1] * inner;
  w.inputs = inputs_first ? channels[0] : channels[1];
  w.outputs = inputs_first ? channels[1] : channels[0];
  w.input_stride = inputs_first ? outer : inner;
  w.output_stride = inputs_first ? inner : outer;
  w.tap_stride = taps_last ? 1 : channels[0] * channels[1];
  int64_t& grouped = transposed ? w.inputs : w.outputs;
  grouped /= w.groups;
  w.group_stride = grouped * (transposed ? w.input_stride : w.output_stride);
  return w;
}

// The weights as matrices [tap][group][rows][columns]. The rows are the summed channels.
struct Matrices {
  int64_t groups = 0, rows = 0, columns = 0;
  std::vector<double> values;

  const double* of(int64_t tap, int64_t group) const { return values.data() + (tap * groups + group) * rows * columns; }
};

Matrices matrices_of(const Tensor& tensor, const Weights& w, bool inputs_are_rows) {
  Matrices m{w.groups, inputs_are_rows ? w.inputs : w.outputs, inputs_are_rows ? w.outputs : w.inputs, {}};
  m.values.reserve(tensor.values.size());
  for (int64_t k = 0; k < w.taps; ++k)
    for (int64_t g = 0; g < w.groups; ++g)
      for (int64_t row = 0; row < m.rows; ++row)
        for (int64_t column = 0; column < m.columns; ++column)
          m.values.push_back(tensor[inputs_are_rows ? w.at(k, g, row, column) : w.at(k, g, column, row)]);
  return m;
}

// result[n, p] += sum over taps of source[n, table[p, tap]] * matrix of the tap and group, for all groups.
void contract(const ChannelsLastImage& source, const std::vector<int64_t>& table, int64_t taps, const Matrices& weights,
              ChannelsLastImage& result) {
  const int64_t tiles = (result.pixels + kTileRows - 1) / kTileRows;
  const int64_t work = kTileRows * taps * weights.groups * weights.rows * weights.columns;
  parallel_for(result.batch * tiles, work, [&](int64_t item) {
    const int64_t n = item / tiles, first = item % tiles * kTileRows;
    const int rows = static_cast<int>(std::min<int64_t>(kTileRows, result.pixels - first));
    std::array<const double*, kTileRows> from{};
    std::array<double*, kTileRows> to{};
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t g = 0; g < weights.groups; ++g) {
        for (int t = 0; t < rows; ++t) {
          const auto row = static_cast<size_t>(t);
          const int64_t pixel = table[static_cast<size_t>((first + t) * taps + tap)];
          from[row] = pixel == kOutside ? nullptr : source.row(n, pixel) + g * weights.rows;
          to[row] = result.row(n, first + t) + g * weights.columns;
        }
        add_products(from.data(), to.data(), rows, weights.rows, weights.of(tap, g), weights.columns);
      }
  });
}

void positions_from_image(const OpRun& run, const char* image_port, const char* positions_port, bool transposed) {
  const Tensor& image = run.in(image_port);
  const Tensor& weights = run.in("weights");
  Tensor& positions = run.out(positions_port);
  const Weights w = weights_of(run, weights.shape, transposed);
  const Window window =
      window_of(run, spatial_extents(run.view(), image.shape), spatial_extents(run.view(), positions.shape), w.kernel);
  ChannelsLastImage result = zero_image(run, positions);
  contract(image_of(run, image), pixels_of_positions(window), w.taps, matrices_of(weights, w, !transposed), result);
  write_image(run, result, run.in_or_null("bias"), positions);
}

void image_from_positions(const OpRun& run, const char* positions_port, const char* image_port, bool transposed) {
  const Tensor& positions = run.in(positions_port);
  const Tensor& weights = run.in("weights");
  Tensor& image = run.out(image_port);
  const Weights w = weights_of(run, weights.shape, transposed);
  const Window window = window_of(run, spatial_extents(run.view(), image.shape), spatial_extents(run.view(), positions.shape),
                                  w.kernel, transposed);
  ChannelsLastImage result = zero_image(run, image);
  contract(image_of(run, positions), positions_of_pixels(window), w.taps, matrices_of(weights, w, transposed), result);
  write_image(run, result, run.in_or_null("bias"), image);
}

// Computes one row of products[rows of a tile][columns] per channel c of the image, as a sum over samples and positions.
void correlate(const ChannelsLastImage& image, const ChannelsLastImage& positions, const std::vector<int64_t>& pixels,
               int64_t taps, int64_t tap, int64_t image_channel, int rows, int64_t position_channel, int64_t columns,
               double* products) {
  for (int64_t n = 0; n < positions.batch; ++n)
    for (int64_t o = 0; o < positions.pixels; ++o) {
      const int64_t pixel = pixels[static_cast<size_t>(o * taps + tap)];
      if (pixel == kOutside) continue;
      const double* x = image.row(n, pixel) + image_channel;
      const double* y = positions.row(n, o) + position_channel;
      for (int t = 0; t < rows; ++t) {
        const double factor = x[t];
        double* sum = products + t * columns;
#pragma omp simd
        for (int64_t c = 0; c < columns; ++c) sum[c] += factor * y[c];
      }
    }
}

void weights_from_both(const OpRun& run, const char* image_port, const char* positions_port, bool transposed) {
  const ChannelsLastImage image = image_of(run, run.in(image_port)), positions = image_of(run, run.in(positions_port));
  Tensor& diff_weights = run.out("diff_weights");
  const Weights w = weights_of(run, diff_weights.shape, transposed);
  const Window window = window_of(run, spatial_extents(run.view(), run.in(image_port).shape),
                                  spatial_extents(run.view(), run.in(positions_port).shape), w.kernel, transposed);
  const std::vector<int64_t> pixels = pixels_of_positions(window);
  const int64_t image_channels = transposed ? w.outputs : w.inputs, position_channels = transposed ? w.inputs : w.outputs;
  const int64_t tiles = (image_channels + kTileRows - 1) / kTileRows;
  const int64_t work = positions.batch * positions.pixels * kTileRows * position_channels;
  parallel_for(w.taps * w.groups * tiles, work, [&](int64_t item) {
    const int64_t k = item / (w.groups * tiles), g = item / tiles % w.groups, first = item % tiles * kTileRows;
    const int rows = static_cast<int>(std::min<int64_t>(kTileRows, image_channels - first));
    std::vector<double> products(static_cast<size_t>(rows * position_channels), 0.0);
    correlate(image, positions, pixels, w.taps, k, g * image_channels + first, rows, g * position_channels, position_channels,
              products.data());
    for (int64_t t = 0; t < rows; ++t)
      for (int64_t c = 0; c < position_channels; ++c) {
        const int64_t at = transposed ? w.at(k, g, c, first + t) : w.at(k, g, first + t, c);
        diff_weights[at] = products[static_cast<size_t>(t * position_channels + c)];
      }
  });
}

void convolution(const OpRun& run) { positions_from_image(run, "src", "dst", false); }

void convolution_backward_data(const OpRun& run) {
  image_from_positions(run, "diff_dst", "diff_src", false);
  require_listed(run, "dst_shape", "diff_src");
}

void convolution_backward_weights(const OpRun& run) {
  weights_from_both(run, "src", "diff_dst", false);
  require_listed(run, "weights_shape", "diff_weights");
}

void conv_transpose(const OpRun& run) { image_from_positions(run, "src", "dst", true); }

void conv_transpose_backward_data(const OpRun& run) { positions_from_image(run, "diff_dst", "diff_src", true); }

void conv_transpose_backward_weights(const OpRun& run) {
  weights_from_both(run, "diff_dst", "src", true);
  require_listed(run, "weights_shape", "diff_weights");
}

}  // namespace

Evaluators convolution_evaluators() {
  return {{OpKind::Convolution, convolution},
          {OpKind::ConvolutionBackwardData, convolution_backward_data},
          {OpKind::ConvolutionBackwardWeights, convolution_backward_weights},
          {OpKind::ConvTranspose, conv_transpose},
          {OpKind::ConvTransposeBackwardData, conv_transpose_backward_data},
          {OpKind::ConvTransposeBackwardWeights, conv_transpose_backward_weights}};
}

}  // namespace lamina::reference
