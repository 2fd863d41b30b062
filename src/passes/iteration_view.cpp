#include "passes/iteration_view.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "interface/op_schema.h"
#include "interface/status.h"

namespace lamina {
namespace {

constexpr AxisRun kNoRun{0, 0};

DimMap identity_map(size_t rank) {
  DimMap map(rank);
  for (size_t i = 0; i < rank; ++i) map[i] = {static_cast<int>(i), 1};
  return map;
}

// Builds the view of one op. Each family fills `view_` in with every dim as an iteration dim; finish() drops those of extent 1.
class ViewBuilder {
 public:
  ViewBuilder(const Graph& graph, const Op& op) : graph_(graph), op_(op) {
    view_.inputs.resize(op.inputs.size());
    view_.outputs.resize(op.outputs.size());
    view_.column_outputs.assign(op.outputs.size(), false);
  }

  IterationView build();

 private:
  using Family = void (ViewBuilder::*)();
  Family family() const;

  // ---- families
  void elementwise();
  void per_channel();
  void slope();
  void scales();
  void transposed();
  void reshaped();
  void concatenated();
  void trailing_axes();
  void group_rows();
  void channel_rows();
  void axis_rows();
  void listed_axes();

  // ---- helpers
  void refuse(std::string why) {
    if (view_.why_not.empty()) view_.why_not = std::move(why);
  }
  void unknown_rank();
  bool all_ranks_unknown() const;
  bool some_rank_unknown() const;
  void loop_over(const Dims& extents) {
    view_.extents = extents;
    view_.inner.assign(extents.size(), false);
  }
  void normalize_dims(size_t begin) { std::fill(view_.inner.begin() + static_cast<long>(begin), view_.inner.end(), true); }
  void finish();

  const Dims& shape(ValueIndex value) const { return *graph_.tensor(value).shape; }
  const Dims& input_shape(size_t port) const { return shape(op_.inputs[port]); }
  const Dims& output_shape(size_t port) const { return shape(op_.outputs[port]); }
  bool has_input(size_t port) const { return port < op_.inputs.size() && op_.inputs[port] != kNoValue; }
  bool has_output(size_t port) const { return port < op_.outputs.size() && op_.outputs[port] != kNoValue; }
  size_t first_output() const;
  std::string port_text(const char* side, size_t port, const Dims& dims) const {
    return join(side, ' ', port, ' ', describe(dims), " does not fit ", describe(view_.extents));
  }

  DimMap broadcast_map(const Dims& operand);
  DimMap leading_map(const Dims& statistics, size_t count);
  DimMap trailing_map(const Dims& affine, size_t begin);
  DimMap channel_map(const Dims& operand, AxisRun channel);
  size_t channel_axis(size_t rank) const;
  using PortMap = std::function<DimMap(const Dims&)>;
  void set_input(std::string_view name, const PortMap& map);
  void set_output(std::string_view name, const PortMap& map);
  void set_norm_ports(const PortMap& data, const PortMap& statistics, const PortMap& affine);

  const Graph& graph_;
  const Op& op_;
  IterationView view_;
  bool has_rows_ = false;  // some axes are normalised or reduced, perhaps of extent 1
};

ViewBuilder::Family ViewBuilder::family() const {
  const OpSchema& schema = schema_of(op_.kind);
  switch (schema.nest) {
    case LoopNest::by_class:
      return schema.op_class == OpClass::elementwise ? &ViewBuilder::elementwise : nullptr;
    case LoopNest::elementwise:
      return &ViewBuilder::elementwise;
    case LoopNest::per_channel:
      return &ViewBuilder::per_channel;
    case LoopNest::slope:
      return &ViewBuilder::slope;
    case LoopNest::scales:
      return &ViewBuilder::scales;
    case LoopNest::transposed:
      return &ViewBuilder::transposed;
    case LoopNest::reshaped:
      return &ViewBuilder::reshaped;
    case LoopNest::concatenated:
      return &ViewBuilder::concatenated;
    case LoopNest::trailing_axes:
      return &ViewBuilder::trailing_axes;
    case LoopNest::group_rows:
      return &ViewBuilder::group_rows;
    case LoopNest::channel_rows:
      return &ViewBuilder::channel_rows;
    case LoopNest::axis_rows:
      return &ViewBuilder::axis_rows;
    case LoopNest::listed_axes:
      return &ViewBuilder::listed_axes;
  }
  return nullptr;
}

IterationView ViewBuilder::build() {
  const Family fill = family();
  if (fill == nullptr) {
    refuse(join("it has no loop nest of its own (", name_of(schema_of(op_.kind).op_class), ")"));
  } else if (some_rank_unknown()) {
    unknown_rank();
  } else {
    (this->*fill)();
  }
  if (view_.why_not.empty()) finish();
  return std::move(view_);
}

// ---- unknown ranks

bool ViewBuilder::some_rank_unknown() const {
  const auto unknown = [&](ValueIndex value) { return value != kNoValue && !graph_.tensor(value).shape; };
  return std::any_of(op_.inputs.begin(), op_.inputs.end(), unknown) ||
         std::any_of(op_.outputs.begin(), op_.outputs.end(), unknown);
}

bool ViewBuilder::all_ranks_unknown() const {
  const auto unknown = [&](ValueIndex value) { return value == kNoValue || !graph_.tensor(value).shape; };
  return std::all_of(op_.inputs.begin(), op_.inputs.end(), unknown) &&
         std::all_of(op_.outputs.begin(), op_.outputs.end(), unknown);
}

// Elementwise ops on tensors of unknown rank are taken as one flat dim: compilation groups again with the real shapes, so a
// guess that turns out wrong costs a kernel, never a result.
void ViewBuilder::unknown_rank() {
  if (family() != &ViewBuilder::elementwise || !all_ranks_unknown()) return refuse("a rank is not known before compilation");
  loop_over({kUnknownDim});
  for (size_t i = 0; i < op_.inputs.size(); ++i)
    if (has_input(i)) view_.inputs[i] = identity_map(1);
  for (size_t i = 0; i < op_.outputs.size(); ++i)
    if (has_output(i)) view_.outputs[i] = identity_map(1);
}

// ---- maps

size_t ViewBuilder::first_output() const {
  for (size_t i = 0; i < op_.outputs.size(); ++i)
    if (has_output(i)) return i;
  LAMINA_CHECK(false, join(describe(op_), " has no output"));
  return 0;
}

// numpy's rule: dims are aligned at the right; an operand does not vary where its extent is 1 and the result's is not.
DimMap ViewBuilder::broadcast_map(const Dims& operand) {
  const size_t rank = view_.extents.size();
  DimMap map(operand.size(), kNoRun);
  for (size_t i = 0; i < operand.size(); ++i) {
    if (operand[i] == 1) continue;
    const size_t dim = i + rank - operand.size();
    const bool fits =
        dim < rank && (view_.extents[dim] == operand[i] || view_.extents[dim] == kUnknownDim || operand[i] == kUnknownDim);
    if (!fits) {
      refuse(join("an operand ", describe(operand), " does not fit ", describe(view_.extents)));
      continue;
    }
    map[i] = {static_cast<int>(dim), 1};
  }
  return map;
}

// Statistics: the leading dims, perhaps followed by dims of extent 1.
DimMap ViewBuilder::leading_map(const Dims& statistics, size_t count) {
  DimMap map(statistics.size(), kNoRun);
  if (statistics.size() < count) refuse(join("statistics ", describe(statistics), " do not fit ", describe(view_.extents)));
  for (size_t i = 0; i < statistics.size(); ++i) {
    if (i < count) {
      map[i] = {static_cast<int>(i), 1};
    } else if (statistics[i] != 1) {
      refuse(join("statistics ", describe(statistics), " do not fit ", describe(view_.extents)));
    }
  }
  return map;
}

// gamma and beta: the trailing dims, or all of them written as one.
DimMap ViewBuilder::trailing_map(const Dims& affine, size_t begin) {
  const size_t count = view_.extents.size() - begin;
  if (affine.size() == 1) return {{static_cast<int>(begin), static_cast<int>(count)}};
  DimMap map(affine.size(), kNoRun);
  if (affine.size() != count) {
    refuse(join("gamma or beta ", describe(affine), " does not fit ", describe(view_.extents)));
    return map;
  }
  for (size_t i = 0; i < count; ++i) map[i] = {static_cast<int>(begin + i), 1};
  return map;
}

// A table with one entry per channel: one of its dims has the extent of the channels, the others 1.
DimMap ViewBuilder::channel_map(const Dims& operand, AxisRun channel) {
  DimMap map(operand.size(), kNoRun);
  bool found = false;
  for (size_t i = 0; i < operand.size(); ++i) {
    if (operand[i] == 1) continue;
    if (found) refuse(join("a table ", describe(operand), " per channel has more than one dim"));
    map[i] = channel;
    found = true;
  }
  return map;
}

size_t ViewBuilder::channel_axis(size_t rank) const {
  const bool channels_first = op_.has_attribute("data_format") && op_.attribute<std::string>("data_format") == "NCX";
  if (rank == 0) return 0;
  return channels_first ? std::min<size_t>(1, rank - 1) : rank - 1;
}

void ViewBuilder::set_input(std::string_view name, const PortMap& map) {
  const size_t port = port_position(schema_of(op_.kind).inputs, op_.attributes, name);
  if (has_input(port)) view_.inputs[port] = map(input_shape(port));
}

void ViewBuilder::set_output(std::string_view name, const PortMap& map) {
  const size_t port = port_position(schema_of(op_.kind).outputs, op_.attributes, name);
  if (has_output(port)) view_.outputs[port] = map(output_shape(port));
}

// ---- elementwise families

void ViewBuilder::elementwise() {
  loop_over(output_shape(first_output()));
  for (size_t i = 0; i < op_.outputs.size(); ++i)
    if (has_output(i)) view_.outputs[i] = broadcast_map(output_shape(i));
  for (size_t i = 0; i < op_.inputs.size(); ++i)
    if (has_input(i)) view_.inputs[i] = broadcast_map(input_shape(i));
}

// BiasAdd, PReLU, BatchNormInference: inputs after the first are tables along the channels.
void ViewBuilder::per_channel() {
  const Dims& src = input_shape(0);
  loop_over(src);
  view_.inputs[0] = view_.outputs[0] = identity_map(src.size());
  const AxisRun channel{static_cast<int>(channel_axis(src.size())), 1};
  const bool aligned = op_.has_attribute("per_channel_broadcast") && !op_.attribute<bool>("per_channel_broadcast");
  for (size_t i = 1; i < op_.inputs.size(); ++i) {
    if (!has_input(i)) continue;
    const Dims& table = input_shape(i);
    view_.inputs[i] = aligned || table.size() != 1 ? broadcast_map(table) : channel_map(table, channel);
  }
}

// diff_slope sums over every dim that the slope does not have, unless the slope has them all.
void ViewBuilder::slope() {
  const Dims& src = input_shape(0);
  loop_over(src);
  const AxisRun channel{static_cast<int>(channel_axis(src.size())), 1};
  const Dims& slope = input_shape(1);
  const DimMap slope_map = slope.size() == 1 ? channel_map(slope, channel) : broadcast_map(slope);
  view_.inputs = {identity_map(src.size()), slope_map, broadcast_map(input_shape(2))};
  if (has_output(0)) view_.outputs[0] = identity_map(src.size());
  if (!has_output(1)) return;
  view_.outputs[1] = slope_map;
  size_t covered = 0;
  for (const AxisRun& run : slope_map) covered += static_cast<size_t>(run.count);
  const auto not_unit = std::count_if(src.begin(), src.end(), [](int64_t extent) { return extent != 1; });
  if (covered == static_cast<size_t>(not_unit)) return;
  view_.column_outputs[1] = true;
  // Along the last axis the sums are columns of the one loop nest; along any other they take a walk of their own.
  const int last = static_cast<int>(src.size()) - 1;
  const bool along_last = std::any_of(slope_map.begin(), slope_map.end(), [&](const AxisRun& run) { return run == AxisRun{last, 1}; });
  for (const AxisRun& run : slope_map)
    if (along_last && run.count > 0) view_.inner[static_cast<size_t>(run.first)] = true;
}

// Scales and zero points by groups split a dim of src into (groups, members of a group).
void ViewBuilder::scales() {
  const Dims src = input_shape(0);
  const std::string& qtype = op_.attribute<std::string>("qtype");
  if (qtype != "per_group") {
    loop_over(src);
    view_.inputs[0] = view_.outputs[0] = identity_map(src.size());
    const int axis = wrap_axis(op_.attribute<int64_t>("axis"), static_cast<int>(src.size()));
    for (size_t i = 1; i < op_.inputs.size(); ++i)
      if (has_input(i)) view_.inputs[i] = channel_map(input_shape(i), qtype == "per_channel" ? AxisRun{axis, 1} : kNoRun);
    return;
  }
  const Dims scales = input_shape(1);
  if (scales.size() != src.size()) return refuse(join("scales ", describe(scales), " do not fit ", describe(src)));
  Dims extents;
  DimMap full, groups;
  for (size_t i = 0; i < src.size(); ++i) {
    const int first = static_cast<int>(extents.size());
    const bool split = scales[i] != src[i] && scales[i] != 1;
    if (split && (src[i] <= 0 || scales[i] <= 0 || src[i] % scales[i] != 0))
      return refuse(join("scales ", describe(scales), " do not divide ", describe(src)));
    extents.push_back(split ? scales[i] : src[i]);
    if (split) extents.push_back(src[i] / scales[i]);
    full.push_back({first, split ? 2 : 1});
    groups.push_back(scales[i] == 1 ? kNoRun : AxisRun{first, 1});
  }
  loop_over(extents);
  view_.inputs[0] = view_.outputs[0] = full;
  for (size_t i = 1; i < op_.inputs.size(); ++i) {
    if (!has_input(i)) continue;
    if (input_shape(i) == scales)
      view_.inputs[i] = groups;
    else if (checked_product(input_shape(i), "zps") == 1)
      view_.inputs[i].assign(input_shape(i).size(), kNoRun);
    else
      return refuse(join("zero points ", describe(input_shape(i)), " do not fit scales ", describe(scales)));
  }
}

// ---- layout

void ViewBuilder::transposed() {
  const auto& order = op_.attribute<std::vector<int64_t>>("order");
  const Dims& dst = output_shape(0);
  const size_t rank = dst.size();
  if (order.size() != rank) return refuse(join("order has ", order.size(), " entries for rank ", rank));
  loop_over(dst);
  view_.outputs[0] = identity_map(rank);
  view_.inputs[0].resize(rank, kNoRun);
  for (size_t i = 0; i < rank; ++i) {
    const auto axis = static_cast<size_t>(wrap_axis(order[i], static_cast<int>(rank)));
    view_.inputs[0][axis] = {static_cast<int>(i), 1};
  }
}

// A map onto `pieces` dims for a shape of which each dim that is not 1 takes the given number of pieces.
DimMap map_of_pieces(const Dims& shape, const std::vector<int>& counts) {
  DimMap map(shape.size(), kNoRun);
  int first = 0;
  size_t next = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    map[i] = {first, counts[next]};
    first += counts[next++];
  }
  return map;
}

Dims without_units(const Dims& shape) {
  Dims dims;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(dims), [](int64_t extent) { return extent != 1; });
  return dims;
}

void ViewBuilder::reshaped() {
  const Dims& src = input_shape(0);
  const Dims& dst = output_shape(0);
  const auto refined = common_refinement(without_units(src), without_units(dst));
  if (!refined) {
    view_.opaque_copy = true;
    loop_over(dst);
    view_.inputs[0].assign(src.size(), kNoRun);
    view_.outputs[0] = identity_map(dst.size());
    return;
  }
  loop_over(refined->pieces);
  view_.inputs[0] = map_of_pieces(src, refined->a);
  view_.outputs[0] = map_of_pieces(dst, refined->b);
}

// The inputs follow each other along `axis`: each is a copy of its own.
void ViewBuilder::concatenated() {
  view_.opaque_copy = true;
  loop_over(output_shape(0));
  for (size_t i = 0; i < op_.inputs.size(); ++i) view_.inputs[i].assign(input_shape(i).size(), kNoRun);
  view_.outputs[0] = identity_map(output_shape(0).size());
}

// ---- normalisations and reductions

bool is_statistic(std::string_view port) { return port == "mean" || port == "variance"; }

// gamma, beta and their gradients.
bool is_affine(std::string_view port) {
  return port.find("gamma") != std::string_view::npos || port.find("beta") != std::string_view::npos;
}

// Sets every port's map by its role, and marks the gradients of gamma and beta as sums.
void ViewBuilder::set_norm_ports(const PortMap& data, const PortMap& statistics, const PortMap& affine) {
  const OpSchema& schema = schema_of(op_.kind);
  const auto map_for = [&](std::string_view name) { return is_statistic(name) ? statistics : is_affine(name) ? affine : data; };
  for (const PortSpec& port : schema.inputs) set_input(port.name, map_for(port.name));
  for (const PortSpec& port : schema.outputs) {
    set_output(port.name, map_for(port.name));
    const size_t position = port_position(schema.outputs, op_.attributes, port.name);
    if (has_output(position) && is_affine(port.name)) view_.column_outputs[position] = true;
  }
}

void ViewBuilder::trailing_axes() {
  const Dims& src = input_shape(0);
  const auto begin = static_cast<size_t>(wrap_axis(op_.attribute<int64_t>("begin_norm_axis"), static_cast<int>(src.size())));
  if (begin >= src.size()) return refuse("it normalises no axis");
  has_rows_ = true;
  loop_over(src);
  normalize_dims(begin);
  set_norm_ports([this](const Dims& dims) { return broadcast_map(dims); },
                 [this, begin](const Dims& dims) { return leading_map(dims, begin); },
                 [this, begin](const Dims& dims) { return trailing_map(dims, begin); });
}

// Iteration dims: batch, then in the order of data_format the spatial dims and the channels as (groups, channels of a group).
void ViewBuilder::group_rows() {
  const Dims& src = input_shape(0);
  const auto groups = op_.attribute<int64_t>("groups");
  const size_t axis = channel_axis(src.size());
  if (src.size() < 2 || src[axis] == kUnknownDim || groups <= 0 || src[axis] % groups != 0)
    return refuse(join("its ", describe(src), " has no channels that ", groups, " groups divide"));
  Dims extents = src;
  extents[axis] = groups;
  extents.insert(extents.begin() + static_cast<long>(axis) + 1, src[axis] / groups);
  has_rows_ = true;
  loop_over(extents);
  normalize_dims(1);
  view_.inner[axis] = false;  // the groups
  DimMap full;
  for (size_t i = 0; i < src.size(); ++i) full.push_back({static_cast<int>(i <= axis ? i : i + 1), i == axis ? 2 : 1});
  const int channel = static_cast<int>(axis);
  set_norm_ports([&full](const Dims&) { return full; },
                 [channel](const Dims&) { return DimMap{{0, 1}, {channel, 1}}; },
                 [this, channel](const Dims& dims) { return channel_map(dims, {channel, 2}); });
}

void ViewBuilder::channel_rows() {
  const Dims& src = input_shape(0);
  has_rows_ = true;
  loop_over(src);
  normalize_dims(0);
  const size_t axis = channel_axis(src.size());
  view_.inner[axis] = false;
  const AxisRun channel{static_cast<int>(axis), 1};
  const auto map_of = [&](const Dims& dims) {
    return dims.size() == src.size() ? identity_map(src.size()) : channel_map(dims, channel);
  };
  for (size_t i = 0; i < op_.inputs.size(); ++i)
    if (has_input(i)) view_.inputs[i] = map_of(input_shape(i));
  for (size_t i = 0; i < op_.outputs.size(); ++i)
    if (has_output(i)) view_.outputs[i] = map_of(output_shape(i));
}

void ViewBuilder::axis_rows() {
  const Dims& src = input_shape(0);
  if (src.empty()) return refuse("its tensor has rank 0");
  const auto axis = static_cast<size_t>(wrap_axis(op_.attribute<int64_t>("axis"), static_cast<int>(src.size())));
  has_rows_ = true;
  loop_over(src);
  view_.inner[axis] = true;
  for (size_t i = 0; i < op_.inputs.size(); ++i)
    if (has_input(i)) view_.inputs[i] = identity_map(src.size());
  for (size_t i = 0; i < op_.outputs.size(); ++i)
    if (has_output(i)) view_.outputs[i] = identity_map(src.size());
  if (has_output(1)) view_.outputs[1][axis] = kNoRun;
}

void ViewBuilder::listed_axes() {
  if (has_input(1)) return refuse("its axes are an input");
  const Dims& src = input_shape(0);
  has_rows_ = true;
  loop_over(src);
  view_.inputs[0] = identity_map(src.size());
  for (const int64_t axis : op_.attribute<std::vector<int64_t>>("axes"))
    view_.inner[static_cast<size_t>(wrap_axis(axis, static_cast<int>(src.size())))] = true;
  const bool keep_dims = op_.attribute<bool>("keep_dims");
  for (size_t i = 0; i < src.size(); ++i) {
    if (!view_.inner[i])
      view_.outputs[0].push_back({static_cast<int>(i), 1});
    else if (keep_dims)
      view_.outputs[0].push_back(kNoRun);
  }
}

// ---- extents of 1

AxisRun kept_run(const AxisRun& run, const std::vector<int>& new_index, const Dims& extents) {
  AxisRun kept = kNoRun;
  for (int dim = run.first; dim < run.first + run.count; ++dim) {
    if (extents[static_cast<size_t>(dim)] == 1) continue;
    if (kept.count++ == 0) kept.first = new_index[static_cast<size_t>(dim)];
  }
  return kept;
}

void ViewBuilder::finish() {
  std::vector<int> new_index;
  Dims extents;
  std::vector<bool> inner;
  for (size_t i = 0; i < view_.extents.size(); ++i) {
    new_index.push_back(static_cast<int>(extents.size()));
    if (view_.extents[i] == 1) continue;
    extents.push_back(view_.extents[i]);
    inner.push_back(view_.inner[i]);
  }
  for (auto* maps : {&view_.inputs, &view_.outputs})
    for (DimMap& map : *maps)
      for (AxisRun& run : map) run = kept_run(run, new_index, view_.extents);
  view_.extents = std::move(extents);
  view_.inner = std::move(inner);
  if (has_rows_ && !view_.has_inner()) {
    view_.extents.push_back(1);
    view_.inner.push_back(true);
  }
}

}  // namespace

bool IterationView::has_inner() const { return std::find(inner.begin(), inner.end(), true) != inner.end(); }

bool IterationView::has_columns() const {
  return std::find(column_outputs.begin(), column_outputs.end(), true) != column_outputs.end();
}

IterationView iteration_view(const Graph& graph, const Op& op) { return ViewBuilder(graph, op).build(); }

namespace {

bool match_dim_by_dim(const Dims& a, const Dims& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](int64_t x, int64_t y) {
           return x == y || x == kUnknownDim || y == kUnknownDim;
         });
}

bool can_be_cut(const Dims& dims) {
  return std::all_of(dims.begin(), dims.end(), [](int64_t extent) { return extent > 0; });
}

int64_t product(const Dims& dims) { return checked_product(dims, "a shape"); }

}  // namespace

std::optional<Refinement> common_refinement(const Dims& a, const Dims& b) {
  Refinement result;
  if (match_dim_by_dim(a, b)) {
    for (size_t i = 0; i < a.size(); ++i) result.pieces.push_back(a[i] == kUnknownDim ? b[i] : a[i]);
    result.a.assign(a.size(), 1);
    result.b.assign(b.size(), 1);
    return result;
  }
  if (!can_be_cut(a) || !can_be_cut(b) || product(a) != product(b)) return std::nullopt;
  size_t i = 0, j = 0;
  int64_t rest_a = 1, rest_b = 1;  // what is left of a[i - 1] and b[j - 1]
  while (rest_a != 1 || rest_b != 1 || i < a.size() || j < b.size()) {
    if (rest_a == 1 && i < a.size()) {
      rest_a = a[i++];
      result.a.push_back(0);
    }
    if (rest_b == 1 && j < b.size()) {
      rest_b = b[j++];
      result.b.push_back(0);
    }
    const int64_t piece = std::min(rest_a, rest_b);
    if (rest_a % piece != 0 || rest_b % piece != 0) return std::nullopt;
    result.pieces.push_back(piece);
    ++result.a.back();
    ++result.b.back();
    rest_a /= piece;
    rest_b /= piece;
  }
  return result;
}

}  // namespace lamina
