// Pools, resampling and their gradients: sums and maxima over the taps of windows (interface/windows.h). A gradient sums over
// the windows that had read a position, in their order.
#include "interface/windows.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "interface/shape_rules.h"
#include "interface/status.h"
#include "kernels/op_lowering.h"

namespace lamina::kernel {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A tensor whose spatial axes are read by tap.
struct Image {
  int arg = -1;
  Dims spatial_strides;
};

// The taps at the positions of the loop nest. They are loops of their own, or the functions here visit them one by one.
class Taps {
 public:
  using Tap = Dims;  // its number along each axis; 0 in loops

  Taps(OpLowering& op, Windows windows)
      : k(op.k),
        op_(op),
        windows_(std::move(windows)),
        first_(has_channels_last(op.op()) ? 1 : 2),
        are_loops_(windows_.are_loops()),
        rank_(windows_.axes.size() + 2) {}

  // The reduction over all taps: `term` of each of them.
  using Term = std::function<Value(const Tap&)>;
  Value sum(const Term& term) { return over(Reduction::sum, 0, term); }
  Value maximum(const Term& term) { return over(Reduction::maximum, -kInfinity, term); }
  // The sum of terms of which some outputs have many and most have few. The sum of many may be as small as a term after larger
  // partial sums, whose roundings would be visible. So each term is cut: its high part is a multiple of one power of two for
  // all taps, with so few bits that the sum of these parts is exact.
  Value accurate_sum(const Term& of_tap) {
    constexpr int64_t kFew = 9;
    constexpr double kLarge = 0x1p100;  // beyond it, cutting might overflow
    const int64_t count = windows_.taps();
    if (count <= kFew || is_empty()) return sum(of_tap);
    const Term term = once_per_tap(of_tap);
    const Value largest = maximum([&](const Tap& tap) { return abs(term(tap)); }), is_cut = less(largest, kLarge);
    const Value grid = select(is_cut, largest * static_cast<double>(2 * count), 0);
    const Term high = once_per_tap([&](const Tap& tap) { return (term(tap) + grid) - grid; });
    const Value total = sum(high), rest = sum([&](const Tap& tap) { return term(tap) - high(tap); });
    return k.select(is_cut, total + rest, total);
  }
  // `term`, computed once for each tap.
  static Term once_per_tap(Term term) {
    return [term = std::move(term), known = std::map<Tap, Value>()](const Tap& tap) mutable {
      Value& value = known[tap];
      return value ? value : value = term(tap);
    };
  }
  Value weighted_sum(const Image& image) {
    const auto weighted = [&](const Tap& tap, Value before) {
      const Value weight = weight_of(tap), value = load(image, tap, 0);
      if (!weight) return before ? before + value : value;
      return before ? fma(weight, value, before) : weight * value;
    };
    if (is_empty()) return constant(0);
    if (are_loops_) return k.reduce(Reduction::sum, weighted(Tap(windows_.axes.size(), 0), {}));
    Value total;
    for (const Tap& tap : all()) total = weighted(tap, total);
    return total;
  }
  // The number of the first tap for which `holds`, infinity if there is none.
  Value first(const std::function<Value(const Tap&)>& holds) {
    if (is_empty()) return k.constant(kInfinity, Type::f32);
    Value found = k.constant(kInfinity, Type::f32);
    if (are_loops_) {
      const Tap tap(windows_.axes.size(), 0);
      return k.reduce(Reduction::minimum, k.select(holds(tap), number_of(tap, counts()), found));
    }
    const std::vector<Tap> taps = all();
    for (size_t i = taps.size(); i-- > 0;) found = k.select(holds(taps[i]), number_of(taps[i], counts()), found);
    return found;
  }

  Image image(int port) {
    const Dims strides = strides_in_memory(op_.input_tensor(port));
    return image_with(port, strides, [&](const InputRead& how) { return op_.input_arg(port, how); });
  }
  // Values that a kernel ahead has computed for the positions of `port`.
  Image image_ahead(int port) {
    return image_with(port, dense_strides(*op_.input_tensor(port).shape),
                      [&](const InputRead& how) { return op_.ahead_arg(0, how); });
  }

  Value load(const Image& image, const Tap& tap, double otherwise) {
    const Value value =
        loads_without_index() ? k.load(image.arg) : k.load_entry(image.arg, entry_of(image, tap), exists(tap), otherwise);
    return k.cast(value, op_.float_type());
  }
  // A boolean; none if each tap reads something.
  Value exists(const Tap& tap) {
    Value all;
    for (size_t axis = 0; axis < windows_.axes.size(); ++axis) {
      const Value here = once(exists_, axis, tap[axis], [&] { return exists_along(axis, tap[axis]); });
      if (here) all = all ? k.map(MapOp::logical_and, all, here) : here;
    }
    return all;
  }
  // The number of the tap in its window, of which `counts` has the extents.
  Value number_of(const Tap& tap, const Dims& counts) {
    Value number = k.constant(0, Type::f32);
    for (size_t axis = 0; axis < windows_.axes.size(); ++axis)
      number = number * static_cast<double>(counts[axis]) +
               once(numbers_, axis, tap[axis], [&] { return number_along(axis, tap[axis]); });
    return number;
  }
  // How many positions the window averages.
  Value divisor() {
    double constant_part = 1;
    Value product;
    for (size_t axis = 0; axis < windows_.axes.size(); ++axis) {
      const AxisTaps& taps = windows_.axes[axis];
      if (taps.inside.empty()) {
        constant_part *= static_cast<double>(taps.divisor);
        continue;
      }
      const Value inside =
          k.load(k.add_arg({.name = name("inside", axis), .strides = along_output(axis), .table = taps.inside}));
      product = product ? product * inside : inside;
    }
    return product ? k.cast(product * constant_part, op_.float_type()) : constant(constant_part);
  }
  Value constant(double value) { return k.constant(value, op_.float_type()); }
  Dims counts() const {
    Dims counts;
    for (const AxisTaps& axis : windows_.axes) counts.push_back(axis.count);
    return counts;
  }

 private:
  using Known = std::map<std::pair<size_t, int64_t>, Value>;  // by axis and tap

  template <typename Make>
  static Value once(Known& known, size_t axis, int64_t tap, const Make& make) {
    const std::pair key{axis, tap};
    if (const auto found = known.find(key); found != known.end()) return found->second;
    return known[key] = make();
  }

  // No tap reads anything.
  bool is_empty() const {
    return windows_.taps() == 0 ||
           std::any_of(windows_.axes.begin(), windows_.axes.end(), [](const AxisTaps& axis) { return axis.inputs == 0; });
  }

  std::vector<Tap> all() const {
    std::vector<Tap> taps;
    for (int64_t i = 0; i < windows_.taps(); ++i) {
      Tap tap(windows_.axes.size(), 0);
      int64_t rest = i;
      for (size_t axis = tap.size(); axis-- > 0; rest /= windows_.axes[axis].count)
        tap[axis] = rest % windows_.axes[axis].count;
      taps.push_back(std::move(tap));
    }
    return taps;
  }

  Value over(Reduction how, double neutral, const Term& term) {
    if (is_empty()) return constant(neutral);
    if (are_loops_) return k.reduce(how, term(Tap(windows_.axes.size(), 0)));
    Value total;
    for (const Tap& tap : all()) {
      const Value value = term(tap);
      total = !total ? value : how == Reduction::sum ? total + value : max(total, value);
    }
    return total;
  }

  // ---- dims of the loop nest

  Dims unit(size_t axis) const {
    Dims strides(rank_, 0);
    strides[first_ + axis] = 1;
    return strides;
  }
  Dims along_output(size_t axis) const { return op_.strides_of_output(0, unit(axis)); }
  Dims along_taps(size_t axis) const { return op_.strides_in_nest(0, unit(axis)); }
  static void add(Dims& sum, const Dims& steps, int64_t times) {
    for (size_t d = 0; d < sum.size(); ++d) sum[d] += steps[d] * times;
  }
  // Along an axis without a table: the steps of the position that is read, in units of `stride`.
  void add_steps(Dims& sum, size_t axis, int64_t stride) const {
    add(sum, along_output(axis), windows_.axes[axis].stride * stride);
    if (are_loops_) add(sum, along_taps(axis), windows_.axes[axis].step * stride);
  }

  // ---- what a tap reads

  // Loops over windows inside the image read it with constant strides.
  bool loads_without_index() const {
    return are_loops_ && std::all_of(windows_.axes.begin(), windows_.axes.end(),
                                     [](const AxisTaps& axis) { return axis.pixels.empty() && axis.reads_all(); });
  }

  template <typename AddArg>
  Image image_with(int port, Dims strides, const AddArg& add_arg) {
    Image image;
    InputRead how{.strides = {}, .entries = 1, .entry_stride = 1};
    for (size_t axis = 0; axis < windows_.axes.size(); ++axis) {
      image.spatial_strides.push_back(strides[first_ + axis]);
      how.entries += std::max<int64_t>(windows_.axes[axis].inputs - 1, 0) * strides[first_ + axis];
      strides[first_ + axis] = 0;
    }
    if (is_empty()) return image;
    how.strides = op_.strides_in_nest(port, strides);
    if (loads_without_index()) {
      how.entries = how.entry_stride = 0;
      for (size_t axis = 0; axis < windows_.axes.size(); ++axis) {
        add_steps(how.strides, axis, image.spatial_strides[axis]);
        how.offset += windows_.axes[axis].first * image.spatial_strides[axis];
      }
    }
    image.arg = add_arg(how);
    return image;
  }

  // The steps of all axes without a table make one index.
  Value entry_of(const Image& image, const Tap& tap) {
    Dims steps(along_output(0).size(), 0);
    int64_t from_start = 0;
    Value by_tables;
    for (size_t axis = 0; axis < windows_.axes.size(); ++axis) {
      const AxisTaps& taps = windows_.axes[axis];
      const int64_t stride = image.spatial_strides[axis];
      if (taps.pixels.empty()) {
        add_steps(steps, axis, stride);
        from_start += (taps.first + taps.step * tap[axis]) * stride;
        continue;
      }
      const Value read = pixel(axis, tap[axis]) * static_cast<double>(stride);
      by_tables = by_tables ? by_tables + read : read;
    }
    const Value entry = k.index(steps) + static_cast<double>(from_start);
    return by_tables ? entry + by_tables : entry;
  }

  Value exists_along(size_t axis, int64_t tap) {
    const AxisTaps& taps = windows_.axes[axis];
    bool before = false, after = false;
    for (int64_t t = are_loops_ ? 0 : tap; t < (are_loops_ ? taps.count : tap + 1); ++t) {
      before = before || taps.may_be_before(t);
      after = after || taps.may_be_after(t);
    }
    if (!before && !after) return {};
    if (!taps.pixels.empty()) return greater_equal(pixel(axis, tap), 0);
    Dims steps(along_output(axis).size(), 0);
    add_steps(steps, axis, 1);
    const Value position = k.index(steps);
    const auto start = static_cast<double>(taps.first + taps.step * tap), end = static_cast<double>(taps.inputs);
    if (!before) return less(position, end - start);
    const Value begins = greater_equal(position, -start);
    return after ? k.map(MapOp::logical_and, begins, less(position, end - start)) : begins;
  }

  Value pixel(size_t axis, int64_t tap) {
    const AxisTaps& taps = windows_.axes[axis];
    constexpr int64_t kMost = 1 << 24;  // floats count them exactly
    if (taps.inputs > kMost)
      throw Error(Status::unimplemented, place_of(op_.op()),
                  join("a spatial axis has ", taps.inputs, " positions, allowed is at most ", kMost));
    return once(pixels_, axis, tap, [&] {
      return k.cast(k.cast(entry_of_table("pixels", axis, as_floats(taps.pixels), tap), Type::s32), Type::s64);
    });
  }
  Value number_along(size_t axis, int64_t tap) {
    const AxisTaps& taps = windows_.axes[axis];
    if (!taps.numbers.empty()) return entry_of_table("numbers", axis, as_floats(taps.numbers), tap);
    if (!are_loops_) return k.constant(static_cast<double>(taps.number(0, tap)), Type::f32);
    const Value index = k.cast(k.index(along_taps(axis)), Type::f32);
    return taps.counts_down ? static_cast<double>(taps.count - 1) - index : index;
  }

  // The product of the axes' weights; none if all are 1.
  Value weight_of(const Tap& tap) {
    Value product;
    for (size_t axis = 0; axis < windows_.axes.size(); ++axis) {
      const AxisTaps& taps = windows_.axes[axis];
      if (taps.weights.empty()) continue;
      const Value weight = once(weights_, axis, tap[axis], [&] { return weight_along(axis, tap[axis]); });
      product = product ? product * weight : weight;
    }
    return product;
  }

  // Tables have entries of f32. In f64, a second one has what is left.
  Value weight_along(size_t axis, int64_t tap) {
    const std::vector<double>& weights = windows_.axes[axis].weights;
    const std::vector<float> high(weights.begin(), weights.end());
    const auto entry = [&](const char* what, const std::vector<float>& table) {
      return k.cast(entry_of_table(what, axis, table, tap), op_.float_type());
    };
    if (op_.float_type() != Type::f64 || std::equal(weights.begin(), weights.end(), high.begin()))
      return entry("weights", high);
    std::vector<float> low;
    for (size_t i = 0; i < weights.size(); ++i) low.push_back(static_cast<float>(weights[i] - static_cast<double>(high[i])));
    return entry("weights", high) + entry("low_weights", low);
  }

  static std::vector<float> as_floats(const std::vector<int64_t>& entries) { return {entries.begin(), entries.end()}; }

  // An entry of a table per tap and output.
  Value entry_of_table(const char* what, size_t axis, const std::vector<float>& table, int64_t tap) {
    const AxisTaps& taps = windows_.axes[axis];
    const std::string table_name = name(what, axis);
    auto known = tables_.find(table_name);
    const bool by_entry = !are_loops_ && taps.count > 1;
    if (known == tables_.end()) {
      Arg arg{.name = table_name, .strides = along_output(axis), .table = table};
      if (are_loops_) add(arg.strides, along_taps(axis), taps.outputs);
      if (by_entry) arg.entries = taps.count, arg.entry_stride = taps.outputs;
      known = tables_.emplace(table_name, k.add_arg(std::move(arg))).first;
    }
    return by_entry ? k.load_entry(known->second, k.constant(static_cast<double>(tap), Type::s64)) : k.load(known->second);
  }
  std::string name(const char* what, size_t axis) const { return join(what, axis, "_", op_.op().id); }

  Builder& k;
  OpLowering& op_;
  const Windows windows_;
  const size_t first_;  // spatial axis
  const bool are_loops_;
  const size_t rank_;
  Known exists_, pixels_, numbers_, weights_;
  std::map<std::string, int> tables_;
};

void max_pool(OpLowering& op) {
  Taps taps(op, windows_of(op.view()));
  const Image src = taps.image(0);
  op.out(0, taps.maximum([&](const Taps::Tap& tap) { return taps.load(src, tap, -kInfinity); }));
}

// Which tap of each window is the maximum: the first one if several are equal, or the first NaN.
void find_maxima(OpLowering& op) {
  Taps taps(op, forward_windows_of(op.view()));
  const Image src = taps.image(0);
  const Taps::Term load = Taps::once_per_tap([&](const Taps::Tap& tap) { return taps.load(src, tap, -kInfinity); });
  const Value largest = taps.maximum(load);
  op.carry(0, taps.first([&](const Taps::Tap& tap) {
    Builder& k = op.k;
    const Value x = load(tap), is_number = k.map(MapOp::equal, x, x);
    const Value differs = k.map(MapOp::logical_not, k.map(MapOp::equal, x, largest));
    const Value is_largest = k.map(MapOp::logical_not, k.map(MapOp::logical_and, differs, is_number)),
                exists = taps.exists(tap);
    return exists ? k.map(MapOp::logical_and, exists, is_largest) : is_largest;
  }));
}

void max_pool_backward(OpLowering& op) {
  constexpr int kDiffDst = 1;
  Taps taps(op, windows_of(op.view()));
  const Image maxima = taps.image_ahead(kDiffDst), diff_dst = taps.image(kDiffDst);
  Dims counts;
  for (const AxisTaps& axis : forward_windows_of(op.view()).axes) counts.push_back(axis.count);
  op.out(0, taps.accurate_sum([&](const Taps::Tap& tap) {
    const Value is_here = op.k.map(MapOp::equal, taps.number_of(tap, counts), op.k.cast(taps.load(maxima, tap, -1), Type::f32));
    return select(is_here, taps.load(diff_dst, tap, 0), 0);
  }));
}

// A weighted sum over the windows of an input.
void sum_of(OpLowering& op, int port, bool is_mean) {
  Taps taps(op, windows_of(op.view()));
  const Value sum = taps.weighted_sum(taps.image(port));
  op.out(0, is_mean ? sum / taps.divisor() : sum);
}

}  // namespace

std::vector<Lowering> window_lowerings() {
  return {{OpKind::MaxPool, max_pool},
          {OpKind::MaxPoolBackward, max_pool_backward, find_maxima},
          {OpKind::AvgPool, [](OpLowering& op) { sum_of(op, 0, true); }},
          {OpKind::AvgPoolBackward, [](OpLowering& op) { sum_of(op, 0, true); }},
          {OpKind::Interpolate, [](OpLowering& op) { sum_of(op, 0, false); }},
          {OpKind::InterpolateBackward, [](OpLowering& op) { sum_of(op, 1, false); }}};
}

}  // namespace lamina::kernel
