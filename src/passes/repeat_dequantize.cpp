#include "passes/repeat_dequantize.h"

#include <map>
#include <utility>
#include <vector>

#include "interface/op_schema.h"
#include "passes/core/graph_editor.h"

namespace lamina {
namespace {

class Repeater {
 public:
  explicit Repeater(const Graph& graph) : graph_(graph), editor_(graph) {}

  std::optional<Graph> run() {
    bool changed = false;
    for (size_t i = 0; i < graph_.ops().size(); ++i) {
      const Op& op = graph_.op(static_cast<int>(i));
      if (!schema_of(op.kind).traits.contracts) continue;
      for (size_t port = 0; port < op.inputs.size(); ++port) changed = give_its_own(i, port) || changed;
    }
    if (!changed) return std::nullopt;
    return editor_.finish();
  }

 private:
  // The Dequantize, and perhaps a TypeCast, that make a value, the last one first; empty: another op makes it.
  std::vector<int> makers_of(ValueIndex value) const {
    std::vector<int> makers;
    while (value != kNoValue && graph_.value(value).producer.op >= 0) {
      makers.push_back(graph_.value(value).producer.op);
      const Op& op = graph_.op(makers.back());
      if (op.kind == OpKind::Dequantize) return makers;
      if (op.kind != OpKind::TypeCast || makers.size() > 1) return {};
      value = op.inputs[0];
    }
    return {};
  }

  // The last reader keeps the op.
  bool is_shared(ValueIndex value) const {
    const auto given = given_.find(value);
    return graph_.value(value).consumers.size() > 1 + (given == given_.end() ? 0 : given->second);
  }

  // Repeats the ops from Dequantize to the last one whose result has other readers.
  bool give_its_own(size_t position, size_t port) {
    const std::vector<int> makers = makers_of(graph_.op(static_cast<int>(position)).inputs[port]);
    const auto result_of = [&](size_t m) { return graph_.op(makers[m]).outputs[0]; };
    size_t last = 0;
    while (last < makers.size() && !is_shared(result_of(last))) ++last;
    if (last == makers.size()) return false;
    ++given_[result_of(last)];
    ValueIndex made = graph_.op(makers.back()).inputs[0];
    const size_t reader = last == 0 ? position : static_cast<size_t>(makers[last - 1]);
    for (size_t m = makers.size(); m-- > last;) {
      Op copy = graph_.op(makers[m]);
      copy.inputs[0] = made;
      copy.outputs[0] = made = editor_.add_new(graph_.tensor(copy.outputs[0]));
      editor_.insert(reader, std::move(copy));
    }
    editor_.op(reader).inputs[last == 0 ? port : 0] = made;
    return true;
  }

  const Graph& graph_;
  GraphEditor editor_;
  std::map<ValueIndex, size_t> given_;  // readers of each value that read a copy now
};

}  // namespace

std::optional<Graph> repeat_dequantize(const Graph& graph) { return Repeater(graph).run(); }

}  // namespace lamina
