#include "kernels/capability.h"

#include "interface/op_schema.h"
#include "interface/shape_rules.h"
#include "interface/status.h"
#include "kernels/lower.h"
#include "passes/fusion/iteration_view.h"

namespace lamina::kernel {

std::string why_no_kernel(const Graph& graph, const Op& op, const PlanTarget& target) {
  if (op.kind == OpKind::Wildcard) return join("the ", target.name, " backend cannot run an op that lamina does not know");
  if (!has_lowering(op.kind)) {
    return join("the ", target.name, " backend has no kernel for ", lamina::name_of(op.kind),
                " yet; the reference engine may have one");
  }
  if (const std::string why = iteration_view(graph, op).why_not; op.kind != OpKind::End && !why.empty()) {
    return join("the ", target.name, " backend cannot lower it to a loop nest: ", why);
  }
  if (std::string fault = fault_of_scales(graph, op); !fault.empty()) return fault;
  for (const auto* ports : {&op.inputs, &op.outputs}) {
    for (const ValueIndex value : *ports) {
      if (value == kNoValue) continue;
      const DataType dtype = graph.tensor(value).dtype;
      const bool has_four_bits = ports == &op.inputs ? target.reads_four_bits : target.writes_four_bits;
      if (dtype == DataType::undef ? op.kind == OpKind::End : bits_of(dtype) >= 8 || has_four_bits) continue;
      return join("the ", target.name, " backend does not run tensors of type ", lamina::name_of(dtype), " (tensor ",
                  graph.tensor(value).id, ")");
    }
  }
  return "";
}

std::string why_no_step(const Graph& graph, const Op& op, const PlanTarget& target) {
  const std::string no_kernel = why_no_kernel(graph, op, target);
  if (no_kernel.empty() || target.library == nullptr) return no_kernel;
  // Loop-nest ops must run in kernels, where they can be fused. The library runs the other ops and reports why it cannot.
  return schema_of(op.kind).op_class == OpClass::library ? target.library->why_unsupported(graph, op) : no_kernel;
}

}  // namespace lamina::kernel
