#include "passes/tiling/tile_regions.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "interface/op_schema.h"
#include "interface/status.h"
#include "passes/fusion/group_order.h"
#include "passes/tiling/row_view.h"

namespace lamina {

namespace {

// Sizes follow from shapes and types alone, so that bits do not depend on the machine.
constexpr int64_t kMostRows = 128, kLeastRows = 16, kGoodRows = 32;
constexpr int64_t kTileBytes = 1 << 20;  // of the values between groups: about a second-level cache
// Above it the values lie in memory anyway. Less is needed, where kernels write in place.
constexpr int64_t kMostTileBytes = 5 << 20;
constexpr int64_t kLeastTiles = 8;  // fewer leave threads without work that a whole product would give them
constexpr int64_t kGoodTiles = 32;
// Each tile reads the weights of its products again. Where they are larger, only many rows make up for that.
constexpr int64_t kWeightBytes = 1 << 20;
// Weights are dequantised again for each tile of so many rows, or more, where all of them would fill a cache: that costs little
// beside their product.
constexpr int64_t kRowsWorthRepeating = 64;
constexpr int64_t kMostRepeatedBytes = 2 << 20;
// Tiles that add to sums: more rows, as each reads and writes the sums again.
constexpr int64_t kWideColumns = 512;  // at most, where columns are cut
constexpr int64_t kSummingTileBytes = 2 << 20;
constexpr int64_t kMostSumBytes = 4 << 20;  // of what a tile adds to one of them
constexpr int64_t kBlocksOfSegment = 4, kMostSegments = 4;
constexpr size_t kMostValues = 60;  // inputs and outputs of a region, and what lies between

class Grower {
 public:
  Grower(const Graph& graph, const std::vector<FusionGroup>& groups, std::span<const ValueIndex> outputs,
         const IntegerSupport& integers)
      : graph_(graph), groups_(groups), group_of_(graph.ops().size(), 0), is_output_(graph.values().size(), false) {
    for (size_t g = 0; g < groups.size(); ++g) {
      for (const int op : groups[g].ops) group_of_[static_cast<size_t>(op)] = g;
    }
    for (const ValueIndex value : outputs) is_output_[static_cast<size_t>(value)] = true;
    for (size_t g = 0; g < groups.size(); ++g) {
      const std::optional<QuantizedProduct> product = quantized_group(graph, groups, groups[g]);
      if (product && are_taken(integers, graph.op(groups[g].ops.front()))) {
        costs_nothing_.emplace(group_of_[static_cast<size_t>(product->weights.ops.front())],
                               group_of_[static_cast<size_t>(product->src.ops.front())]);
      }
    }
  }

  // The region around the product that is group `seed`; nothing, and why, when no tiles are worth their while.
  std::optional<TileRegion> grow(size_t seed, const std::vector<bool>& taken, std::string& why_not) {
    may_sum_ = true, cuts_columns_ = false;
    std::optional<TileRegion> by_rows = grow_with_repeats(seed, taken, why_not);
    if (!has_sums_) return by_rows;
    const std::vector<size_t> products = products_inside();
    cuts_columns_ = true;
    std::string refused;
    std::optional<TileRegion> by_columns = grow_with_repeats(seed, taken, refused);
    if (by_columns && products_inside() == products) return by_columns;
    cuts_columns_ = false;
    if (by_rows) return by_rows;
    for (const size_t product : products)
      if (product != seed) left_out_[product] = why_not;
    may_sum_ = false;
    std::optional<TileRegion> without_sums = grow_with_repeats(seed, taken, refused);
    return without_sums;
  }

  // Why a product that might have been a sum over tiles is in no region; "" if nothing is known of that.
  std::string why_left_out(size_t product) const {
    const auto found = left_out_.find(product);
    return found == left_out_.end() ? "" : found->second;
  }

 private:
  std::optional<TileRegion> grow_with_repeats(size_t seed, const std::vector<bool>& taken, std::string& why_not) {
    for (const bool repeats : {true, false}) {
      std::optional<TileRegion> region = grow_once(seed, taken, repeats, why_not);
      if (region || !has_repeats()) return region;
    }
    return std::nullopt;
  }

  // `repeats`: each tile may dequantise weights that others have dequantised too.
  std::optional<TileRegion> grow_once(size_t seed, const std::vector<bool>& taken, bool repeats, std::string& why_not) {
    may_repeat_ = repeats;
    has_sums_ = false;
    region_ = {};
    members_.clear();
    taken_ = &taken;
    const Op& product = graph_.op(groups_[seed].ops.front());
    const LogicalTensor& dst = graph_.tensor(product.outputs[0]);
    if (dst.rank() < 2) return why_not = "its rows are one", std::nullopt;
    AxisLoops loops;
    for (int axis = 0; axis + (cuts_columns_ ? 0 : 1) < dst.rank(); ++axis) {
      region_.loops.push_back((*dst.shape)[static_cast<size_t>(axis)]);
      loops.push_back(axis);
    }
    if (std::count(region_.loops.begin(), region_.loops.end(), 0) > 0) return why_not = "it has no elements", std::nullopt;
    if (cuts_columns_) region_.columns = column_block(region_.loops.back());
    loops.resize(static_cast<size_t>(dst.rank()), -1);
    region_.cut[product.outputs[0]] = settled(dst, loops);
    if (!add(seed)) return why_not = refusal_, std::nullopt;
    for (bool grown = true; grown;) grown = add_a_neighbour();
    if (members_.size() < 2) return why_not = refusal_.empty() ? "nothing beside it has its rows" : refusal_, std::nullopt;
    return finish(why_not);
  }

  // An axis of extent 1 is not cut: there is nothing to cut.
  static AxisLoops settled(const LogicalTensor& tensor, AxisLoops loops) {
    for (size_t axis = 0; axis < loops.size(); ++axis) {
      if ((*tensor.shape)[axis] == 1) loops[axis] = -1;
    }
    return loops;
  }

  // Groups that make what the region reads, or read what it makes.
  bool add_a_neighbour() {
    std::set<size_t> near;
    for (const size_t member : members_) {
      for (const int position : groups_[member].ops) {
        const Op& op = graph_.op(position);
        for (const ValueIndex value : op.inputs) {
          const int maker = value == kNoValue ? -1 : graph_.value(value).producer.op;
          if (maker >= 0) near.insert(group_of_[static_cast<size_t>(maker)]);
        }
        for (const ValueIndex value : op.outputs) {
          if (value == kNoValue) continue;
          for (const Port& reader : graph_.value(value).consumers) near.insert(group_of_[static_cast<size_t>(reader.op)]);
        }
      }
    }
    for (const size_t group : near) {
      if (!members_.contains(group) && !(*taken_)[group] && add(group)) return true;
    }
    return false;
  }

  // Adds a group if its ops can be cut as the region is, and nothing leaves the region and comes back.
  bool add(size_t group) {
    if (!keeps_convex(group)) return refuse("a path leaves the region and comes back");
    Cuts cuts{region_.cut, region_.sums};
    std::vector<int> waiting = groups_[group].ops;
    while (!waiting.empty()) {
      const auto next = next_of(waiting, cuts.axes);
      if (next == waiting.end()) return refuse("nothing says how it is cut");
      if (!cut_op(cuts, graph_.op(*next))) return false;
      waiting.erase(next);
    }
    if (!members_.empty() && !costs_nothing_.contains(group) && recomputes(group, cuts) &&
        !(may_repeat_ && only_dequantises_weights(group)))
      return refuse("it would be computed again for each tile");
    if (reads_a_sum(group, cuts)) return false;
    if (cuts.axes.size() > kMostValues) return refuse(join("a region has at most ", kMostValues, " values"));
    region_.cut = std::move(cuts.axes);
    region_.sums = std::move(cuts.sums);
    has_sums_ = !region_.sums.empty();
    members_.insert(group);
    return true;
  }

  bool refuse(std::string why) {
    refusal_ = std::move(why);
    return false;
  }

  // One with a value that is cut, as long as there is any: a number that ops share says nothing of their loops.
  std::vector<int>::iterator next_of(std::vector<int>& waiting, const std::map<ValueIndex, AxisLoops>& cut) const {
    for (const bool must_be_cut : {true, false}) {
      const auto next =
          std::find_if(waiting.begin(), waiting.end(), [&](int op) { return is_known(cut, graph_.op(op), must_be_cut); });
      if (next != waiting.end()) return next;
    }
    return waiting.end();
  }
  static bool is_known(const std::map<ValueIndex, AxisLoops>& cut, const Op& op, bool must_be_cut) {
    const auto known = [&](ValueIndex value) {
      const auto found = value == kNoValue ? cut.end() : cut.find(value);
      return found != cut.end() &&
             (!must_be_cut || std::any_of(found->second.begin(), found->second.end(), [](int loop) { return loop >= 0; }));
    };
    return std::any_of(op.inputs.begin(), op.inputs.end(), known) || std::any_of(op.outputs.begin(), op.outputs.end(), known);
  }

  // How values are cut, and over which loop those are summed that several tiles add to.
  struct Cuts {
    std::map<ValueIndex, AxisLoops> axes;
    std::map<ValueIndex, int> sums;
  };

  // A sum is not there before the last of its tiles.
  bool reads_a_sum(size_t group, const Cuts& cuts) {
    for (const auto& [value, loop] : cuts.sums) {
      for (const Port& reader : graph_.value(value).consumers) {
        const size_t by = group_of_[static_cast<size_t>(reader.op)];
        if (is_marker(graph_.op(reader.op)) || (by != group && !members_.contains(by))) continue;
        refuse(join(describe(graph_.op(reader.op)), " reads a sum that the tiles add to"));
        return true;
      }
    }
    return false;
  }

  // Takes over the loops of the op's values that are known, and says how the others are cut.
  bool cut_op(Cuts& cuts, const Op& op) {
    std::map<ValueIndex, AxisLoops>& cut = cuts.axes;
    if (is_marker(op)) return true;
    const IterationView view = row_view(graph_, op);
    if (!view.why_not.empty()) return refuse(view.why_not);
    if (view.opaque_copy || schema_of(op.kind).nest == LoopNest::reshaped) return refuse(join(describe(op), " says its shape"));
    if (view.has_columns()) return refuse(join(describe(op), " sums over rows"));
    std::vector<int> loops(view.extents.size(), -1);
    for (const auto& [values, maps] : {std::pair{&op.inputs, &view.inputs}, {&op.outputs, &view.outputs}}) {
      for (size_t port = 0; port < values->size(); ++port) {
        const auto known = (*values)[port] == kNoValue ? cut.end() : cut.find((*values)[port]);
        if (known != cut.end() && !take_loops(loops, view, (*maps)[port], known->second, op)) return false;
      }
    }
    for (const auto& [values, maps] : {std::pair{&op.inputs, &view.inputs}, {&op.outputs, &view.outputs}}) {
      for (size_t port = 0; port < values->size(); ++port) {
        if ((*values)[port] != kNoValue && !give_loops(cut, (*values)[port], loops, (*maps)[port], op)) return false;
      }
    }
    if (schema_of(op.kind).traits.positional && graph_.input_value(op, "first") != kNoValue)
      return refuse(join(describe(op), " is a part of a larger tensor already"));
    return !is_matrix_product(op) || loops.back() < 0 || add_sum(cuts, op, loops.back());
  }

  // A product sums over blocks of a loop.
  bool add_sum(Cuts& cuts, const Op& op, int loop) {
    const auto refused = [&](std::string_view why) {
      refuse(join(describe(op), " sums over the rows of a tile, ", why));
      return left_out_[group_of_[static_cast<size_t>(graph_.value(op.outputs[0]).producer.op)]] = refusal_, false;
    };
    if (region_.row_loop() == 0) return refused("and there is no batch to take apart instead");
    if (op.inputs.size() > 2 && op.inputs[2] != kNoValue) return refused("and would add its bias in each");
    for (const ValueIndex value : {op.inputs[0], op.inputs[1], op.outputs[0]}) {
      const DataType dtype = graph_.tensor(value).dtype;
      if (dtype != DataType::f32 && dtype != DataType::bf16 && dtype != DataType::f16)
        return refused(join("which is not done in ", name_of(dtype)));
    }
    if (quantized_product(graph_, op)) return refused("which is not done with integers");
    cuts.sums[op.outputs[0]] = loop;
    return true;
  }

  bool take_loops(std::vector<int>& loops, const IterationView& view, const DimMap& map, const AxisLoops& axes, const Op& op) {
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (axes[axis] < 0) continue;
      const AxisRun run = map[axis];
      if (run.count != 1) return refuse(join(describe(op), " splits an axis that is cut"));
      const auto dim = static_cast<size_t>(run.first);
      if (view.inner[dim] && !may_cut_inner(op, view, dim, axes[axis]))
        return refuse(join(describe(op), " reduces an axis that is cut"));
      if (loops[dim] == axes[axis]) continue;
      const bool is_elsewhere = std::find(loops.begin(), loops.end(), axes[axis]) != loops.end();
      if (loops[dim] >= 0 || is_elsewhere) return refuse(join(describe(op), " joins rows of different loops"));
      loops[dim] = axes[axis];
    }
    return true;
  }

  // A product may be cut in blocks along the dim that it sums over, which is the last, and along its columns.
  bool may_cut_inner(const Op& op, const IterationView& view, size_t dim, int loop) const {
    const auto rows = static_cast<int>(region_.row_loop());
    return is_matrix_product(op) && (dim + 1 == view.extents.size() ? may_sum_ && loop >= rows : loop > rows);
  }

  bool give_loops(std::map<ValueIndex, AxisLoops>& cut, ValueIndex value, const std::vector<int>& loops, const DimMap& map,
                  const Op& op) {
    const LogicalTensor& tensor = graph_.tensor(value);
    AxisLoops axes(map.size(), -1);
    for (size_t axis = 0; axis < map.size(); ++axis) {
      for (int dim = map[axis].first; dim < map[axis].first + map[axis].count; ++dim) {
        const int loop = loops[static_cast<size_t>(dim)];
        if (loop < 0) continue;
        const bool whole = map[axis].count == 1 && (*tensor.shape)[axis] == region_.loops[static_cast<size_t>(loop)];
        if (!whole) return refuse(join(describe(op), " has a part of the rows in an axis"));
        axes[axis] = loop;
      }
      if (axes[axis] >= 0 && !begins_at_a_byte(tensor, axis))
        return refuse(join(describe(op), " cuts bytes of four-bit numbers"));
    }
    axes = settled(tensor, std::move(axes));
    const auto [place, is_new] = cut.try_emplace(value, axes);
    return is_new || place->second == axes || refuse(join(describe(op), " and its neighbours cut a value differently"));
  }

  static bool begins_at_a_byte(const LogicalTensor& tensor, size_t axis) {
    return bits_of(tensor.dtype) >= 8 || made_dense(tensor).strides[axis] % 2 == 0;
  }

  // Whether the group makes weights of products of numbers in few bits, and nothing else.
  bool only_dequantises_weights(size_t group) const {
    bool dequantises = false;
    for (const int position : groups_[group].ops) {
      const Op& op = graph_.op(position);
      if (!dequantises_or_casts(op)) return false;
      dequantises = dequantises || op.kind != OpKind::TypeCast;
      if (is_output_[static_cast<size_t>(op.outputs[0])]) return false;
      for (const Port& reader : graph_.value(op.outputs[0]).consumers) {
        const bool is_weights = is_matrix_product(graph_.op(reader.op)) && reader.port == 1;
        if (!is_weights && group_of_[static_cast<size_t>(reader.op)] != group) return false;
      }
    }
    return dequantises;
  }
  bool is_repeated(size_t group) const {
    return !costs_nothing_.contains(group) && only_dequantises_weights(group) && recomputes(group, {region_.cut, region_.sums});
  }
  bool has_repeats() const {
    return may_repeat_ && std::any_of(members_.begin(), members_.end(), [this](size_t group) { return is_repeated(group); });
  }
  int64_t bytes_of_repeated() const {
    int64_t bytes = 0;
    for (const size_t group : members_) {
      if (is_repeated(group)) bytes += graph_.tensor(graph_.op(groups_[group].ops.back()).outputs[0]).byte_size();
    }
    return bytes;
  }
  // Whether another loop than that of the rows passes over them again.
  bool repeats_for_other_loops() const {
    return std::any_of(members_.begin(), members_.end(), [this](size_t group) {
      if (!is_repeated(group)) return false;
      const AxisLoops& axes = region_.cut.at(graph_.op(groups_[group].ops.back()).outputs[0]);
      for (size_t loop = 0; loop < region_.row_loop(); ++loop) {
        if (region_.loops[loop] > 1 && std::find(axes.begin(), axes.end(), static_cast<int>(loop)) == axes.end()) return true;
      }
      return false;
    });
  }

  // A value without one of the loops is made by every tile of it, unless they add up to it.
  bool recomputes(size_t group, const Cuts& cuts) const {
    for (const int position : groups_[group].ops) {
      for (const ValueIndex value : graph_.op(position).outputs) {
        if (value == kNoValue) continue;
        const auto sum = cuts.sums.find(value);
        if (!has_all_loops(cuts.axes.at(value), sum == cuts.sums.end() ? -1 : sum->second)) return true;
      }
    }
    return false;
  }
  bool has_all_loops(const AxisLoops& axes, int but) const {
    for (int loop = 0; loop < static_cast<int>(region_.loops.size()); ++loop) {
      if (loop == but || region_.loops[static_cast<size_t>(loop)] == 1) continue;
      if (std::find(axes.begin(), axes.end(), loop) == axes.end()) return false;
    }
    return true;
  }

  // No group outside lies between members: none that a member leads to leads to a member.
  bool keeps_convex(size_t group) const {
    std::set<size_t> all = members_;
    all.insert(group);
    std::set<size_t> after;
    std::vector<size_t> open(all.begin(), all.end());
    while (!open.empty()) {
      const size_t from = open.back();
      open.pop_back();
      for (const int position : groups_[from].ops) {
        for (const ValueIndex value : graph_.op(position).outputs) {
          if (value == kNoValue) continue;
          for (const Port& reader : graph_.value(value).consumers) {
            const size_t to = group_of_[static_cast<size_t>(reader.op)];
            if (to == from) continue;
            if (all.contains(to)) {
              if (!all.contains(from)) return false;
            } else if (to <= *all.rbegin() && after.insert(to).second) {
              open.push_back(to);  // behind the last member nothing leads to one
            }
          }
        }
      }
    }
    return true;
  }

  // Positions along an axis that is cut are given to each tile, and made by nobody.
  bool gives_positions_away() const {
    for (const size_t group : region_.groups) {
      for (const int position : groups_[group].ops) {
        const Op& op = graph_.op(position);
        const int axis = is_marker(op) ? -1 : axis_of_positions(graph_, op);
        if (axis < 0 || region_.cut.at(op.outputs[0])[static_cast<size_t>(axis)] < 0) continue;
        if (is_output_[static_cast<size_t>(op.outputs[0])] || is_read_outside(op.outputs[0])) return true;
      }
    }
    return false;
  }
  bool dequantises_in_each_tile() const {
    return std::any_of(costs_nothing_.begin(), costs_nothing_.end(), [&](const auto& weights_and_src) {
      return members_.contains(weights_and_src.first) && !members_.contains(weights_and_src.second);
    });
  }
  // Whether a product of integers takes what the group would dequantise.
  bool is_left_out(size_t group) const {
    return std::any_of(costs_nothing_.begin(), costs_nothing_.end(),
                       [group](const auto& factors) { return factors.first == group || factors.second == group; });
  }
  bool is_read_outside(ValueIndex value) const {
    const auto& readers = graph_.value(value).consumers;
    return std::any_of(readers.begin(), readers.end(),
                       [&](const Port& port) { return !members_.contains(group_of_[static_cast<size_t>(port.op)]); });
  }

  std::optional<TileRegion> finish(std::string& why_not) {
    region_.groups.assign(members_.begin(), members_.end());
    if (dequantises_in_each_tile()) return why_not = "it would dequantise weights again for each tile", std::nullopt;
    if (gives_positions_away()) return why_not = "positions that it cuts are read outside", std::nullopt;
    if (has_sums_) return finish_with_sums(why_not);
    const int64_t row_bytes = bytes_between(true), fixed_bytes = bytes_between(false);
    const bool repeats = has_repeats();
    if (repeats && fixed_bytes > kMostRepeatedBytes) return why_not = "its weights would fill a cache", std::nullopt;
    int64_t others = 1;
    for (size_t loop = 0; loop + 1 < region_.loops.size(); ++loop) others *= region_.loops[loop];
    const int64_t all_rows = region_.loops.back();
    const auto tiles = [&](int64_t rows) { return others * ((all_rows + rows - 1) / rows); };
    const bool has_large_weights = bytes_of_weights() > kWeightBytes;
    const int64_t good_rows = has_large_weights ? kMostRows : repeats ? kRowsWorthRepeating : kGoodRows;
    const int64_t good_bytes = has_large_weights ? kMostTileBytes : kTileBytes;
    int64_t rows = kMostRows;
    while (rows > kLeastRows && (rows * row_bytes + fixed_bytes > good_bytes || (rows > good_rows && tiles(rows) < kGoodTiles)))
      rows /= 2;
    rows = std::min(rows, all_rows);
    const bool is_made_once = rows == all_rows && !repeats_for_other_loops();
    if (repeats && !is_made_once && (rows < kRowsWorthRepeating || bytes_of_repeated() <= kTileBytes))
      return why_not = "it would dequantise weights again for each tile", std::nullopt;
    const int64_t tile_bytes = rows * row_bytes + fixed_bytes;
    if (tile_bytes > kMostTileBytes)
      return why_not = join("a tile of ", rows, " rows holds ", tile_bytes, " bytes, allowed are ", kMostTileBytes),
             std::nullopt;
    if (tiles(rows) < kLeastTiles)
      return why_not = join("there are ", tiles(rows), " tiles, and ", kLeastTiles, " are wanted"), std::nullopt;
    region_.rows = rows;
    region_.bytes = tile_bytes;
    return std::move(region_);
  }

  // Sizes must not follow from the extents of the batch: an entry alone is summed in the same blocks.
  std::optional<TileRegion> finish_with_sums(std::string& why_not) {
    if (has_repeats()) return why_not = "it would dequantise weights again for each tile", std::nullopt;
    if (cuts_columns_ && region_.blocks_of(region_.row_loop() + 1) == 1)
      return why_not = "its columns are one block", std::nullopt;
    const int64_t row_bytes = bytes_between(true), fixed_bytes = bytes_between(false);
    const int64_t all_rows = region_.loops[region_.row_loop()];
    int64_t rows = all_rows;
    if (cuts_columns_ || rows * row_bytes + fixed_bytes > kSummingTileBytes) rows = kMostRows;
    while (rows > kLeastRows && rows * row_bytes + fixed_bytes > kSummingTileBytes) rows /= 2;
    region_.rows = std::min(rows, all_rows);
    region_.bytes = region_.rows * row_bytes + fixed_bytes;
    if (region_.bytes > kMostTileBytes)
      return why_not = join("a tile of ", region_.rows, " rows holds ", region_.bytes, " bytes, allowed are ", kMostTileBytes),
             std::nullopt;
    std::erase_if(region_.sums, [this](const auto& sum) { return region_.blocks_of(static_cast<size_t>(sum.second)) == 1; });
    if (const int64_t bytes = most_bytes_of_a_sum(); bytes > kMostSumBytes)
      return why_not = join("a tile adds to ", bytes, " bytes of a sum, allowed are ", kMostSumBytes), std::nullopt;
    if (region_.sums.empty() && region_.tiles() < kLeastTiles)
      return why_not = join("there are ", region_.tiles(), " tiles, and ", kLeastTiles, " are wanted"), std::nullopt;
    if (sums_over_rows())
      region_.segments = std::clamp<int64_t>(region_.blocks_of(region_.row_loop()) / kBlocksOfSegment, 1, kMostSegments);
    return std::move(region_);
  }
  bool sums_over_rows() const {
    return std::any_of(region_.sums.begin(), region_.sums.end(),
                       [this](const auto& sum) { return static_cast<size_t>(sum.second) == region_.row_loop(); });
  }
  // In f32, for one tile.
  int64_t most_bytes_of_a_sum() const {
    int64_t most = 0;
    for (const auto& [value, loop] : region_.sums) {
      const Dims& shape = *graph_.tensor(value).shape;
      const AxisLoops& axes = region_.cut.at(value);
      int64_t elements = 1;
      for (size_t axis = 0; axis < axes.size(); ++axis)
        elements *= axes[axis] < 0 ? shape[axis] : region_.block_of(static_cast<size_t>(axes[axis]));
      most = std::max(most, bytes_of(DataType::f32, elements));
    }
    return most;
  }
  // Blocks of columns are as wide whatever the number of rows.
  static int64_t column_block(int64_t columns) {
    const int64_t blocks = (columns + kWideColumns - 1) / kWideColumns;
    return std::min(((columns + blocks - 1) / blocks + 63) / 64 * 64, columns);
  }
  std::vector<size_t> products_inside() const {
    std::vector<size_t> products;
    std::copy_if(members_.begin(), members_.end(), std::back_inserter(products),
                 [this](size_t group) { return !groups_[group].no_loop_nest.empty(); });
    return products;
  }

  // Of the second factors that all blocks of rows share, for one entry of the other loops.
  int64_t bytes_of_weights() const {
    int64_t bytes = 0;
    for (const size_t group : region_.groups) {
      const Op& op = graph_.op(groups_[group].ops.front());
      if (is_matrix_product(op)) bytes += bytes_of_an_entry(op.inputs[1]);
    }
    return bytes;
  }
  // What a value holds where its loops stand still.
  int64_t bytes_of_an_entry(ValueIndex value) const {
    const AxisLoops& axes = region_.cut.at(value);
    int64_t elements = 1;
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (axes[axis] < 0) elements *= (*graph_.tensor(value).shape)[axis];
    }
    return bytes_of(graph_.tensor(value).dtype, elements);
  }

  // Of all values that only the region knows: of a row of those that have rows, or of the others.
  int64_t bytes_between(bool with_rows) const {
    int64_t bytes = 0;
    for (const auto& [value, axes] : region_.cut) {
      if (!is_made_inside(value) || has_rows(axes) != with_rows) continue;
      const bool has_columns = has_loop(axes, region_.row_loop() + 1);
      bytes += bytes_of_an_entry(value) * (has_columns ? region_.columns : 1);
    }
    return bytes;
  }
  bool has_rows(const AxisLoops& axes) const {
    return region_.loops[region_.row_loop()] == 1 || has_loop(axes, region_.row_loop());
  }
  static bool has_loop(const AxisLoops& axes, size_t loop) {
    return std::find(axes.begin(), axes.end(), static_cast<int>(loop)) != axes.end();
  }
  // Between groups of the region, and nowhere else.
  bool is_made_inside(ValueIndex value) const {
    const Value& v = graph_.value(value);
    if (v.producer.op < 0 || is_output_[static_cast<size_t>(value)] || is_read_outside(value)) return false;
    const size_t maker = group_of_[static_cast<size_t>(v.producer.op)];
    return members_.contains(maker) && !is_left_out(maker) &&
           std::any_of(v.consumers.begin(), v.consumers.end(),
                       [&](const Port& reader) { return group_of_[static_cast<size_t>(reader.op)] != maker; });
  }

  const Graph& graph_;
  const std::vector<FusionGroup>& groups_;
  std::vector<size_t> group_of_;  // per op
  std::vector<bool> is_output_;   // per value
  // Groups that dequantise the weights of a product of integers, which leaves them out where it has those of its src beside it.
  std::map<size_t, size_t> costs_nothing_;
  std::map<size_t, std::string> left_out_;  // products that no region could add up, and why
  bool may_repeat_ = true;
  bool may_sum_ = true;        // products may sum over blocks of a loop
  bool cuts_columns_ = false;  // the columns of the first product are a loop of blocks
  bool has_sums_ = false;      // among the members, whatever the sizes
  const std::vector<bool>* taken_ = nullptr;
  TileRegion region_;
  std::set<size_t> members_;
  std::string refusal_;  // the last
};

bool is_product(const Graph& graph, const FusionGroup& group) {
  return !group.no_loop_nest.empty() && is_matrix_product(graph.op(group.ops.front()));
}

}  // namespace

int64_t TileRegion::tiles() const {
  int64_t tiles = 1;
  for (size_t loop = 0; loop < loops.size(); ++loop) tiles *= blocks_of(loop);
  return tiles;
}

std::vector<TileRegion> tile_regions(const Graph& graph, const std::vector<FusionGroup>& groups,
                                     std::span<const ValueIndex> outputs, const IntegerSupport& integers) {
  Grower grower(graph, groups, outputs, integers);
  std::vector<bool> taken(groups.size(), false);
  std::vector<std::string> why_not(groups.size());
  std::vector<TileRegion> regions;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (taken[g] || !is_product(graph, groups[g])) continue;
    std::optional<TileRegion> region = grower.grow(g, taken, why_not[g]);
    if (const std::string why = grower.why_left_out(g); !region && !why.empty()) why_not[g] = why;
    if (!region) continue;
    for (const size_t member : region->groups) taken[member] = true;
    regions.push_back(std::move(*region));
  }
  std::vector<TileRegion> whole = one_by_one(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    if (taken[g]) continue;
    whole[g].why_not = std::move(why_not[g]);
    regions.push_back(std::move(whole[g]));
  }
  std::vector<int> region_of(graph.ops().size(), -1);
  for (size_t r = 0; r < regions.size(); ++r) {
    for (const size_t group : regions[r].groups)
      for (const int op : groups[group].ops) region_of[static_cast<size_t>(op)] = static_cast<int>(r);
  }
  std::vector<TileRegion> ordered;
  for (const int r : order_groups(graph, region_of, static_cast<int>(regions.size())))
    ordered.push_back(std::move(regions[static_cast<size_t>(r)]));
  LAMINA_CHECK(ordered.size() == regions.size(), "tiled regions wait for each other in a circle");
  return ordered;
}

std::optional<QuantizedProduct> quantized_group(const Graph& graph, const std::vector<FusionGroup>& groups,
                                                const FusionGroup& product) {
  if (product.no_loop_nest.empty()) return std::nullopt;
  std::optional<QuantizedProduct> found = quantized_product(graph, graph.op(product.ops.front()));
  if (!found) return std::nullopt;
  for (std::vector<int> ops : {found->src.ops, found->weights.ops}) {
    std::sort(ops.begin(), ops.end());
    const auto is_theirs = [&](const FusionGroup& group) { return group.ops == ops; };
    if (std::none_of(groups.begin(), groups.end(), is_theirs)) return std::nullopt;
  }
  return found;
}

std::vector<TileRegion> one_by_one(size_t groups) {
  std::vector<TileRegion> regions(groups);
  for (size_t g = 0; g < groups; ++g) regions[g].groups = {g};
  return regions;
}

}  // namespace lamina
