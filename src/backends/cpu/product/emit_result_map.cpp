#include "backends/cpu/product/emit_result_map.h"

#include <algorithm>
#include <string>
#include <vector>

#include "backends/cpu/vector/simple_map.h"
#include "interface/status.h"

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeKind;

ResultMap result_map_of(const kernel::Kernel& kernel, kernel::Type type) {
  const auto is_simple = [type](const Node& node) {
    const bool is_known = node.kind == NodeKind::load || node.kind == NodeKind::constant || node.kind == NodeKind::store ||
                          (node.kind == NodeKind::map && is_simple_map(node.op));
    return is_known && node.type == type;
  };
  const auto has_type = [type](const kernel::Arg& arg) { return arg.dtype == kernel::data_type_of(type); };
  const bool is_simple_kernel = kernel.args.size() == 2 && std::all_of(kernel.args.begin(), kernel.args.end(), has_type) &&
                                std::all_of(kernel.nodes.begin(), kernel.nodes.end(), is_simple);
  return is_simple_kernel ? ResultMap{kernel.nodes} : ResultMap{};
}

std::string describe(const ResultMap& map) {
  std::string text;
  for (const Node& node : map.nodes) {
    text += join(text.empty() ? ", then " : "; ", static_cast<int>(node.kind));
    if (node.kind == NodeKind::constant) text += join(" ", node.value);
    if (node.kind == NodeKind::map) text += join(" ", kernel::name_of(node.op));
    for (const kernel::NodeIndex operand : node.operands)
      if (operand >= 0) text += join(" %", operand);
  }
  return text;
}

llvm::Value* emit_result_map(llvm::IRBuilder<>& b, const ResultMap& map, llvm::Value* element) {
  std::vector<llvm::Value*> values;
  for (const Node& node : map.nodes) {
    std::vector<llvm::Value*> operands;
    for (int k = 0; k < kernel::operand_count(node); ++k)
      operands.push_back(values[static_cast<size_t>(node.operands[static_cast<size_t>(k)])]);
    switch (node.kind) {
      case NodeKind::load: values.push_back(element); break;
      case NodeKind::constant: values.push_back(llvm::ConstantFP::get(element->getType(), node.value)); break;
      case NodeKind::store: return operands[0];
      default: values.push_back(emit_simple_map(b, node.op, operands));
    }
  }
  return element;
}

}  // namespace lamina::cpu
