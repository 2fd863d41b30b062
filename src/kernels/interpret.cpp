#include "kernels/interpret.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "interface/status.h"
#include "kernels/interpret_values.h"
#include "kernels/loop_plan.h"
#include "kernels/numerics.h"

namespace lamina::kernel {

namespace {

using numerics::kBlock, numerics::kColumnBlockRows, numerics::kShiftElements, numerics::kVirtualLanes;

// A sum (product, maximum, minimum) over 64 lanes. Every step rounds to the type.
class Accumulator {
 public:
  Accumulator(Reduction how, Type type) : how_(how), wide_(type == Type::f64), total_(identity()) { lanes_.fill(identity()); }

  void add(int lane, double value) { lane_at(lane) = combine(lane_at(lane), value); }
  void add_square(int lane, double value) {
    double& slot = lane_at(lane);
    slot = wide_
               ? std::fma(value, value, slot)
               : static_cast<double>(std::fma(static_cast<float>(value), static_cast<float>(value), static_cast<float>(slot)));
  }
  // Returns the combined value of all lanes and resets them.
  double fold() {
    for (int half = kVirtualLanes / 2; half >= 1; half /= 2) {
      for (int lane = 0; lane < half; ++lane) lane_at(lane) = combine(lane_at(lane), lane_at(lane + half));
    }
    const double block = lanes_[0];
    lanes_.fill(identity());
    return block;
  }
  void flush() {
    const double block = fold();
    total_ = how_ == Reduction::sum ? total_ + block : how_ == Reduction::product ? total_ * block : combine(total_, block);
  }
  double total() const { return total_; }

 private:
  double& lane_at(int lane) { return lanes_[static_cast<size_t>(lane)]; }
  double identity() const {
    const double infinity = std::numeric_limits<double>::infinity();
    return how_ == Reduction::sum ? 0 : how_ == Reduction::product ? 1 : how_ == Reduction::maximum ? -infinity : infinity;
  }
  double combine(double a, double b) const {
    const auto rounded = [this](double value, float narrow) { return wide_ ? value : static_cast<double>(narrow); };
    switch (how_) {
      case Reduction::sum: return rounded(a + b, static_cast<float>(a) + static_cast<float>(b));
      case Reduction::product: return rounded(a * b, static_cast<float>(a) * static_cast<float>(b));
      case Reduction::maximum: return maximum(a, b);
      case Reduction::minimum: return minimum(a, b);
    }
    return 0;
  }

  Reduction how_;
  bool wide_;
  double total_;
  std::array<double, kVirtualLanes> lanes_;
};

struct RowState {
  int64_t row = 0;
  std::vector<Scalar> values;               // per node
  std::vector<bool> known;                  // per node: whether its row value is computed
  std::vector<double> mean_high, mean_low;  // per moments node
  std::vector<bool> is_far;                 // per moments node: the second walk is needed
};

struct Root {
  NodeIndex node;
  std::vector<Accumulator>
      accumulators;  // moments: {sum, squares} of the distances to the shift, in the second walk to the mean
  double shift = 0;
  bool by_block = false;            // moments whose both walks run over each block
  double mean = 0, deviations = 0;  // with by_block: the mean of the blocks so far, and their sum of squared distances to it
};

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, std::span<const InterpretedArg> args)
      : kernel_(kernel),
        plan_(kernel, {.moments_by_block = moments_by_block(kernel)}),
        args_(args),
        row_size_(kernel.row_size()),
        rows_of_entry_(kernel.row_count() / std::max<int64_t>(kernel.entry_count(), 1)),
        outer_(static_cast<size_t>(kernel.outer_rank)),
        writers_(args.size()) {
    LAMINA_CHECK(args.size() == kernel.args.size(), "one piece of memory per arg");
    for (size_t i = 0; i < kernel.nodes.size(); ++i) {
      if (kernel.nodes[i].kind == NodeKind::column_sum) columns_[static_cast<NodeIndex>(i)] = {};
    }
  }

  void run() {
    const int64_t rows = kernel_.row_count();
    for (int64_t row = 0; row < rows; ++row) run_row(row);
    for (auto& [node, blocks] : columns_) store_columns(node, blocks);
  }

 private:
  const Node& node(NodeIndex i) const { return kernel_.node(i); }
  const Arg& arg(int i) const { return kernel_.arg(i); }

  // ---- offsets in memory

  // Sum of position times step over dims [first, last).
  int64_t dot(size_t first, size_t last, int64_t linear, const Dims& steps) const {
    int64_t sum = 0;
    for (size_t d = last; d-- > first && linear != 0;) {
      sum += linear % kernel_.extents[d] * steps[d];
      linear /= kernel_.extents[d];
    }
    return sum;
  }
  int64_t place(const RowState& row, int64_t position, const Dims& steps) const {
    return dot(0, outer_, row.row, steps) + dot(outer_, kernel_.extents.size(), position, steps);
  }

  [[noreturn]] void fail(int a, const RowState& row, int64_t position, const std::string& what) const {
    throw Error(Status::runtime_error,
                join("kernel ", kernel_.name, ": ", arg(a).name, " at row ", row.row, ", element ", position, ": ", what));
  }

  void check_inside(int a, const RowState& row, int64_t position, int64_t offset, int64_t elements) const {
    if (offset >= 0 && offset < elements) return;
    fail(a, row, position, join("offset ", offset, " is outside its ", elements, " elements"));
  }

  Scalar load(int a, const RowState& row, int64_t position, int64_t entry = 0) const {
    const int64_t offset = place(row, position, arg(a).strides) + entry * arg(a).entry_stride;
    const std::vector<float>& table = arg(a).table;
    const InterpretedArg& memory = args_[static_cast<size_t>(a)];
    check_inside(a, row, position, offset, table.empty() ? memory.elements : static_cast<int64_t>(table.size()));
    return load_scalar(arg(a).dtype, table.empty() ? memory.data : table.data(), offset);
  }

  void store(int a, const RowState& row, int64_t position, Type type, Scalar value) {
    store_at(place(row, position, arg(a).strides), a, row, position, type, value);
  }

  void store_at(int64_t offset, int a, const RowState& row, int64_t position, Type type, Scalar value) {
    const InterpretedArg& memory = args_[static_cast<size_t>(a)];
    check_inside(a, row, position, offset, memory.elements);
    std::vector<int64_t>& writers = writers_[static_cast<size_t>(a)];
    if (writers.empty()) writers.assign(static_cast<size_t>(memory.elements), -1);
    int64_t& writer = writers[static_cast<size_t>(offset)];
    if (writer >= 0) {
      const int64_t size = std::max<int64_t>(row_size_, 1);
      fail(a, row, position,
           join("a race: offset ", offset, " was written by row ", writer / size, ", element ", writer % size));
    }
    writer = row.row * std::max<int64_t>(row_size_, 1) + position;
    store_scalar(arg(a).dtype, type, memory.data, offset, value);
  }

  // ---- rows and phases

  void run_row(int64_t index) {
    RowState row;
    row.row = index;
    row.values.resize(kernel_.nodes.size());
    row.known.assign(kernel_.nodes.size(), false);
    row.mean_high = row.mean_low = std::vector<double>(kernel_.nodes.size(), 0);
    row.is_far.assign(kernel_.nodes.size(), false);
    for (int phase = 0; phase < plan_.count(); ++phase) {
      compute_row_values(row, phase);
      run_phase(row, phase);
    }
    compute_row_values(row, plan_.count());
  }

  // Computes the row values whose operands are known in this phase. A reduction sets its value at the end of its walk.
  void compute_row_values(RowState& row, int phase) {
    for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
      const Node& n = kernel_.nodes[i];
      if (n.per_element || n.phase > phase || row.known[i]) continue;
      if (reduces_rows(n) || n.kind == NodeKind::mean || n.kind == NodeKind::variance || n.kind == NodeKind::column_sum)
        continue;
      row.known[i] = true;
      if (n.kind == NodeKind::store)
        store(n.arg, row, 0, n.type, row.values[static_cast<size_t>(n.operands[0])]);
      else
        row.values[i] = value_of(row, static_cast<NodeIndex>(i), 0, row.values);
    }
  }

  Scalar value_of(const RowState& row, NodeIndex index, int64_t position, const std::vector<Scalar>& values) const {
    const Node& n = node(index);
    const auto operand = [&](int k) { return values[static_cast<size_t>(n.operands[static_cast<size_t>(k)])]; };
    switch (n.kind) {
      case NodeKind::load: return load(n.arg, row, position);
      case NodeKind::load_entry:
        if (n.operands[1] >= 0 && operand(1).integer == 0) return {n.value, static_cast<int64_t>(n.value)};
        return load(n.arg, row, position, operand(0).integer);
      case NodeKind::sum_entries: {
        double sum = 0;
        for (int64_t i = operand(0).integer; i < operand(1).integer; ++i)
          sum += load(n.arg, row, position, load(n.order, row, position, i).integer).real;
        return {sum, 0};
      }
      case NodeKind::constant: return constant_scalar(n);
      case NodeKind::index: return {0, place(row, position, n.coefficients)};
      case NodeKind::center:
        return {
            centered(row, n, operand(0).real, n.operands[2] < 0 ? nullptr : &values[static_cast<size_t>(n.operands[2])].real),
            0};
      default: {
        std::array<Scalar, 3> operands;
        const int count = operand_count(n);
        for (int k = 0; k < count; ++k) operands[static_cast<size_t>(k)] = operand(k);
        return map_scalar(n, node(n.operands[0]).type, {operands.data(), static_cast<size_t>(count)});
      }
    }
  }

  // (x - high) - low, or (x - high) * scale - low * scale rounded once at the end.
  double centered(const RowState& row, const Node& n, double x, const double* scale) const {
    const double high = row.mean_high[static_cast<size_t>(n.operands[1])],
                 low = row.mean_low[static_cast<size_t>(n.operands[1])];
    if (n.type == Type::f64) return scale == nullptr ? x - high : (x - high) * *scale;
    const float difference = static_cast<float>(x) - static_cast<float>(high);
    if (scale == nullptr) return static_cast<double>(difference - static_cast<float>(low));
    const auto factor = static_cast<float>(*scale);
    return static_cast<double>(std::fma(difference, factor, -(static_cast<float>(low) * factor)));
  }

  std::vector<Root> begin_roots(const RowState& row, int phase) const {
    std::vector<Root> roots;
    for (const NodeIndex i : plan_.roots(phase)) {
      const Node& n = node(i);
      const bool is_first = plan_.loop_of(i) == phase;
      Root root;
      root.node = i;
      root.by_block = n.kind == NodeKind::moments && plan_.moments_by_block();
      if (n.kind == NodeKind::reduce) root.accumulators.emplace_back(n.reduction, n.type);
      if (n.kind == NodeKind::segment_sum) root.accumulators.emplace_back(Reduction::sum, n.type);
      if (n.kind == NodeKind::moments) root.accumulators.assign(2, Accumulator(Reduction::sum, n.type));
      if (n.kind == NodeKind::moments && is_first) root.shift = shift_of(row, n.operands[0]);
      roots.push_back(std::move(root));
    }
    return roots;
  }

  // The average of the first elements, or 0 if it is not finite: an infinite shift would turn every difference into NaN.
  double shift_of(const RowState& row, NodeIndex operand) const {
    if (row_size_ == 0) return 0;
    const Type type = node(operand).type;
    const auto count = std::bit_floor(static_cast<uint64_t>(std::min<int64_t>(kShiftElements, kernel_.extents.back())));
    const NodeList nodes = elements_of(operand);
    std::vector<double> some;
    for (size_t i = 0; i < count; ++i) {
      const double value = element_values(row, nodes, static_cast<int64_t>(i))[static_cast<size_t>(operand)].real;
      some.push_back(narrow(type, value / static_cast<double>(count)));
    }
    for (size_t half = count / 2; half > 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) some[i] = narrow(type, some[i] + some[i + half]);
    }
    const DataType precision = data_precision(kernel_, operand);
    const double average = precision == DataType::undef ? some[0] : stored_as(precision, type, some[0]);
    return average - average == 0 ? average : 0;
  }

  // A node of which moments are taken, and the element nodes on which it depends.
  NodeList elements_of(NodeIndex index) const {
    const std::vector<bool> needed = element_nodes_of(kernel_, index);
    NodeList nodes;
    for (size_t i = 0; i < needed.size(); ++i)
      if (needed[i]) nodes.push_back(static_cast<NodeIndex>(i));
    return nodes;
  }

  // The row values, and the values of these nodes at one element.
  std::vector<Scalar> element_values(const RowState& row, const NodeList& nodes, int64_t position) const {
    std::vector<Scalar> values = row.values;
    for (const NodeIndex i : nodes) values[static_cast<size_t>(i)] = value_of(row, i, position, values);
    return values;
  }

  void run_phase(RowState& row, int phase) {
    std::vector<Root> roots = begin_roots(row, phase);
    if (roots.empty()) return;
    const auto end_block = [&](int64_t first, int64_t end) {
      for (Root& root : roots) {
        if (root.by_block)
          join_moments(row, root, first, end);
        else
          for (Accumulator& accumulator : root.accumulators) accumulator.flush();
      }
    };
    walk(end_block, [&](int64_t position, int lane) {
      const std::vector<Scalar> values = element_values(row, plan_.nodes(phase), position);
      for (Root& root : roots) {
        visit(row, root, phase, position, lane, values[static_cast<size_t>(node(root.node).operands[0])]);
        if (node(root.node).kind == NodeKind::segment_sum) end_segment(row, root, position);
      }
    });
    for (const Root& root : roots) finish(row, root, phase);
  }

  template <typename EndBlock, typename Visit>
  void walk(const EndBlock& end_block, const Visit& visit) const {
    const int64_t run = std::max<int64_t>(kernel_.extents.back(), 1), whole_runs = run * numerics::runs_of_block(run);
    for (int64_t first = 0, end = 0; first < row_size_; first = end) {
      end = run > kBlock ? std::min(first + kBlock, (first / run + 1) * run) : std::min(first + whole_runs, row_size_);
      for (int64_t i = first; i < end; ++i) visit(i, static_cast<int>(i % run % kVirtualLanes));
      end_block(first, end);
    }
  }

  static double stored_as(DataType dtype, Type type, double value) {
    double memory = 0;
    store_scalar(dtype, type, &memory, 0, {value, 0});
    return load_scalar(dtype, &memory, 0).real;
  }

  // The result of one walk over `count` elements: the mean, the squared deviations, and whether the shift was too far from
  // the mean for these to be exact enough.
  struct OneWalk {
    double mean, deviations;
    bool is_far;
  };
  static OneWalk one_walk(const Root& root, double sum, double squares, double count) {
    const double distance = sum / count, shifted = sum * distance, deviations = squares - shifted;
    return {root.shift + distance, deviations, !(shifted <= deviations)};
  }

  // The result of the second walk: the corrected mean, and the squared deviations from it.
  OneWalk second_walk(const RowState& row, const Root& root, double sum, double squares, double count) const {
    const double residual = sum / count, deviations = squares - sum * residual;
    return {mean_with_residual(row, root, residual), deviations < 0 ? 0 : deviations, false};
  }

  // Joins a block's moments with those of the blocks before it, by the formula of Chan, Golub and LeVeque.
  void join_moments(RowState& row, Root& root, int64_t first, int64_t end) const {
    const auto before = static_cast<double>(first), count = static_cast<double>(end - first), after = static_cast<double>(end);
    const double sum = root.accumulators[0].fold();
    OneWalk block = one_walk(root, sum, root.accumulators[1].fold(), count);
    if (block.is_far) {
      split_mean(row, root, block.mean);
      const NodeIndex operand = node(root.node).operands[0];
      const NodeList nodes = elements_of(operand);
      for (int64_t i = first; i < end; ++i) {
        const double value = element_values(row, nodes, i)[static_cast<size_t>(operand)].real;
        deviate(root, static_cast<int>(i % kVirtualLanes), value, row.mean_high[static_cast<size_t>(root.node)]);
      }
      const double residual_sum = root.accumulators[0].fold();
      block = second_walk(row, root, residual_sum, root.accumulators[1].fold(), count);
    }
    const double step = block.mean - root.mean;
    root.deviations += block.deviations + step * step * (before * count / after);
    root.mean = (root.mean * before + block.mean * count) / after;
  }

  // Adds d and d^2, where d is the distance to `middle`.
  void deviate(Root& root, int lane, double value, double middle) const {
    const double d = difference(node(root.node).type, value, middle);
    root.accumulators[0].add(lane, d);
    root.accumulators[1].add_square(lane, d);
  }

  static double narrow(Type type, double value) {
    return type == Type::f64 ? value : static_cast<double>(static_cast<float>(value));
  }
  static double difference(Type type, double a, double b) {
    return type == Type::f64 ? a - b : static_cast<double>(static_cast<float>(a) - static_cast<float>(b));
  }

  void split_mean(RowState& row, const Root& root, double mean) const {
    const auto at = static_cast<size_t>(root.node);
    const Type type = node(root.node).type;
    row.mean_high[at] = narrow(type, mean);
    row.mean_low[at] = type == Type::f64 ? 0 : narrow(type, mean - row.mean_high[at]);
  }

  // An infinite mean has a NaN residual and must stay infinite.
  double mean_with_residual(const RowState& row, const Root& root, double residual) const {
    const double high = row.mean_high[static_cast<size_t>(root.node)];
    return std::isnan(residual) ? high : high + residual;
  }

  void visit(RowState& row, Root& root, int phase, int64_t position, int lane, Scalar value) {
    const Node& n = node(root.node);
    if (n.kind == NodeKind::store) return store(n.arg, row, position, n.type, value);
    if (n.kind == NodeKind::column_sum) return add_to_column(root.node, row.row, position, value.real);
    if (n.kind == NodeKind::reduce || n.kind == NodeKind::segment_sum)
      root.accumulators[0].add(lane, value.real);
    else
      deviate(root, lane, value.real,
              plan_.loop_of(root.node) == phase ? root.shift : row.mean_high[static_cast<size_t>(root.node)]);
  }

  // Stores the sum of the segment that ends at `position`, if one does.
  void end_segment(const RowState& row, Root& root, int64_t position) {
    const Node& n = node(root.node);
    int64_t size = 1;
    for (size_t d = first_segment_dim(kernel_, arg(n.arg)); d < kernel_.extents.size(); ++d) size *= kernel_.extents[d];
    if ((position + 1) % size != 0) return;
    root.accumulators[0].flush();
    store(n.arg, row, position, n.type, {narrow(n.type, root.accumulators[0].total()), 0});
    root.accumulators[0] = Accumulator(Reduction::sum, n.type);
  }

  void finish(RowState& row, const Root& root, int phase) const {
    const Node& n = node(root.node);
    const auto size = static_cast<double>(row_size_);
    if (n.kind == NodeKind::reduce)
      row.values[static_cast<size_t>(root.node)].real = narrow(n.type, root.accumulators[0].total());
    if (n.kind != NodeKind::moments) return;
    const auto at = static_cast<size_t>(root.node);
    if (root.by_block) return set_moments(row, root, root.mean, root.deviations);
    const double sum = root.accumulators[0].total(), squares = root.accumulators[1].total();
    const bool is_first = plan_.loop_of(root.node) == phase;
    if (!is_first && !row.is_far[at]) return;
    const OneWalk found = is_first ? one_walk(root, sum, squares, size) : second_walk(row, root, sum, squares, size);
    set_moments(row, root, found.mean, found.deviations);
    row.is_far[at] = found.is_far;
  }

  // Sets the values of the nodes that read the moments.
  void set_moments(RowState& row, const Root& root, double mean, double deviations) const {
    split_mean(row, root, mean);
    const double variance = deviations / static_cast<double>(row_size_);
    for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
      const Node& reader = kernel_.nodes[i];
      if (reader.operands[0] != root.node) continue;
      if (reader.kind == NodeKind::mean) row.values[i].real = row.mean_high[static_cast<size_t>(root.node)];
      if (reader.kind == NodeKind::variance) row.values[i].real = narrow(node(root.node).type, variance);
    }
  }

  // ---- column sums

  using Blocks = std::vector<std::vector<double>>;

  void add_to_column(NodeIndex index, int64_t row, int64_t position, double value) {
    Blocks& blocks = columns_[index];
    const auto block = static_cast<size_t>(row / rows_of_entry_ * blocks_of_entry() + row % rows_of_entry_ / kColumnBlockRows);
    if (block >= blocks.size()) blocks.resize(block + 1, std::vector<double>(static_cast<size_t>(row_size_), 0));
    double& sum = blocks[block][static_cast<size_t>(position)];
    sum =
        node(index).type == Type::f64 ? sum + value : static_cast<double>(static_cast<float>(sum) + static_cast<float>(value));
  }

  // Block i joins its sibling. Blocks without a sibling join from the right.
  static double tree_sum(const Blocks& blocks, size_t first, size_t count, size_t column) {
    if (count == 0) return 0;
    if (count == 1) return blocks[first][column];
    const size_t left = std::bit_floor(count - 1);
    return tree_sum(blocks, first, left, column) + tree_sum(blocks, first + left, count - left, column);
  }

  int64_t blocks_of_entry() const { return (rows_of_entry_ + kColumnBlockRows - 1) / kColumnBlockRows; }

  void store_columns(NodeIndex index, const Blocks& blocks) {
    const Node& n = node(index);
    const int64_t of_entry = blocks_of_entry(), entries = kernel_.entry_count();
    const bool by_entry = kernel_.sums_entries(arg(n.arg));
    for (int64_t entry = 0; entry < (by_entry ? entries : 1); ++entry) {
      const int64_t offset = dot(0, static_cast<size_t>(kernel_.entry_rank), entry, arg(n.arg).strides);
      const size_t first = by_entry ? static_cast<size_t>(entry * of_entry) : 0;
      const size_t count = by_entry ? static_cast<size_t>(of_entry) : blocks.size();
      for (int64_t position = 0; position < row_size_; ++position) {
        const double sum = tree_sum(blocks, first, count, static_cast<size_t>(position));
        const int64_t place = offset + dot(outer_, kernel_.extents.size(), position, arg(n.arg).strides);
        store_at(place, n.arg, {}, position, n.type,
                 {n.type == Type::f64 ? sum : static_cast<double>(static_cast<float>(sum)), 0});
      }
    }
  }

  const Kernel& kernel_;
  const LoopPlan plan_;
  std::span<const InterpretedArg> args_;
  int64_t row_size_;
  int64_t rows_of_entry_;  // of column sums
  size_t outer_;
  std::vector<std::vector<int64_t>>
      writers_;  // per arg, per element: the grid position that wrote it, row * row size + position; empty if none has
  std::map<NodeIndex, Blocks> columns_;
};

}  // namespace

void interpret(const Kernel& kernel, std::span<const InterpretedArg> args) { Interpreter(kernel, args).run(); }

}  // namespace lamina::kernel
