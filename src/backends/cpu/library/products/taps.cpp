// A vector has successive channels, and a register tile the sums of all taps of some rows of taps, to which each position is
// added once. Channels that are not contiguous are copied to scratch memory, an image at a time, which the second-level cache
// holds in most networks.
#include "backends/cpu/library/products/taps.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "backends/cpu/code/code_source.h"
#include "backends/cpu/code/jit.h"
#include "backends/cpu/dispatch/tap_step.h"
#include "backends/cpu/library/products/product_runner.h"
#include "backends/cpu/product/product_schedule.h"
#include "backends/cpu/product/tuning.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using kernel::WindowedContraction;
using Axis = WindowedContraction::Axis;

bool is_depthwise_gradient(const WindowedContraction& c) {
  return c.sums_samples && c.groups.extent > 1 && c.columns.extent == 1 && c.inner_rows.extent == 1 && !c.axes.empty();
}

// The positions of a line that see all taps inside of the image, which are successive.
struct Inner {
  int64_t first = 0, count = 0;
};
Inner inner_of(const Axis& axis) {
  const auto sees_all = [&](int64_t position) {
    for (int64_t tap = 0; tap < axis.rows; ++tap)
      if (axis.pixel(tap, position) < 0) return false;
    return true;
  };
  Inner inner;
  while (inner.first < axis.terms && !sees_all(inner.first)) ++inner.first;
  while (inner.first + inner.count < axis.terms && sees_all(inner.first + inner.count)) ++inner.count;
  return inner;
}

// Lines of positions that follow each other in memory.
bool has_successive_lines(const WindowedContraction& c) {
  for (size_t a = c.axes.size(); a-- > 1;)
    if (c.axes[a - 1].right != c.axes[a].right * c.axes[a].terms) return false;
  return true;
}

// A register tile: rows of taps, and vectors of channels.
struct Shape {
  int64_t rows, vectors;
};

class Compiler {
 public:
  Compiler(const WindowedContraction& c, const Machine& machine, int threads)
      : c_(c),
        machine_(machine),
        axis_(c.axes.back()),
        sums_(kernel::data_type_of(c.sum_type())),
        lanes_(lanes_of(machine, sums_)),
        inner_(inner_of(axis_)) {
    for (size_t a = 0; a + 1 < c.axes.size(); ++a) rows_ *= c.axes[a].rows;
    threads_ = is_worth_threads(multiply_adds(), machine) ? threads : 1;
    lanes_ = lanes_for(c.groups.extent, lanes_, threads_);
    shape_ = best_shape();
  }

  bool fits() const { return shape_ && axis_.terms - inner_.count <= product_tuning::kTermsOfLineTiles; }

  std::unique_ptr<const Primitive> step() const {
    const auto copies_of = [&](DataType from, DataType to) { return matrix_copy(from, to, machine_, vector_bits()); };
    std::vector<TapCode> code{code_of(shape_->rows)};
    if (const int64_t rest = rows_ % shape_->rows; rest > 0) code.push_back(code_of(rest));
    return std::make_unique<const TapStep>(
        program(), std::move(code),
        TapCopies{copies_of(c_.left.dtype, sums_), copies_of(c_.right.dtype, sums_), copies_of(sums_, c_.dst.dtype)},
        join("depthwise weight gradient, ", shape_->rows, " rows of ", axis_.rows, " taps and ", shape_->vectors, " vectors"));
  }

 private:
  int vector_bits() const { return static_cast<int>(lanes_ * bits_of(sums_)); }
  int64_t width() const { return shape_->vectors * lanes_; }

  double multiply_adds() const {
    return static_cast<double>(c_.term_count()) * static_cast<double>(rows_ * axis_.rows * parts(c_.groups.extent, lanes_));
  }

  // A vector that is shorter than a register gives each thread some of few channels.
  static int64_t lanes_for(int64_t channels, int64_t lanes, int threads) {
    constexpr int64_t kLeast = 4;
    while (lanes > kLeast && parts(channels, lanes) < threads) lanes /= 2;
    return lanes;
  }

  // The fewest cycles of the thread that has most to do. A position takes the time to load it and what its taps see, two loads
  // a cycle, and no less than a multiply-add waits for the one before.
  std::optional<Shape> best_shape() const {
    constexpr double kLatency = 4, kLoads = 2;
    const int64_t registers = machine_.instructions->registers, vectors = parts(c_.groups.extent, lanes_);
    std::optional<Shape> best;
    double least = 0;
    for (int64_t v = 1; v <= vectors; ++v) {
      const int64_t most = (registers - 1 - v) / (axis_.rows * v);
      if (most < 1) break;
      const int64_t tiles = parts(rows_, most), rows = parts(rows_, tiles);
      const double of_position = std::max(kLatency, static_cast<double>(v * (rows * axis_.rows + 1)) / kLoads);
      const double cycles = static_cast<double>(parts(parts(vectors, v), threads_) * tiles) * of_position;
      if (best && cycles >= least) continue;
      best = {rows, v};
      least = cycles;
    }
    return best;
  }

  TapCode code_of(int64_t rows) const {
    const int64_t channels = c_.groups.extent, rest = channels % width();
    TapTile tile{.type = c_.sum_type(),
                 .vector_bits = vector_bits(),
                 .vectors = static_cast<int>(shape_->vectors),
                 .rows = static_cast<int>(rows),
                 .taps = static_cast<int>(axis_.rows),
                 .before = static_cast<int>(inner_.first),
                 .after = static_cast<int>(axis_.terms - inner_.first - inner_.count)};
    for (int64_t position = 0; position < axis_.terms; ++position) {
      if (position == inner_.first) position += inner_.count;
      for (int64_t tap = 0; position < axis_.terms && tap < axis_.rows; ++tap)
        tile.inside.push_back(axis_.pixel(tap, position) >= 0);
    }
    TapCode code;
    if (channels >= width()) code.whole = compile_code(source_of(tile), machine_);
    tile.vectors = static_cast<int>(parts(rest, lanes_));
    tile.last_lanes = static_cast<int>(rest % lanes_);
    if (rest > 0) code.last = compile_code(source_of(tile), machine_);
    return code;
  }

  TapProgram program() const {
    return {.left = c_.left.port,
            .right = c_.right.port,
            .dst = c_.dst.port,
            .images = c_.outer_terms,
            .channels = c_.groups,
            .axes = c_.axes,
            .left_bytes = bytes_of(c_.left.dtype, 1),
            .right_bytes = bytes_of(c_.right.dtype, 1),
            .dst_bytes = bytes_of(c_.dst.dtype, 1),
            .sum_bytes = bytes_of(sums_, 1),
            .copies_left = c_.groups.left != 1 || c_.left.dtype != sums_,
            .copies_right = c_.groups.right != 1 || c_.right.dtype != sums_ || !has_successive_lines(c_),
            .lanes = lanes_,
            .vectors = shape_->vectors,
            .rows = shape_->rows,
            .inner = inner_.count,
            .threads = threads_};
  }

  const WindowedContraction& c_;
  const Machine& machine_;
  const Axis& axis_;
  const DataType sums_;
  int64_t lanes_;
  const Inner inner_;
  int64_t rows_ = 1;  // of taps
  int threads_ = 1;
  std::optional<Shape> shape_;
};

}  // namespace

std::unique_ptr<const Primitive> depthwise_weight_gradient(const WindowedContraction& c, const Machine& machine,
                                                           const PrimitiveUse& use) {
  if (!is_depthwise_gradient(c)) return nullptr;
  const Compiler compiler(c, machine, use.threads);
  return compiler.fits() ? compiler.step() : nullptr;
}

}  // namespace lamina::cpu
