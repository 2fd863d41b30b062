// A vector has successive channels of dst, and a register tile some pixels of a line of dst. Code for tiles inside of the image
// is shared by all; tiles at the border have their own. Convolutions of each channel by itself, of few channels, or dense: of
// many channels, whose weights are packed as panels.
#include "backends/cpu/library/products/lines.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "backends/cpu/code/jit.h"
#include "backends/cpu/dispatch/line_step.h"
#include "backends/cpu/product/product_schedule.h"
#include "backends/cpu/product/tuning.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using kernel::WindowedContraction;
using Axis = WindowedContraction::Axis;

// For more channels, products with pointers and libraries have enough work per pixel.
bool has_few_channels(const WindowedContraction& c) { return c.inner_terms.extent <= product_tuning::kChannelsOfLineTiles; }

// Many pixels of a line, of contiguous channels.
bool has_many_channels(const WindowedContraction& c) {
  return !has_few_channels(c) && c.inner_terms.left == 1 && c.axes.back().rows >= product_tuning::kLeastPixels &&
         c.axes.back().terms <= product_tuning::kTermsOfLineTiles;
}
bool has_shared_pixels(const WindowedContraction& c) {
  const bool has_few_terms =
      has_few_channels(c) && c.axes.back().terms * c.inner_terms.extent <= product_tuning::kTermsOfLineTiles;
  return c.columns.extent >= 64 / bytes_of(c.left.dtype, 1) && (has_few_terms || has_many_channels(c));
}

bool has_layout(const WindowedContraction& c, bool is_depthwise) {
  const DataType type = c.left.dtype;
  const bool has_types = (type == DataType::f32 || type == DataType::f64) && c.right.dtype == type && c.dst.dtype == type &&
                         (!c.has_bias() || (c.bias.dtype == type && c.columns.bias == 1));
  const bool has_dims = c.groups.extent == 1 && c.outer_terms.extent == 1 && c.inner_rows.extent == 1 && c.columns.dst == 1 &&
                        !c.axes.empty() && c.axes.back().divisor == 1;
  const bool is_one_channel = c.inner_terms.extent == 1 && c.axes.back().terms <= product_tuning::kTermsOfLineTiles;
  return has_types && !c.integers && has_dims && (is_depthwise ? is_one_channel : has_shared_pixels(c));
}

// The terms from the first one of a pixel of dst to that of the next pixel; 0: none, or not a whole number.
int64_t terms_of_pixel(const Axis& axis) {
  const bool is_whole = axis.per_term != 0 && axis.per_row % axis.per_term == 0;
  return is_whole ? std::max(axis.per_row / axis.per_term, int64_t{0}) : 0;
}

// A register tile: what fits the registers besides the weights of a term, and the 0 of pixels outside, which dense tiles leave
// out. Where all columns multiply the same elements, there is one more, and more sums need fewer loads.
struct Shape {
  int64_t vectors, pixels;
  bool loads_pixels_once = false;
};

Shape shape_of_depthwise(const WindowedContraction& c, int64_t registers, int64_t most_vectors) {
  const Axis& axis = c.axes.back();
  // Each pixel of src is loaded once if the weights of all terms are in registers, besides an element and a 0.
  const bool may_load_once = terms_of_pixel(axis) > 0 && registers >= product_tuning::kRegistersForThreeVectors;
  for (int64_t vectors = most_vectors; may_load_once && vectors > 0; --vectors) {
    const int64_t pixels = std::min((registers - 2) / vectors - axis.terms, product_tuning::kMostPixels);
    if (pixels >= product_tuning::kLeastPixels) return {vectors, pixels, true};
  }
  return {most_vectors, std::min((registers - 1 - most_vectors) / most_vectors, product_tuning::kMostPixels)};
}

Shape shape_of(const WindowedContraction& c, LineKind kind, const Machine& machine) {
  const int64_t vectors = parts(c.columns.extent, lanes_of(machine, c.left.dtype));
  const int64_t registers = machine.instructions->registers;
  const bool has_many = registers >= product_tuning::kRegistersForThreeVectors, is_dense = kind == LineKind::dense;
  const bool is_of_three = has_many && vectors % 3 == 0 && (vectors % 2 != 0 || !is_dense);
  const int64_t of_tile = is_of_three ? 3 : std::min<int64_t>(vectors, product_tuning::kLeastVectors);
  if (kind == LineKind::depthwise) return shape_of_depthwise(c, registers, of_tile);
  return {of_tile, (registers - (is_dense ? 1 : 2) - of_tile) / of_tile};
}

std::vector<bool> inside_of(const Axis& axis, int64_t first, int64_t pixels) {
  std::vector<bool> inside;
  for (int64_t pixel = first; pixel < first + pixels; ++pixel)
    for (int64_t term = 0; term < axis.terms; ++term) inside.push_back(axis.pixel(pixel, term) >= 0);
  return inside;
}

class Compiler {
 public:
  Compiler(const WindowedContraction& c, int columns_of_channel, const Machine& machine, int threads, ResultMap map)
      : c_(c),
        map_(std::move(map)),
        kind_(columns_of_channel > 0 ? LineKind::depthwise
              : has_many_channels(c) ? LineKind::dense
                                     : LineKind::few_channels),
        columns_of_channel_(std::max(columns_of_channel, 1)),
        machine_(machine),
        lanes_(lanes_of(machine, c.left.dtype)),
        lines_(c.outer_rows.extent) {
    const Shape shape = shape_of(c, kind_, machine);
    vectors_ = shape.vectors;
    if (shape.loads_pixels_once) pixel_terms_ = static_cast<int>(terms_of_pixel(c.axes.back()));
    for (size_t a = 0; a + 1 < c.axes.size(); ++a) lines_ *= c.axes[a].rows;
    cut_lines(shape.pixels);
    share(is_worth_threads(multiply_adds(), machine) ? threads : 1);
  }

  LineProgram program(bool is_matrix, bool are_packed_ahead) const {
    return {.left = c_.left.port,
            .right = c_.right.port,
            .dst = c_.dst.port,
            .bias = c_.has_bias() ? std::optional(c_.bias.port) : std::nullopt,
            .images = c_.outer_rows,
            .columns = c_.columns,
            .inner_terms = c_.inner_terms,
            .is_shared = !is_depthwise(),
            .is_dense = is_dense(),
            .columns_of_channel = columns_of_channel_,
            .axes = c_.axes,
            .element_bytes = bytes_of(c_.left.dtype, 1),
            .is_matrix = is_matrix,
            .are_packed_ahead = are_packed_ahead,
            .lanes = lanes_,
            .vectors = vectors_,
            .tiles = tiles_,
            .line_block = line_block_,
            .column_block = column_block_,
            .chunk = chunk(),
            .threads = threads_};
  }

  std::vector<LineCode> code() const {
    std::vector<LineCode> all;
    const int64_t channels = c_.columns.extent, rest = channels % width();
    for (const LineTile& tile : kinds_) {
      LineCode code;
      if (channels >= width()) code.whole = compiled(tile, vectors_, 0);
      if (rest > 0) code.last = compiled(tile, parts(rest, lanes_), static_cast<int>(rest % lanes_));
      all.push_back(std::move(code));
    }
    return all;
  }

  std::string name() const {
    const char* const kind = is_depthwise() ? "depthwise convolution, "
                             : is_dense()   ? "dense convolution, "
                                            : "convolution of few channels, ";
    return join(kind, tiles_.front().pixels, " pixels and ", vectors_, " vectors, ", line_block_, " of ", lines_, " lines, ",
                std::min(column_block_, c_.columns.extent), " of ", c_.columns.extent, " channels");
  }

 private:
  bool is_depthwise() const { return kind_ == LineKind::depthwise; }
  bool is_dense() const { return kind_ == LineKind::dense; }
  int64_t width() const { return vectors_ * lanes_; }
  int64_t terms() const {
    int64_t terms = c_.inner_terms.extent;
    for (const Axis& axis : c_.axes) terms *= axis.terms;
    return terms;
  }
  double multiply_adds() const {
    return static_cast<double>(lines_ * c_.axes.back().rows * parts(c_.columns.extent, lanes_) * terms());
  }

  // Tiles of almost equal width: the first ones have a pixel more.
  void cut_lines(int64_t most_pixels) {
    const Axis& axis = c_.axes.back();
    const int64_t count = parts(axis.rows, most_pixels), extra = axis.rows % count;
    for (int64_t tile = 0, first = 0; tile < count; ++tile) {
      const int64_t pixels = axis.rows / count + (tile < extra ? 1 : 0);
      add({.first = first, .pixels = pixels, .count = 1, .code = kind_of(first, pixels)});
      first += pixels;
    }
  }
  void add(const LineProgram::Tiles& tile) {
    const bool is_like_last = !tiles_.empty() && tiles_.back().code == tile.code;
    if (is_like_last)
      ++tiles_.back().count;
    else
      tiles_.push_back(tile);
  }
  size_t kind_of(int64_t first, int64_t pixels) {
    const Axis& axis = c_.axes.back();
    LineTile tile{.type = c_.sum_type(),
                  .vector_bits = static_cast<int>(lanes_ * bits_of(c_.left.dtype)),
                  .pixels = static_cast<int>(pixels),
                  .terms = static_cast<int>(axis.terms),
                  .kind = kind_,
                  .channels = is_dense() ? 0 : static_cast<int>(c_.inner_terms.extent),
                  .columns_of_channel = columns_of_channel_,
                  .pixel_terms = pixel_terms_,
                  .inside = inside_of(axis, first, pixels),
                  .map = map_};
    const auto found = std::find_if(kinds_.begin(), kinds_.end(), [&](const LineTile& kind) {
      return kind.pixels == tile.pixels && kind.inside == tile.inside;
    });
    if (found != kinds_.end()) return static_cast<size_t>(found - kinds_.begin());
    kinds_.push_back(std::move(tile));
    return kinds_.size() - 1;
  }

  // Threads share the larger of rows and channels, as in products, so that they find in their caches what they wrote.
  void share(int threads) {
    threads_ = threads;
    line_block_ = lines_;
    column_block_ = parts(c_.columns.extent, width()) * width();
    if (threads == 1) return;
    const int64_t units = threads * product_tuning::kUnitsPerThread;
    if (c_.columns.extent > lines_ * c_.axes.back().rows)
      column_block_ = parts(parts(c_.columns.extent, units), width()) * width();
    else
      line_block_ = block_of_lines(threads, units);
  }

  // With which the thread that has most lines has as few as possible.
  int64_t block_of_lines(int64_t threads, int64_t units) const {
    const auto most = [&](int64_t block) { return parts(parts(lines_, block), threads) * block; };
    int64_t best = parts(lines_, units);
    for (int64_t block = best; block <= parts(lines_, threads); ++block)
      if (most(block) < most(best)) best = block;
    return best;
  }

  // Columns for which the lines of a window fit half of the first-level cache.
  int64_t chunk() const {
    const Axis& axis = c_.axes.back();
    if (is_dense()) return width();
    if (!is_depthwise()) return column_block_;
    const int64_t bytes = terms() / axis.terms * axis.pixels * bytes_of(c_.left.dtype, 1);
    return std::max(machine_.caches.first / 2 / bytes * columns_of_channel_ / width(), int64_t{1}) * width();
  }

  CompiledCode compiled(LineTile tile, int64_t vectors, int last_lanes) const {
    tile.vectors = static_cast<int>(vectors);
    tile.last_lanes = last_lanes;
    return compile_code(source_of(tile), machine_);
  }

  const WindowedContraction& c_;
  const ResultMap map_;
  const LineKind kind_;
  const int columns_of_channel_;
  const Machine& machine_;
  int64_t lanes_, vectors_ = 1, lines_, line_block_ = 1, column_block_ = 1;
  int threads_ = 1, pixel_terms_ = 0;
  std::vector<LineTile> kinds_;
  std::vector<LineProgram::Tiles> tiles_;
};

}  // namespace

std::unique_ptr<const Primitive> line_convolution(const WindowedContraction& c, int columns_of_channel, bool is_matrix,
                                                  const Machine& machine, const PrimitiveUse& use) {
  if (!has_layout(c, columns_of_channel > 0)) return nullptr;
  ResultMap map;
  if (use.following != nullptr) map = result_map_of(*use.following, c.sum_type());
  const Compiler compiler(c, columns_of_channel, machine, use.threads, map);
  const bool may_pack = use.packs_weights && !use.reads_packed_once && c.right.port == 1;
  const bool is_packed = use.like != nullptr ? use.like->packed_bytes() > 0 : may_pack;
  return std::make_unique<const LineStep>(compiler.program(is_matrix, is_packed), compiler.code(), compiler.name(),
                                          !map.is_empty());
}

}  // namespace lamina::cpu
