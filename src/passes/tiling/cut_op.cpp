#include "passes/tiling/cut_op.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "interface/op_schema.h"
#include "interface/status.h"
#include "passes/tiling/dequantized_weights.h"
#include "passes/tiling/quantized_product.h"
#include "passes/tiling/row_view.h"

namespace lamina {

namespace {

bool begins_at_a_byte(const LogicalTensor& tensor, size_t axis) {
  return bits_of(tensor.dtype) >= 8 || made_dense(tensor).strides[axis] % 2 == 0;
}

class OpCut {
 public:
  OpCut(TileRegion& region, const Graph& graph, const Op& op, const IterationView& view, Reduces reduces)
      : region_(region), graph_(graph), op_(op), view_(view), reduces_(reduces), loops_(view.extents.size(), -1) {}

  std::string run() {
    std::string why_not;
    for_each_value([&](ValueIndex value, const DimMap& map) {
      const auto known = region_.cut.find(value);
      if (why_not.empty() && known != region_.cut.end()) why_not = take_loops(map, known->second);
    });
    for_each_value([&](ValueIndex value, const DimMap& map) {
      if (why_not.empty()) why_not = give_loops(value, map);
    });
    if (!why_not.empty()) return join(describe(op_), why_not);
    if (cuts_scales()) return join(describe(op_), " has a scale for each entry of an axis that is cut");
    if (cuts_groups()) return join(describe(op_), " has groups along an axis that is cut");
    if (is_matrix_product(op_) && loops_.back() >= 0) region_.sums[op_.outputs[0]] = loops_.back();
    return "";
  }

 private:
  template <typename Visit>
  void for_each_value(const Visit& visit) const {
    for (const auto& [values, maps] : {std::pair{&op_.inputs, &view_.inputs}, {&op_.outputs, &view_.outputs}}) {
      for (size_t port = 0; port < values->size(); ++port) {
        if ((*values)[port] != kNoValue) visit((*values)[port], (*maps)[port]);
      }
    }
  }

  std::string take_loops(const DimMap& map, const AxisLoops& axes) {
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (axes[axis] < 0) continue;
      const AxisRun run = map[axis];
      if (run.count != 1) return " splits an axis that is cut";
      const auto dim = static_cast<size_t>(run.first);
      if (view_.inner[dim] && !may_cut_inner(dim, axes[axis])) return " reduces an axis that is cut";
      if (loops_[dim] == axes[axis]) continue;
      const bool is_elsewhere = std::find(loops_.begin(), loops_.end(), axes[axis]) != loops_.end();
      if (loops_[dim] >= 0 || is_elsewhere) return " joins rows of different loops";
      loops_[dim] = axes[axis];
    }
    return "";
  }

  // A tile's kernel contains all scales of its op and does not know which tile it runs.
  bool cuts_scales() const {
    if (!has_constant_scales(op_.kind) || op_.attribute<std::vector<float>>("scales").size() < 2) return false;
    const AxisLoops& axes = region_.cut.at(op_.outputs[0]);
    return axes[static_cast<size_t>(wrap_axis(op_.attribute<int64_t>("axis"), static_cast<int>(axes.size())))] >= 0;
  }

  // Attribute group_shape refers to the whole tensor: a tile would have to contain whole groups.
  bool cuts_groups() const {
    if (!op_.has_attribute("group_shape")) return false;
    const auto& groups = op_.attribute<std::vector<int64_t>>("group_shape");
    const AxisLoops& axes = region_.cut.at(op_.outputs[0]);
    for (size_t axis = 0; axis < groups.size() && axis < axes.size(); ++axis) {
      if (groups[axis] != 1 && axes[axis] >= 0) return true;
    }
    return false;
  }

  // A product may be cut in blocks along the summed dim, which is its last, and along its columns.
  bool may_cut_inner(size_t dim, int loop) const {
    const auto rows = static_cast<int>(region_.row_loop());
    if (reduces_ == Reduces::columns && loop > rows) return true;
    const bool is_summed = dim + 1 == loops_.size();
    return is_matrix_product(op_) && (is_summed ? reduces_ == Reduces::blocks && loop >= rows : loop > rows);
  }

  std::string give_loops(ValueIndex value, const DimMap& map) {
    const LogicalTensor& tensor = graph_.tensor(value);
    AxisLoops axes(map.size(), -1);
    for (size_t axis = 0; axis < map.size(); ++axis) {
      for (int dim = map[axis].first; dim < map[axis].first + map[axis].count; ++dim) {
        const int loop = loops_[static_cast<size_t>(dim)];
        if (loop < 0) continue;
        const bool whole = map[axis].count == 1 && (*tensor.shape)[axis] == region_.loops[static_cast<size_t>(loop)];
        if (!whole) return " has only a part of the rows along an axis";
        axes[axis] = loop;
      }
      if (axes[axis] >= 0 && !begins_at_a_byte(tensor, axis)) return " cuts bytes of four-bit numbers";
    }
    axes = without_ones(tensor, std::move(axes));
    const auto [place, is_new] = region_.cut.try_emplace(value, axes);
    return is_new || place->second == axes ? "" : " and its neighbours cut a value differently";
  }

  TileRegion& region_;
  const Graph& graph_;
  const Op& op_;
  const IterationView& view_;
  const Reduces reduces_;
  std::vector<int> loops_;  // per dim of the op's iteration: the loop that cuts it, or -1
};

}  // namespace

std::string cut_op(TileRegion& region, const Graph& graph, const Op& op, Reduces reduces) {
  if (is_marker(op)) return "";
  const IterationView view = row_view(graph, op);
  if (!view.why_not.empty()) return view.why_not;
  if (view.opaque_copy || schema_of(op.kind).nest == LoopNest::reshaped) return join(describe(op), " has a shape attribute");
  if (view.has_columns()) return join(describe(op), " sums over rows");
  if (schema_of(op.kind).traits.positional && graph.input_value(op, "first") != kNoValue)
    return join(describe(op), " is already a part of a larger tensor");
  return OpCut(region, graph, op, view, reduces).run();
}

std::vector<int>::iterator next_to_cut(const Graph& graph, std::vector<int>& waiting,
                                       const std::map<ValueIndex, AxisLoops>& cut) {
  const auto is_known = [&](const Op& op, bool must_be_cut) {
    const auto known = [&](ValueIndex value) {
      const auto found = value == kNoValue ? cut.end() : cut.find(value);
      return found != cut.end() &&
             (!must_be_cut || std::any_of(found->second.begin(), found->second.end(), [](int loop) { return loop >= 0; }));
    };
    return std::any_of(op.inputs.begin(), op.inputs.end(), known) || std::any_of(op.outputs.begin(), op.outputs.end(), known);
  };
  for (const bool must_be_cut : {true, false}) {
    const auto next = std::find_if(waiting.begin(), waiting.end(), [&](int op) { return is_known(graph.op(op), must_be_cut); });
    if (next != waiting.end()) return next;
  }
  return waiting.end();
}

std::string why_no_sum(const TileRegion& region, const Graph& graph, const Op& product) {
  const auto refused = [&](std::string_view why) { return join(describe(product), " sums over the rows of a tile, ", why); };
  if (region.row_loop() == 0) return refused("and there is no batch to split instead");
  const auto rank_of = [&](ValueIndex value) { return graph.tensor(value).rank(); };
  if (std::min(rank_of(product.inputs[0]), rank_of(product.inputs[1])) < rank_of(product.outputs[0]))
    return refused("and the batch shares one of its factors");
  if (product.inputs.size() > 2 && product.inputs[2] != kNoValue) return refused("and would add its bias in each tile");
  for (const ValueIndex value : {product.inputs[0], product.inputs[1], product.outputs[0]}) {
    const DataType dtype = graph.tensor(value).dtype;
    if (dtype != DataType::f32 && dtype != DataType::bf16 && dtype != DataType::f16)
      return refused(join("which is not supported in ", name_of(dtype)));
  }
  const bool is_of_integers = quantized_product(graph, product) || dequantized_weights(graph, product);
  return is_of_integers ? refused("which is not supported for integers") : "";
}

AxisLoops without_ones(const LogicalTensor& tensor, AxisLoops loops) {
  for (size_t axis = 0; axis < loops.size(); ++axis) {
    if ((*tensor.shape)[axis] == 1) loops[axis] = -1;
  }
  return loops;
}

}  // namespace lamina
