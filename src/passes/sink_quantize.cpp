#include "passes/sink_quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "interface/op_schema.h"
#include "passes/core/graph_editor.h"

namespace lamina {
namespace {

// Whether Quantize(Dequantize(q)), computed in f32, returns every integer q of the type.
bool comes_back(DataType dtype, float scale, int64_t zero_point) {
  constexpr int64_t kLargest = 1 << 16;
  constexpr float kMinScale = 0x1p-100F, kMaxScale = 0x1p100F;  // no intermediate value is subnormal or infinite
  const float size = std::abs(scale);
  if (std::abs(zero_point) > kLargest || !(size >= kMinScale && size <= kMaxScale)) return false;
  const int64_t lowest = dtype == DataType::s8 ? std::numeric_limits<int8_t>::min() : 0;
  for (int64_t q = lowest; q < lowest + 256; ++q) {
    const auto number = static_cast<float>(q - zero_point);
    const float quotient = number * scale / scale;
    if (std::abs(quotient - number) >= 0.25F) return false;
  }
  return true;
}

struct Scales {
  std::vector<float> scales;
  std::vector<int64_t> zero_points;
  int axis = -1;  // -1: per tensor
};

std::optional<Scales> scales_of(const Op& op, int rank) {
  const std::string& type = op.attribute<std::string>("qtype");
  if (type != "per_tensor" && (type != "per_channel" || rank < 0)) return std::nullopt;
  Scales found{op.attribute<std::vector<float>>("scales"), {}, -1};
  if (type == "per_channel") found.axis = wrap_axis(op.attribute<int64_t>("axis"), rank);
  found.zero_points.assign(found.scales.size(), 0);
  if (!op.has_attribute("zps")) return found;
  const auto& given = op.attribute<std::vector<int64_t>>("zps");
  std::copy_n(given.begin(), std::min(given.size(), found.zero_points.size()), found.zero_points.begin());
  return found;
}

class QuantizeSinker {
 public:
  explicit QuantizeSinker(const Graph& graph) : graph_(graph), editor_(graph), removed_(graph.ops().size(), false) {}

  std::optional<Graph> run() {
    bool changed = false;
    for (size_t i = 0; i < graph_.ops().size(); ++i) changed = try_sink(static_cast<int>(i)) || changed;
    if (!changed) return std::nullopt;
    return editor_.finish();
  }

 private:
  bool try_sink(int position) {
    const Op& concat = graph_.op(position);
    if (schema_of(concat.kind).nest != LoopNest::concatenated) return false;
    if (graph_.tensor(concat.outputs[0]).dtype != DataType::f32) return false;
    const std::vector<Port>& readers = graph_.value(concat.outputs[0]).consumers;
    if (readers.size() != 1 || graph_.op(readers[0].op).kind != OpKind::Quantize) return false;
    const int quantize = readers[0].op;
    if (!comes_back_from(concat, graph_.op(quantize))) return false;
    Op& moved = editor_.op(static_cast<size_t>(position));
    for (ValueIndex& input : moved.inputs) {
      const int dequantize = graph_.value(input).producer.op;
      if (is_read_by_it_alone(position, input)) take(moved, dequantize);
      input = graph_.op(dequantize).inputs[0];
    }
    take(moved, quantize);
    moved.outputs = graph_.op(quantize).outputs;
    return true;
  }

  // Whether all inputs are dequantised with the same scales with which the result is quantised.
  bool comes_back_from(const Op& concat, const Op& quantize) const {
    const LogicalTensor& joined = graph_.tensor(concat.outputs[0]);
    const DataType dtype = graph_.tensor(quantize.outputs[0]).dtype;
    const std::optional<Scales> wanted = scales_of(quantize, joined.rank());
    if (!wanted || (dtype != DataType::s8 && dtype != DataType::u8)) return false;
    const bool along = wanted->axis >= 0 && wanted->axis == wrap_axis(concat.attribute<int64_t>("axis"), joined.rank());
    Scales given{{}, {}, wanted->axis};
    for (const ValueIndex input : concat.inputs) {
      const int producer = graph_.value(input).producer.op;
      if (producer < 0 || graph_.op(producer).kind != OpKind::Dequantize) return false;
      const Op& dequantize = graph_.op(producer);
      const std::optional<Scales> scales = scales_of(dequantize, joined.rank());
      if (graph_.tensor(dequantize.inputs[0]).dtype != dtype || !scales || scales->axis != wanted->axis) return false;
      if (!along && (scales->scales != wanted->scales || scales->zero_points != wanted->zero_points)) return false;
      given.scales.insert(given.scales.end(), scales->scales.begin(), scales->scales.end());
      given.zero_points.insert(given.zero_points.end(), scales->zero_points.begin(), scales->zero_points.end());
    }
    if (along && (given.scales != wanted->scales || given.zero_points != wanted->zero_points)) return false;
    for (size_t i = 0; i < wanted->scales.size(); ++i)
      if (!comes_back(dtype, wanted->scales[i], wanted->zero_points[i])) return false;
    return true;
  }

  // The op may read the value more than once.
  bool is_read_by_it_alone(int op, ValueIndex value) const {
    const std::vector<Port>& readers = graph_.value(value).consumers;
    return std::all_of(readers.begin(), readers.end(), [op](const Port& port) { return port.op == op; });
  }

  void take(Op& into, int position) {
    const auto at = static_cast<size_t>(position);
    if (removed_[at]) return;
    const Op& op = graph_.op(position);
    into.origins.push_back({op.id, op.kind, op.name});
    into.origins.insert(into.origins.end(), op.origins.begin(), op.origins.end());
    editor_.remove(at);
    removed_[at] = true;
  }

  const Graph& graph_;
  GraphEditor editor_;
  std::vector<bool> removed_;
};

}  // namespace

std::optional<Graph> sink_quantize(const Graph& graph) { return QuantizeSinker(graph).run(); }

}  // namespace lamina
