#include "passes/tiling/tile_regions.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "interface/op_schema.h"
#include "interface/status.h"
#include "passes/fusion/group_order.h"
#include "passes/tiling/causal_mask.h"
#include "passes/tiling/cut_op.h"
#include "passes/tiling/grouped_graph.h"
#include "passes/tiling/row_view.h"
#include "passes/tiling/tile_sizes.h"

namespace lamina {

namespace {

constexpr size_t kMaxValues = 60;        // inputs, outputs and inner values of a region
constexpr int64_t kMostJoinedRows = 64;  // of entries that share weights, in one tile

class Grower {
 public:
  Grower(const GroupedGraph& grouped, int64_t cache_bytes)
      : grouped_(grouped), graph_(grouped.graph()), cache_bytes_(cache_bytes) {}

  // The region around the product in group `seed`. Nothing, and the reason, if tiles do not pay.
  std::optional<TileRegion> grow(size_t seed, const std::vector<bool>& taken, std::string& why_not) {
    joins_rows_ = rows_share_weights(grouped_.first_op(seed));
    if (joins_rows_) {
      may_sum_ = cuts_columns_ = false;
      if (std::optional<TileRegion> joined = grow_with_repeats(seed, taken, why_not)) return joined;
    }
    joins_rows_ = false, may_sum_ = true, cuts_columns_ = false;
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

  // The reason why a product that could be a sum over tiles is in no region; "" if none is recorded.
  std::string why_left_out(size_t product) const {
    const auto found = left_out_.find(product);
    return found == left_out_.end() ? "" : found->second;
  }

 private:
  // Whether entries of the last batch dim multiply by the same weights and have few rows each, so that one tile should contain
  // them: decoding with heads that share keys and values.
  bool rows_share_weights(const Op& product) const {
    const Dims &weights = *graph_.tensor(product.inputs[1]).shape, &dst = *graph_.tensor(product.outputs[0]).shape;
    const size_t rank = dst.size();
    if (rank < 4 || dst[rank - 3] == 1) return false;
    const bool are_shared = weights.size() < 3 || weights[weights.size() - 3] == 1;
    return are_shared && dst[rank - 3] * dst[rank - 2] <= kMostJoinedRows;
  }

  std::optional<TileRegion> grow_with_repeats(size_t seed, const std::vector<bool>& taken, std::string& why_not) {
    for (const bool repeats : {true, false}) {
      may_repeat_ = repeats;
      std::optional<TileRegion> region = grow_once(seed, taken, why_not);
      if (region || !has_repeats_) return region;
    }
    return std::nullopt;
  }

  std::optional<TileRegion> grow_once(size_t seed, const std::vector<bool>& taken, std::string& why_not) {
    has_sums_ = has_repeats_ = false;
    region_ = {};
    members_.clear();
    taken_ = &taken;
    const Op& product = grouped_.first_op(seed);
    const LogicalTensor& dst = graph_.tensor(product.outputs[0]);
    if (dst.rank() < 2) return why_not = "it has one row", std::nullopt;
    AxisLoops loops;
    for (int axis = 0; axis + (cuts_columns_ ? 0 : joins_rows_ ? 2 : 1) < dst.rank(); ++axis) {
      region_.loops.push_back((*dst.shape)[static_cast<size_t>(axis)]);
      loops.push_back(axis);
    }
    if (std::count(region_.loops.begin(), region_.loops.end(), 0) > 0) return why_not = "it has no elements", std::nullopt;
    if (cuts_columns_) region_.columns = column_block(region_.loops.back());
    loops.resize(static_cast<size_t>(dst.rank()), -1);
    region_.cut[product.outputs[0]] = without_ones(dst, loops);
    if (!add(seed)) return why_not = refusal_, std::nullopt;
    for (bool grown = true; grown;) grown = add_a_neighbour();
    const auto is_a_step = [&](size_t group) { return !grouped_.is_part_of_product(group); };
    if (std::count_if(members_.begin(), members_.end(), is_a_step) < 2)
      return why_not = refusal_.empty() ? "no connected op has its rows" : refusal_, std::nullopt;
    return finish(why_not);
  }

  // Adds a group that computes an input of the region, or reads one of its values.
  bool add_a_neighbour() {
    std::set<size_t> near;
    for (const size_t member : members_) {
      for (const int position : grouped_.group(member).ops) {
        const Op& op = graph_.op(position);
        for (const ValueIndex value : op.inputs) {
          const int maker = value == kNoValue ? -1 : graph_.value(value).producer.op;
          if (maker >= 0) near.insert(grouped_.group_of(maker));
        }
        for (const ValueIndex value : op.outputs) {
          if (value == kNoValue) continue;
          for (const Port& reader : graph_.value(value).consumers) near.insert(grouped_.group_of(reader.op));
        }
      }
    }
    for (const size_t group : near) {
      if (!members_.contains(group) && !(*taken_)[group] && add(group)) return true;
    }
    return false;
  }

  // Adds a group if its ops can be cut like the region and the region stays convex.
  bool add(size_t group) {
    if (!keeps_convex(group)) return refuse("a path leaves the region and comes back");
    TileRegion grown = region_;
    std::vector<int> waiting = grouped_.group(group).ops;
    while (!waiting.empty()) {
      const auto next = next_to_cut(graph_, waiting, grown.cut);
      if (next == waiting.end()) return refuse("no value determines how it is cut");
      if (!cut(grown, graph_.op(*next))) return false;
      waiting.erase(next);
    }
    const bool repeats = !members_.empty() && !grouped_.costs_nothing(group) && recomputes(grouped_, grown, group);
    if (repeats && !(may_repeat_ && grouped_.only_dequantises_weights(group)))
      return refuse("it would be computed again for each tile");
    if (reads_a_sum(group, grown)) return false;
    if (grown.cut.size() > kMaxValues) return refuse(join("a region has at most ", kMaxValues, " values"));
    region_ = std::move(grown);
    has_sums_ = !region_.sums.empty();
    has_repeats_ = has_repeats_ || repeats;
    members_.insert(group);
    return true;
  }

  bool cut(TileRegion& region, const Op& op) {
    if (std::string why_not = cut_op(region, graph_, op, may_sum_ ? Reduces::blocks : Reduces::none); !why_not.empty())
      return refuse(std::move(why_not));
    if (is_marker(op) || !region.sums.contains(op.outputs[0])) return true;
    std::string why_not = why_no_sum(region, graph_, op);
    if (why_not.empty()) return true;
    left_out_[grouped_.group_of(graph_.value(op.outputs[0]).producer.op)] = why_not;
    return refuse(std::move(why_not));
  }

  bool refuse(std::string why) {
    refusal_ = std::move(why);
    return false;
  }

  // A sum is complete only after the last of its tiles.
  bool reads_a_sum(size_t group, const TileRegion& region) {
    for (const auto& [value, loop] : region.sums) {
      for (const Port& reader : graph_.value(value).consumers) {
        const size_t by = grouped_.group_of(reader.op);
        if (is_marker(graph_.op(reader.op)) || (by != group && !members_.contains(by))) continue;
        refuse(join(describe(graph_.op(reader.op)), " reads a sum that the tiles add to"));
        return true;
      }
    }
    return false;
  }

  // Whether no outside group is on a path between members, so that the region stays convex.
  bool keeps_convex(size_t group) const {
    std::set<size_t> all = members_;
    all.insert(group);
    std::set<size_t> after;
    std::vector<size_t> open(all.begin(), all.end());
    while (!open.empty()) {
      const size_t from = open.back();
      open.pop_back();
      for (const int position : grouped_.group(from).ops) {
        for (const ValueIndex value : graph_.op(position).outputs) {
          if (value == kNoValue) continue;
          for (const Port& reader : graph_.value(value).consumers) {
            const size_t to = grouped_.group_of(reader.op);
            if (to == from) continue;
            if (all.contains(to)) {
              if (!all.contains(from)) return false;
            } else if (to <= *all.rbegin() && after.insert(to).second) {
              open.push_back(to);  // after the last member, no group leads to a member
            }
          }
        }
      }
    }
    return true;
  }

  // Whether positions along a cut axis are read outside. Each tile gets them as an input, so no op would compute them.
  bool gives_positions_away() const {
    for (const size_t group : region_.groups) {
      for (const int position : grouped_.group(group).ops) {
        const Op& op = graph_.op(position);
        const int axis = is_marker(op) ? -1 : axis_of_positions(graph_, op);
        if (axis < 0 || region_.cut.at(op.outputs[0])[static_cast<size_t>(axis)] < 0) continue;
        if (grouped_.is_output(op.outputs[0]) || grouped_.is_read_outside(op.outputs[0], members_)) return true;
      }
    }
    return false;
  }

  std::optional<TileRegion> finish(std::string& why_not) {
    region_.groups.assign(members_.begin(), members_.end());
    if (grouped_.dequantises_in_each_tile(members_))
      return why_not = "it would dequantise weights again for each tile", std::nullopt;
    if (gives_positions_away()) return why_not = "positions that it cuts are read outside", std::nullopt;
    why_not = choose_tile_sizes(region_, grouped_, may_repeat_, cache_bytes_);
    if (!why_not.empty()) return std::nullopt;
    std::vector<int> ops;
    for (const size_t group : members_)
      ops.insert(ops.end(), grouped_.group(group).ops.begin(), grouped_.group(group).ops.end());
    std::sort(ops.begin(), ops.end());
    const auto is_needed = [&](ValueIndex value) {
      return grouped_.is_output(value) || grouped_.is_read_outside(value, members_);
    };
    region_.mask = find_causal_mask(graph_, region_, ops, is_needed);
    return std::move(region_);
  }

  std::vector<size_t> products_inside() const {
    std::vector<size_t> products;
    std::copy_if(members_.begin(), members_.end(), std::back_inserter(products),
                 [this](size_t group) { return !grouped_.group(group).no_loop_nest.empty(); });
    return products;
  }

  const GroupedGraph& grouped_;
  const Graph& graph_;
  const int64_t cache_bytes_;
  std::map<size_t, std::string> left_out_;       // products that could not be added to any region as a sum, and why
  bool may_repeat_ = true;                       // each tile may dequantise weights that other tiles dequantise too
  bool may_sum_ = true;                          // products may sum over blocks of a loop
  bool cuts_columns_ = false;                    // the columns of the first product are a loop of blocks
  bool joins_rows_ = false;                      // the loop over rows is the last batch dim of the first product
  bool has_sums_ = false, has_repeats_ = false;  // among the members, independent of the sizes
  const std::vector<bool>* taken_ = nullptr;
  TileRegion region_;
  std::set<size_t> members_;
  std::string refusal_;  // the last one
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
                                     std::span<const ValueIndex> outputs, const TileTarget& target) {
  const GroupedGraph grouped(graph, groups, outputs, target.library);
  Grower grower(grouped, target.cache_bytes);
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
  LAMINA_CHECK(ordered.size() == regions.size(), "tiled regions depend on each other in a cycle");
  return ordered;
}

std::vector<TileRegion> one_by_one(size_t groups) {
  std::vector<TileRegion> regions(groups);
  for (size_t g = 0; g < groups; ++g) regions[g].groups = {g};
  return regions;
}

}  // namespace lamina
