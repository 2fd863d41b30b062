#include "backends/gpu/emit/chunk.h"

#include "backends/gpu/emit/c_types.h"

namespace lamina::gpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;

void Chunk::declare_live_values() {
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    if (plan_.live_since(static_cast<NodeIndex>(i)) >= 0)
      out_.line(c_type(kernel_.nodes[i].type), " kept", i, "[", e_.elements(), "];");
  }
}

void Chunk::emit(int phase) {
  if (kernel_.extents.size() > e_.outer + 1) e_.emit_positions("at", e_.outer, kernel_.extents.size(), "lm_ix", "");
  emit_loads(phase);
  for (const NodeIndex root : plan_.roots(phase)) {
    if (is_vector_store(root)) out_.line(storage_type(arg(node(root).arg).dtype), " w", root, "[", schedule_.vector, "];");
  }
  out_.open("LM_UNROLL for (int v = 0; v < ", schedule_.vector, "; ++v)");
  emit_elements(phase);
  for (const NodeIndex root : plan_.roots(phase)) emit_root(root, phase);
  out_.close();
  for (const NodeIndex root : plan_.roots(phase)) {
    const int a = node(root).arg;
    if (is_vector_store(root)) out_.line("LM_STORE(", schedule_.vector, ", p", a, " + ", values_.offset(a), ", w", root, ");");
  }
}

void Chunk::emit_loads(int phase) {
  for (const NodeIndex i : plan_.nodes(phase)) {
    const Node& n = node(i);
    if (n.kind != NodeKind::load || plan_.is_read_back(i, phase)) continue;
    const std::string type = storage_type(arg(n.arg).dtype);
    if (e_.is_vector_access(n.arg)) {
      out_.line(type, " r", i, "[", schedule_.vector, "];");
      const std::string from =
          e_.is_copied_ahead(n.arg) ? values_.copied_chunk(n.arg) : join("p", n.arg, " + ", values_.offset(n.arg));
      out_.line("LM_LOAD(", schedule_.vector, ", r", i, ", ", from, ");");
    } else if (arg(n.arg).strides.back() == 0 && !e_.shares_bytes(n.arg)) {
      out_.line("const ", type, " r", i, " = p", n.arg, "[", values_.offset(n.arg), "];");
    }
  }
}

void Chunk::emit_elements(int phase) {
  for (const NodeIndex i : plan_.nodes(phase)) {
    const std::string kept = join("kept", i, "[k * ", schedule_.vector, " + v]");
    out_.line("const ", c_type(node(i).type), " ", Values::name(i), " = ",
              plan_.is_read_back(i, phase) ? kept : values_.element_value(i, false), ";");
    if (plan_.live_since(i) == phase) out_.line(kept, " = ", Values::name(i), ";");
  }
}

void Chunk::emit_root(NodeIndex root, int phase) {
  const Node& n = node(root);
  const std::string value = Values::operand(n, 0);
  if (n.kind == NodeKind::column_sum) return columns_.add(root, value);
  if (n.kind != NodeKind::store) return reductions_.accumulate(root, phase, value);
  const std::string raw = to_storage(arg(n.arg).dtype, n.type, value);
  if (is_vector_store(root))
    out_.line("w", root, "[v] = ", raw, ";");
  else
    out_.line("p", n.arg, "[", values_.offset(n.arg), " + v * (lm_ix)", arg(n.arg).strides.back(), "] = ", raw, ";");
}

}  // namespace lamina::gpu
