#include "passes/sink_dequantize.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "interface/op_schema.h"
#include "interface/windows.h"
#include "passes/core/graph_editor.h"

namespace lamina {
namespace {

bool has_positive_scale(const Op& dequantize) {
  const auto& scales = dequantize.attribute<std::vector<float>>("scales");
  return dequantize.attribute<std::string>("qtype") == "per_tensor" && std::isfinite(scales[0]) && scales[0] > 0;
}

// A window without a pixel has no largest element: -inf, which integers do not have.
bool reads_in_every_window(const Graph& graph, const Op& op) {
  const auto has_tap = [](const AxisTaps& axis, int64_t output) {
    for (int64_t tap = 0; tap < axis.count; ++tap)
      if (axis.pixel(output, tap) >= 0) return true;
    return false;
  };
  if (!graph.tensor(op.inputs[0]).has_full_shape() || !graph.tensor(op.outputs[0]).has_full_shape()) return false;
  const std::vector<AxisTaps> axes = windows_of(OpView(graph, op)).axes;
  return std::all_of(axes.begin(), axes.end(), [&](const AxisTaps& axis) {
    for (int64_t output = 0; output < axis.outputs; ++output)
      if (!has_tap(axis, output)) return false;
    return true;
  });
}

class Sinker {
 public:
  explicit Sinker(const Graph& graph) : graph_(graph), editor_(graph) {}

  std::optional<Graph> run() {
    bool changed = false;
    for (size_t i = 0; i < graph_.ops().size(); ++i) changed = try_sink(i) || changed;
    if (!changed) return std::nullopt;
    return editor_.finish();
  }

 private:
  bool try_sink(size_t position) {
    const Op& op = graph_.op(static_cast<int>(position));
    if (op.kind != OpKind::MaxPool) return false;
    const int producer = graph_.value(op.inputs[0]).producer.op;
    if (producer < 0 || graph_.op(producer).kind != OpKind::Dequantize) return false;
    const Op& dequantize = graph_.op(producer);
    if (!has_positive_scale(dequantize) || !reads_in_every_window(graph_, op)) return false;
    Op largest = op;
    LogicalTensor integers;
    integers.dtype = graph_.tensor(dequantize.inputs[0]).dtype;
    integers.shape = graph_.tensor(op.outputs[0]).shape;
    largest.inputs[0] = dequantize.inputs[0];
    largest.outputs[0] = editor_.add_new(std::move(integers));
    Op behind = dequantize;
    behind.inputs[0] = largest.outputs[0];
    behind.outputs[0] = op.outputs[0];
    editor_.insert(position, std::move(largest));
    editor_.op(position) = std::move(behind);
    if (++moved_[producer] == graph_.value(op.inputs[0]).consumers.size()) editor_.remove(static_cast<size_t>(producer));
    return true;
  }

  const Graph& graph_;
  GraphEditor editor_;
  std::map<int, size_t> moved_;  // per Dequantize: its readers that read integers now
};

}  // namespace

std::optional<Graph> sink_dequantize(const Graph& graph) { return Sinker(graph).run(); }

}  // namespace lamina
