#include "passes/nest_concat.h"

#include <algorithm>
#include <map>
#include <vector>

#include "interface/op_schema.h"
#include "passes/core/graph_editor.h"

namespace lamina {
namespace {

class Nester {
 public:
  explicit Nester(const Graph& graph) : graph_(graph), editor_(graph) {}

  std::optional<Graph> run() {
    bool changed = false;
    for (size_t i = 0; i < graph_.ops().size(); ++i) {
      const Op& op = graph_.op(static_cast<int>(i));
      if (schema_of(op.kind).nest != LoopNest::concatenated || op.inputs.empty()) continue;
      std::vector<const Op*>& earlier = by_first_[op.inputs[0]];
      if (const Op* const prefix = longest_prefix(op, earlier); prefix != nullptr) {
        std::vector<ValueIndex>& inputs = editor_.op(i).inputs;
        inputs.erase(inputs.begin() + 1, inputs.begin() + std::ssize(prefix->inputs));
        inputs[0] = prefix->outputs[0];
        changed = true;
      }
      earlier.push_back(&op);
    }
    if (!changed) return std::nullopt;
    return editor_.finish();
  }

 private:
  // Of several parts, and not all of the op's.
  static const Op* longest_prefix(const Op& op, const std::vector<const Op*>& earlier) {
    const Op* longest = nullptr;
    for (const Op* const other : earlier) {
      const size_t parts = other->inputs.size();
      if (parts < 2 || parts >= op.inputs.size() || (longest != nullptr && parts <= longest->inputs.size())) continue;
      if (other->kind != op.kind || other->attributes != op.attributes) continue;
      if (std::equal(other->inputs.begin(), other->inputs.end(), op.inputs.begin())) longest = other;
    }
    return longest;
  }

  const Graph& graph_;
  GraphEditor editor_;
  std::map<ValueIndex, std::vector<const Op*>> by_first_;  // the concatenations so far that begin with a value
};

}  // namespace

std::optional<Graph> nest_concat(const Graph& graph) { return Nester(graph).run(); }

}  // namespace lamina
