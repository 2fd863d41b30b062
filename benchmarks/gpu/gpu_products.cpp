// Times matrix products and convolutions on a GPU in every tile that they may have, beside the one that is chosen. This is what
// the figures of tiles in src/backends/gpu/schedule/tuning.h follow from. Timed with the device's events: several calls one
// after the other, the fastest of five times.
//
//   gpu_products [DEVICE] [--smoke] [--part I/N]
//     DEVICE      cuda, opencl, cuda:1, ...
//     --smoke     small sizes, once, as a test
//     --part I/N  every N-th row from row I on. Several processes compile in parallel for LAMINA_CACHE_DIR, before one measures
//
// A row of the table, in Markdown: the time of a call in each tile, in us; that of the chosen tile is marked by *. Products
// whose sums are divided among work-groups have a row per length of a segment, the chosen one marked by *. Factors that may be
// copied with their channels last have a row with copies and one without. The other functions of a program have their times
// alone in addition; the tiles' times include them.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/gpu/devices/devices.h"
#include "backends/gpu/emit/emit_convolution.h"
#include "backends/gpu/emit/emit_matmul.h"
#include "backends/gpu/generated_library.h"
#include "backends/gpu/schedule/tuning.h"
#include "interface/data_type.h"
#include "interface/status.h"
#include "support/convolution_graphs.h"
#include "support/library_step.h"

namespace lamina {
namespace {

using kernel::WindowedContraction;
using testing::ConvolutionCase;

// Tiles to compare with those that may be chosen.
const std::vector<gpu::MatrixTile> kOtherTiles = {{16, 64, 64, 6, 1, 4}, {16, 32, 64, 8, 1, 2}, {32, 64, 64, 6, 2, 2}};

class Bench {
 public:
  Bench(gpu::Device& device, bool smoke) : device_(device), smoke_(smoke) {}
  ~Bench() { release(); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  bool has_matrix_tile(const gpu::MatrixTile& tile) const {
    const gpu::DeviceLimits limits = device_.limits();
    return tile.local_bytes() <= limits.local_bytes && (!tile.by_four_warps || limits.multiplies_by_four_warps);
  }

  // `is_gradient`: of weights, src is dense along the rows.
  void product(DataType dtype, int64_t m, int64_t n, int64_t k, bool is_gradient = false) {
    kernel::MatmulStack stack{.m = m, .n = n, .k = k};
    stack.src = {m, k, is_gradient ? 1 : k, is_gradient ? m : 1, {}, dtype}, stack.weights = {k, n, n, 1, {}, dtype},
    stack.dst = {m, n, n, 1, {}, dtype};
    const std::vector<gpu::BufferView> views = {random(dtype, m * k), random(dtype, k * n), random(dtype, m * n)};
    const gpu::MatmulForm chosen = choose_form(stack, device_.limits(), device_.language());
    for (const int64_t segment : segments(chosen.segment_terms, k)) {
      gpu::MatmulForm in_segments = chosen;
      in_segments.segment_terms = segment;
      std::printf("| %s | %lldx%lldx%lld%s |", std::string(name_of(dtype)).c_str(), static_cast<long long>(m),
                  static_cast<long long>(n), static_cast<long long>(k), in_words(segment, in_segments == chosen).c_str());
      cells(stack, in_segments, chosen, views);
    }
    release();
  }

  void convolution(const ConvolutionCase& of) {
    const kernel::LibraryStep step = testing::library_step_of(graph_of(of));
    const WindowedContraction c = kernel::windowed_contraction_of(step);
    std::vector<gpu::BufferView> views;
    for (const WindowedContraction::Tensor* tensor : {&c.left, &c.right, &c.bias, &c.dst}) {
      if (tensor == &c.bias && !c.has_bias()) continue;
      const LogicalTensor& of_port = tensor == &c.dst ? step.outputs[0] : step.inputs.at(tensor->port);
      views.push_back(random(tensor->dtype, of_port.byte_size() / bytes_of(tensor->dtype, 1)));
    }
    const gpu::ConvolutionForm chosen = choose_form(c, device_.limits(), device_.language());
    const auto row = [&](const gpu::ConvolutionForm& form) {
      std::printf("| %s %s%s%s | %lldx%lldx%lld, %s%s%s |", std::string(name_of(of.dtype)).c_str(),
                  std::string(name_of(of.kind)).c_str(), of.channels_last ? " NXC" : " NCX", of.taps_first ? "" : " OIX",
                  static_cast<long long>(c.row_count()), static_cast<long long>(c.columns.extent),
                  static_cast<long long>(c.term_count()), kernel::print(c).c_str(),
                  in_words(form.segment_terms, form.segment_terms == chosen.segment_terms).c_str(),
                  in_words(form.copies, form.copies == chosen.copies).c_str());
      cells(c, form, chosen, views);
    };
    for (const int64_t segment : segments(chosen.segment_terms, c.term_count())) {
      gpu::ConvolutionForm in_segments = chosen;
      in_segments.segment_terms = segment;
      row(in_segments);
    }
    const gpu::FactorCopies possible = chosen.matrix_tile ? gpu::copies_that_make_chunks(c) : gpu::FactorCopies{};
    for (const gpu::FactorCopies& copies : {gpu::FactorCopies{}, possible}) {
      gpu::ConvolutionForm other = chosen;
      other.copies = copies;
      if (copies != chosen.copies) row(other);
    }
    release();
  }

 private:
  // Not divided, and the chosen length with others. All divided sums have one program per tile.
  static std::vector<int64_t> segments(int64_t chosen, int64_t terms) {
    std::vector<int64_t> all = {0};
    for (const int64_t segment : {chosen * 4, chosen * 2, chosen, chosen / 2, chosen / 4})
      if (segment > 0 && segment < terms && segment % gpu::tuning::kSegmentUnit == 0) all.push_back(segment);
    return all;
  }
  static std::string in_words(int64_t segment, bool is_chosen) {
    return segment == 0 ? "" : join(", segments of ", segment, is_chosen ? "*" : "");
  }
  static std::string in_words(const gpu::FactorCopies& copies, bool is_chosen) {
    if (copies == gpu::FactorCopies{}) return "";
    return join(", copies of ", copies.left ? "left" : "", copies.left && copies.right ? " and " : "",
                copies.right ? "right" : "", is_chosen ? "*" : "");
  }
  static gpu::KernelSource source_of(const kernel::MatmulStack&, const gpu::MatmulForm& form, const gpu::Language& l) {
    return emit_matmul(form, l);
  }
  static gpu::KernelSource source_of(const WindowedContraction& c, const gpu::ConvolutionForm& form, const gpu::Language& l) {
    return emit_convolution(c, form, l);
  }

  template <typename Product, typename Form>
  void cells(const Product& product, const Form& in_segments, const Form& chosen, std::vector<gpu::BufferView> views) {
    const size_t scratch_bytes = scratch_bytes_of(product, in_segments);
    if (scratch_bytes != 0) views.push_back(memory(scratch_bytes));
    bool is_first = true;
    for (const Form& form : forms(in_segments)) {
      const gpu::KernelSource source = source_of(product, form, device_.language());
      const auto module = device_.load(source).module;
      const std::vector<int64_t> words = words_of(product, form);
      const std::vector<gpu::Launch> launches = launches_of(product, form);
      const auto launch = [&](void* stream, size_t f) {
        module->launch(stream, f, gpu::group_count(launches[f]), launches[f].group_size, views, words);
      };
      for (size_t f = 0; is_first && f < launches.size(); ++f)
        if (source.symbols[f] != source.symbol)
          std::printf(" %s %.1f |", source.symbols[f].substr(source.symbol.size() + 1).c_str(),
                      1e3 * milliseconds([&](void* stream) { launch(stream, f); }));
      is_first = false;
      const double time = milliseconds([&](void* stream) {
        for (size_t f = 0; f < launches.size(); ++f) launch(stream, f);
      });
      const bool is_chosen = form.matrix_tile == chosen.matrix_tile && form.tile == chosen.tile;
      std::printf(" %dx%d/%d%s %.1f%s |", form.rows(), form.columns(), form.group_size(), more_of(form).c_str(), 1e3 * time,
                  is_chosen ? "*" : "");
      std::fflush(stdout);
    }
    std::printf("\n");
  }

  // Of a call, the least.
  double milliseconds(const std::function<void(void* stream)>& call) {
    const auto calls = [&](int count) {
      return device_.time([&](void* stream) {
        for (int i = 0; i < count; ++i) call(stream);
      });
    };
    double least = calls(1);
    if (smoke_) return least;
    const int count = static_cast<int>(std::clamp(2 / std::max(calls(1), 1e-3), 1.0, 50.0));
    for (int run = 0; run < 5; ++run) least = std::min(least, calls(count) / count);
    return least;
  }

  // The chosen form, and the same in the other tiles of its kind.
  template <typename Form>
  std::vector<Form> forms(const Form& chosen) const {
    std::vector<Form> all;
    if (!chosen.matrix_tile) return other_tiles_of_threads(chosen);
    std::vector<gpu::MatrixTile> tiles(gpu::tuning::kMatrixTiles.begin(), gpu::tuning::kMatrixTiles.end());
    tiles.insert(tiles.end(), kOtherTiles.begin(), kOtherTiles.end());
    for (const gpu::MatrixTile& tile : tiles) {
      if (!has_matrix_tile(tile)) continue;
      all.push_back(chosen);
      all.back().matrix_tile = tile;
    }
    return all;
  }

  // Tiles of other shapes, with one or two stages; those of few rows stay.
  template <typename Form>
  static std::vector<Form> other_tiles_of_threads(const Form& chosen) {
    std::vector<Form> all;
    const auto add = [&](const gpu::ProductTile& tile) {
      for (const int stages : {1, 2}) {
        all.push_back(chosen);
        all.back().tile = tile, all.back().tile.stages = stages;
      }
    };
    const gpu::ProductTile& of_chosen = chosen.tile;
    if (of_chosen.per_thread_rows == 1 || of_chosen.per_thread_columns == 1 || of_chosen.sums != kernel::Type::f32)
      return add(of_chosen), all;
    for (const gpu::tuning::TimedProductTile& timed : gpu::tuning::kProductTiles) add(gpu::product_tile_of(timed));
    return all;
  }
  // Of a tile by threads: its depth and stages.
  static std::string more_of(const gpu::TileForm& form) {
    return form.matrix_tile ? "" : join(" d", form.tile.depth, "s", form.tile.stages);
  }

  gpu::BufferView random(DataType dtype, int64_t elements) {
    std::vector<char> values(static_cast<size_t>(bytes_of(dtype, std::min<int64_t>(elements, 1 << 20))));
    std::mt19937 random(1);
    std::normal_distribution<double> around;
    for (int64_t i = 0; i < std::min<int64_t>(elements, 1 << 20); ++i)
      store_from_double(dtype, values.data(), i, around(random));
    const auto bytes = static_cast<size_t>(bytes_of(dtype, elements));
    const gpu::BufferView view = memory(bytes);
    for (size_t at = 0; at < bytes; at += values.size())
      device_.copy_in(nullptr, view.memory, static_cast<int64_t>(at), values.data(), std::min(values.size(), bytes - at));
    return view;
  }
  gpu::BufferView memory(size_t bytes) { return {held_.emplace_back(device_.allocate(bytes)), 0}; }
  void release() {
    for (void* const memory : held_) device_.release(memory);
    held_.clear();
  }

  gpu::Device& device_;
  bool smoke_;
  std::vector<void*> held_;
};

// Of a network of residual blocks, with 32 samples.
std::vector<ConvolutionCase> convolutions(bool smoke) {
  const auto of = [&](int64_t from, int64_t to, int64_t space, int64_t taps, int64_t stride) {
    ConvolutionCase c{.batch = smoke ? 1 : 32, .src_channels = from, .dst_channels = to, .space = {space, space}};
    c.kernel = {taps, taps}, c.strides = {stride, stride}, c.pads_begin = c.pads_end = {taps / 2, taps / 2};
    c.taps_first = true, c.has_bias = false, c.dtype = DataType::bf16;
    return c;
  };
  if (smoke) return {of(16, 16, 8, 3, 1)};
  return {of(64, 64, 56, 3, 1), of(256, 256, 14, 3, 1), of(256, 64, 56, 1, 1), of(128, 128, 28, 3, 2)};
}

struct Options {
  std::string device;
  bool smoke = false;
  int part = 0, parts = 1;
};

std::vector<std::function<void(Bench&)>> rows_of_table(bool smoke) {
  std::vector<std::function<void(Bench&)>> rows;
  const int64_t side = smoke ? 64 : 4096;
  for (const DataType dtype : {DataType::bf16, DataType::f32})
    for (const int64_t m : smoke ? Dims{1, 40} : Dims{4096, 2048, 1024, 512, 256, 128, 64, 16, 1})
      rows.emplace_back([=](Bench& bench) { bench.product(dtype, m, side, side); });
  for (const auto& [m, n, k] : smoke ? std::vector<std::array<int64_t, 3>>{{64, 64, 16384}}
                                     : std::vector<std::array<int64_t, 3>>{
                                           {768, 768, 16384}, {256, 256, 65536}, {3072, 768, 32768}, {16384, 64, 16384}})
    rows.emplace_back([=](Bench& bench) { bench.product(DataType::bf16, m, n, k, true); });
  const auto add = [&](ConvolutionCase c, OpKind kind, bool channels_last, bool taps_first = true) {
    c.kind = kind, c.channels_last = channels_last, c.taps_first = taps_first;
    rows.emplace_back([=](Bench& bench) { bench.convolution(c); });
  };
  for (const ConvolutionCase& c : convolutions(smoke)) {
    add(c, OpKind::Convolution, true);
    add(c, OpKind::Convolution, false);
    add(c, OpKind::Convolution, false, false);
    add(c, OpKind::ConvolutionBackwardData, true);
    add(c, OpKind::ConvolutionBackwardData, false);
    add(c, OpKind::ConvolutionBackwardWeights, true);
    add(c, OpKind::ConvolutionBackwardWeights, false);
  }
  return rows;
}

int run(const Options& options) {
  std::shared_ptr<gpu::Device> device;
  try {
    device = gpu::open_device(options.device);
  } catch (const Error& error) {
    std::printf("nothing is measured: %s\n", error.what());
    return error.status() == Status::invalid_arguments ? 2 : 0;
  }
  Bench bench(*device, options.smoke);
  std::printf("%s (%s)\n\n| type | sizes | tiles/threads us |\n| --- | --- | --- |\n", device->name().c_str(),
              std::string(device->api()).c_str());
  const auto rows = rows_of_table(options.smoke);
  for (size_t row = static_cast<size_t>(options.part); row < rows.size(); row += static_cast<size_t>(options.parts))
    rows[row](bench);
  return 0;
}

}  // namespace
}  // namespace lamina

int main(int argc, char** argv) {
  lamina::Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--smoke") == 0)
      options.smoke = true;
    else if (std::strcmp(argv[i], "--part") == 0 && i + 1 < argc &&
             std::sscanf(argv[i + 1], "%d/%d", &options.part, &options.parts) == 2 && options.part >= 0 && options.parts > 0)
      ++i;
    else
      options.device = argv[i];
  }
  try {
    return lamina::run(options);
  } catch (const lamina::Error& error) {
    std::fprintf(stderr, "gpu_products: %s\n", error.what());
    return 1;
  }
}
