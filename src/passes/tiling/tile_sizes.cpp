#include "passes/tiling/tile_sizes.h"

#include <algorithm>

#include "interface/status.h"
#include "passes/tiling/row_view.h"

namespace lamina {

namespace {

constexpr int64_t kMaxRows = 128, kMinRows = 16, kGoodRows = 32;
constexpr int64_t kMinTiles = 8;  // fewer tiles leave threads idle, while a product without tiles uses all of them
constexpr int64_t kGoodTiles = 32;
// If all weights would fill a cache, each tile of at least this many rows dequantises them again. This costs
// little compared with their product.
constexpr int64_t kRowsWorthRepeating = 64;
constexpr int64_t kWideColumns = 512;  // at most, if columns are cut
constexpr int64_t kBlocksOfSegment = 4, kMaxSegments = 4;

constexpr const char* kRepeatsWeights = "it would dequantise weights again for each tile";

bool has_loop(const AxisLoops& axes, size_t loop) {
  return std::find(axes.begin(), axes.end(), static_cast<int>(loop)) != axes.end();
}

class TileSizes {
 public:
  TileSizes(TileRegion& region, const GroupedGraph& grouped, bool may_repeat, int64_t cache_bytes)
      : region_(region),
        grouped_(grouped),
        graph_(grouped.graph()),
        members_(region.groups.begin(), region.groups.end()),
        cache_bytes_(cache_bytes) {
    for (const size_t group : region.groups) {
      if (may_repeat && !grouped.costs_nothing(group) && grouped.only_dequantises_weights(group) &&
          recomputes(grouped, region, group))
        repeated_.push_back(group);
    }
    row_bytes_ = bytes_between(true);
    fixed_bytes_ = bytes_between(false);
  }

  std::string choose() {
    if (!repeated_.empty() && fixed_bytes_ > max_repeated_bytes()) return "its weights would fill a cache";
    const int64_t all_rows = region_.loops.back(), rows = good_rows();
    const bool is_made_once = rows == all_rows && !repeats_for_other_loops();
    const bool is_worth_repeating = rows >= kRowsWorthRepeating && bytes_of_repeated() > cache_bytes_;
    if (!repeated_.empty() && !is_made_once && !is_worth_repeating) return kRepeatsWeights;
    set_rows(rows);
    if (region_.bytes > max_tile_bytes()) return too_large();
    return region_.tiles() < kMinTiles ? too_few() : "";
  }

  // Sizes must not depend on the extents of the batch: a single entry must be summed in the same blocks.
  std::string choose_with_sums() {
    if (!repeated_.empty()) return kRepeatsWeights;
    const bool cuts_columns = region_.columns > 0;
    if (cuts_columns && region_.blocks_of(region_.row_loop() + 1) == 1) return "it has one block of columns";
    const int64_t all_rows = region_.loops[region_.row_loop()];
    int64_t rows = all_rows;
    if (cuts_columns || bytes_of_tile(rows) > summing_tile_bytes()) rows = kMaxRows;
    while (rows > kMinRows && bytes_of_tile(rows) > summing_tile_bytes()) rows /= 2;
    set_rows(std::min(rows, all_rows));
    if (region_.bytes > max_tile_bytes()) return too_large();
    std::erase_if(region_.sums, [this](const auto& sum) { return region_.blocks_of(static_cast<size_t>(sum.second)) == 1; });
    if (const int64_t bytes = most_bytes_of_a_sum(); bytes > max_sum_bytes())
      return join("a tile adds to ", bytes, " bytes of a sum, allowed is at most ", max_sum_bytes());
    if (region_.sums.empty() && region_.tiles() < kMinTiles) return too_few();
    if (sums_over_rows())
      region_.segments = std::clamp<int64_t>(region_.blocks_of(region_.row_loop()) / kBlocksOfSegment, 1, kMaxSegments);
    return "";
  }

 private:
  // Larger tiles do not stay in the caches. Kernels that write in place need less than this estimate.
  int64_t max_tile_bytes() const { return 5 * cache_bytes_; }
  int64_t max_repeated_bytes() const { return 2 * cache_bytes_; }
  // Tiles that add to sums have more rows, because each reads and writes the sums again.
  int64_t summing_tile_bytes() const { return 2 * cache_bytes_; }
  int64_t max_sum_bytes() const { return 4 * cache_bytes_; }  // of the contribution of a tile to one sum

  int64_t bytes_of_tile(int64_t rows) const { return rows * row_bytes_ + fixed_bytes_; }
  void set_rows(int64_t rows) {
    region_.rows = rows;
    region_.bytes = bytes_of_tile(rows);
  }
  std::string too_large() const {
    return join("a tile of ", region_.rows, " rows has ", region_.bytes, " bytes, allowed is at most ", max_tile_bytes());
  }
  std::string too_few() const { return join("there are ", region_.tiles(), " tiles, needed are ", kMinTiles); }

  int64_t good_rows() const {
    int64_t others = 1;
    for (size_t loop = 0; loop + 1 < region_.loops.size(); ++loop) others *= region_.loops[loop];
    const int64_t all_rows = region_.loops.back();
    // Each tile reads the weights of its products again. For large weights, only many rows outweigh that cost.
    const bool has_large_weights = bytes_of_weights() > cache_bytes_;
    const int64_t enough = has_large_weights ? kMaxRows : repeated_.empty() ? kGoodRows : kRowsWorthRepeating;
    const int64_t good_bytes = has_large_weights ? max_tile_bytes() : cache_bytes_;
    const auto is_too_much = [&](int64_t rows) {
      return bytes_of_tile(rows) > good_bytes || (rows > enough && others * ((all_rows + rows - 1) / rows) < kGoodTiles);
    };
    int64_t rows = kMaxRows;
    while (rows > kMinRows && is_too_much(rows)) rows /= 2;
    return std::min(rows, all_rows);
  }

  int64_t bytes_of_repeated() const {
    int64_t bytes = 0;
    for (const size_t group : repeated_) bytes += graph_.tensor(made_by(group)).byte_size();
    return bytes;
  }
  // Whether a loop other than the one over rows uses them repeatedly.
  bool repeats_for_other_loops() const {
    return std::any_of(repeated_.begin(), repeated_.end(), [this](size_t group) {
      const AxisLoops& axes = region_.cut.at(made_by(group));
      for (size_t loop = 0; loop < region_.row_loop(); ++loop) {
        if (region_.loops[loop] > 1 && !has_loop(axes, loop)) return true;
      }
      return false;
    });
  }
  ValueIndex made_by(size_t group) const { return graph_.op(grouped_.group(group).ops.back()).outputs[0]; }

  // Bytes of the second factors that all blocks of rows share, for one entry of the other loops.
  int64_t bytes_of_weights() const {
    int64_t bytes = 0;
    for (const size_t group : region_.groups) {
      const Op& op = grouped_.first_op(group);
      if (is_matrix_product(op)) bytes += bytes_of_an_entry(op.inputs[1]);
    }
    return bytes;
  }
  // Bytes of a value for one entry of each loop.
  int64_t bytes_of_an_entry(ValueIndex value) const {
    const AxisLoops& axes = region_.cut.at(value);
    int64_t elements = 1;
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (axes[axis] < 0) elements *= (*graph_.tensor(value).shape)[axis];
    }
    return bytes_of(graph_.tensor(value).dtype, elements);
  }
  // Bytes of all values inside the region: per row for those that have rows, or of the others.
  int64_t bytes_between(bool with_rows) const {
    int64_t bytes = 0;
    for (const auto& [value, axes] : region_.cut) {
      if (!grouped_.lies_between(value, members_) || has_rows(axes) != with_rows) continue;
      bytes += bytes_of_an_entry(value) * (has_loop(axes, region_.row_loop() + 1) ? region_.columns : 1);
    }
    return bytes;
  }
  bool has_rows(const AxisLoops& axes) const {
    return region_.loops[region_.row_loop()] == 1 || has_loop(axes, region_.row_loop());
  }

  bool sums_over_rows() const {
    return std::any_of(region_.sums.begin(), region_.sums.end(),
                       [this](const auto& sum) { return static_cast<size_t>(sum.second) == region_.row_loop(); });
  }
  // Bytes in f32, for one tile.
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

  TileRegion& region_;
  const GroupedGraph& grouped_;
  const Graph& graph_;
  const std::set<size_t> members_;
  const int64_t cache_bytes_;
  std::vector<size_t> repeated_;  // groups that dequantise weights in each tile
  int64_t row_bytes_ = 0, fixed_bytes_ = 0;
};

}  // namespace

int64_t column_block(int64_t columns) {
  const int64_t blocks = (columns + kWideColumns - 1) / kWideColumns;
  return std::min(((columns + blocks - 1) / blocks + 63) / 64 * 64, columns);
}

bool recomputes(const GroupedGraph& grouped, const TileRegion& region, size_t group) {
  for (const int position : grouped.group(group).ops) {
    for (const ValueIndex value : grouped.graph().op(position).outputs) {
      if (value == kNoValue) continue;
      const auto sum = region.sums.find(value);
      for (size_t loop = 0; loop < region.loops.size(); ++loop) {
        const bool adds_up = sum != region.sums.end() && sum->second == static_cast<int>(loop);
        if (!adds_up && region.loops[loop] != 1 && !has_loop(region.cut.at(value), loop)) return true;
      }
    }
  }
  return false;
}

std::string choose_tile_sizes(TileRegion& region, const GroupedGraph& grouped, bool may_repeat, int64_t cache_bytes) {
  TileSizes sizes(region, grouped, may_repeat, cache_bytes);
  return region.sums.empty() ? sizes.choose() : sizes.choose_with_sums();
}

}  // namespace lamina
