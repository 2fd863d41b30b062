#include "kernels/remaining_sums.h"

#include <algorithm>

namespace lamina::kernel {

namespace {

// A shorter segment costs more to complete than to read again.
constexpr int64_t kMinSegment = 64;

// Dims of the group that a map does not have. Dims of extent 1 count as present.
std::vector<bool> missing_dims(const FusionGroup& group, const DimMap& map) {
  std::vector<bool> missing(group.extents.size(), true);
  for (const AxisRun& run : map) std::fill_n(missing.begin() + run.first, run.count, false);
  for (size_t d = 0; d < missing.size(); ++d) missing[d] = missing[d] && group.extents[d] != 1;
  return missing;
}

// The outer dims that a column output keeps, if it sums over the other outer dims alone.
std::optional<std::vector<bool>> kept_outer_dims(const FusionGroup& group, const DimMap& map) {
  const std::vector<bool> summed = missing_dims(group, map);
  std::vector<bool> kept(summed.size(), false);
  for (size_t d = 0; d < summed.size(); ++d) {
    if (summed[d] && group.inner[d]) return std::nullopt;
    kept[d] = !summed[d] && !group.inner[d] && group.extents[d] != 1;
  }
  return kept;
}

bool is_any(const std::vector<bool>& flags) { return std::find(flags.begin(), flags.end(), true) != flags.end(); }

// Whether the group's own kernel computes a column output: it sums over all outer dims, or over those of an entry.
bool sums_in_kernel(const FusionGroup& group, const std::vector<bool>& entries, const DimMap& map) {
  const auto kept = kept_outer_dims(group, map);
  return kept && (!is_any(*kept) || *kept == entries);
}

// The dim with the smallest stride in the op's first operand.
size_t contiguous_dim(const Graph& graph, const FusionGroup& group, int op) {
  const ValueIndex operand = graph.ops()[static_cast<size_t>(op)].inputs[0];
  const DimMap& map = group.input_maps.at({op, 0});
  const Dims& strides = graph.tensor(operand).strides;
  size_t closest = 0;
  int64_t least = INT64_MAX;
  for (size_t i = 0; i < map.size(); ++i) {
    if (map[i].count == 0 || strides[i] == 0 || strides[i] >= least) continue;
    least = strides[i];
    closest = static_cast<size_t>(map[i].first + map[i].count - 1);
  }
  return closest;
}

Sums second_walk(const Graph& graph, const FusionGroup& group, int op, const std::vector<bool>& summed) {
  Sums sums{op, {}, group};
  sums.group.ops = {op};
  sums.by_rows = summed[contiguous_dim(graph, group, op)];
  for (size_t d = 0; d < summed.size(); ++d) sums.group.inner[d] = summed[d] == sums.by_rows && group.extents[d] != 1;
  return sums;
}

// Changes a second walk to sums of segments, unless they are short. All segment sums of a kernel have the same segments: `all`
// contains the earlier ones.
void take_segments(Sums& sums, const FusionGroup& group, const std::vector<bool>& summed, bool sums_segments,
                   const std::vector<Sums>& all) {
  std::vector<bool> numbers(summed.size(), false);
  Dims strides(summed.size(), 0);
  int64_t size = 1, stride = 1;
  for (size_t d = summed.size(); d-- > 0;) {
    numbers[d] = group.inner[d] && !summed[d] && group.extents[d] != 1;
    if (group.inner[d] && summed[d]) {
      size *= group.extents[d];
    } else {
      strides[d] = stride;
      stride *= std::max<int64_t>(group.extents[d], 1);
    }
  }
  if (!sums.by_rows || size < kMinSegment || (is_any(numbers) && !sums_segments)) return;
  const auto differs = [&](const Sums& other) {
    return other.has_several_segments() && is_any(numbers) && other.numbers_segments != numbers;
  };
  if (std::any_of(all.begin(), all.end(), differs)) return;
  sums.in_segments = true;
  sums.numbers_segments = std::move(numbers);
  sums.strides = std::move(strides);
  for (size_t d = 0; d < summed.size(); ++d) {
    sums.group.inner[d] = summed[d] && !group.inner[d];
    if (summed[d] && group.inner[d]) sums.group.extents[d] = 1;
  }
}

}  // namespace

bool Sums::has_several_segments() const { return is_any(numbers_segments); }

bool Sums::adds_rows() const { return is_any(group.inner); }

std::vector<bool> entry_dims(const Graph& graph, const FusionGroup& group) {
  for (const auto& [position, is_column] : group.column_outputs) {
    for (size_t port = 0; is_any(group.inner) && port < is_column.size(); ++port) {
      if (!is_column[port] || graph.op(position).outputs[port] == kNoValue) continue;
      const auto kept = kept_outer_dims(group, group.output_maps.at({position, static_cast<int>(port)}));
      if (kept && is_any(*kept)) return *kept;
    }
  }
  return std::vector<bool>(group.extents.size(), false);
}

std::vector<Sums> remaining_sums(const Graph& graph, const FusionGroup& group, bool sums_segments) {
  std::vector<Sums> all;
  const std::vector<bool> entries = entry_dims(graph, group);
  for (const int position : group.ops) {
    const Op& op = graph.ops()[static_cast<size_t>(position)];
    const auto columns = group.column_outputs.find(position);
    if (columns == group.column_outputs.end()) continue;
    const std::vector<bool>& is_column = columns->second;
    std::vector<std::vector<bool>> seen;  // per entry of `all` that belongs to this op: the dims it sums
    for (size_t port = 0; port < is_column.size(); ++port) {
      if (!is_column[port] || op.outputs[port] == kNoValue) continue;
      const DimMap& map = group.output_maps.at({position, static_cast<int>(port)});
      if (sums_in_kernel(group, entries, map)) continue;
      const std::vector<bool> summed = missing_dims(group, map);
      const auto known = std::find(seen.begin(), seen.end(), summed);
      if (known == seen.end()) {
        Sums sums = second_walk(graph, group, position, summed);
        take_segments(sums, group, summed, sums_segments, all);
        all.push_back(std::move(sums));
        seen.push_back(summed);
        all.back().ports.push_back(static_cast<int>(port));
      } else {
        all[all.size() - static_cast<size_t>(seen.end() - known)].ports.push_back(static_cast<int>(port));
      }
    }
  }
  return all;
}

}  // namespace lamina::kernel
